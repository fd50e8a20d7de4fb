"""The CUDA backend: each vEU is a block of a persistent, cooperative grid.

rtask        a scheduled kernel -> the device function of its rTasks
kernel       the persistent kernel: a loop over the rows of a lane
sync         calls of the fixed device functions in sync.cuh
state        the counters, kept from run to run
program      all of it for one rProgram
pipeline     TVM's lowering, and what persistent kernels need after it
source, resources   the CUDA text; registers, and how many blocks are resident
"""
