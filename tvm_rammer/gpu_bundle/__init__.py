"""A first look at a GPU: what is compiled here is packed, then checked and timed there, without TVM.

    lower      a model -> the module that stock TVM's virtual machine would run, in four variants
    kernels    its functions -> CUDA text, and the launches of each function
    prices     kernels that do nothing but launch, wait and signal, and their plans
    plans      its "main" -> a plan: buffers and launches in order
    toolchain  CUDA text -> cubins; the native launcher
    bundle     all of it -> a folder
    gpu_bench  the script in that folder, for a machine without this package
    onsite/    what it runs: Python's standard library, the CUDA driver, and the launcher

The launches are TVM's: its kernels, its memory plan, its order. What launches them is not TVM's virtual machine but
a loop in C, so the time that the virtual machine takes between launches is not counted against stock TVM.
"""
