"""The CUDA backend: each vEU is a block of a persistent, cooperative grid.

rtask        a scheduled kernel -> the device function of its rTasks
rows         the tables -> rows of waits, a run and signals
kept         slices of constants that stay in shared memory over all steps
memory       its parameters, views and arena
kernel       the persistent kernel: an interpreter of one lane's rows
sync         calls of the fixed device functions in sync.cuh
state        the events' counters, kept from run to run
program      all of it for one rProgram
pipeline     TVM's lowering, what persistent kernels need after it, and how TVM compiles their text
source, resources   the CUDA text; how many blocks are resident
"""
