"""A model for a GPU as a small C++ project that needs neither TVM nor this package.

    project   a model -> a folder
    storage   where each buffer of the launches lies: in the caller's arrays, or in the memory of an instance
    source    tables, launches and tensors as C++ text
    files/    the text that is the same for every model: the C interface, the program around the kernels, `main`, CMake

Kernels and launches are those that `gpu_bundle` reads off a lowered module: TVM's, in its order.
"""
