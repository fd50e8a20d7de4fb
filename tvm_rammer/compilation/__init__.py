"""One compilation: the stages put together, and the record of what they decided.

    request   what is to be compiled, and how
    compiler  request -> plans that can run, stage after stage
    record    what became of a model: kernels, plans, what was left to stock TVM and why
    target    a user's target as a device, and a device as TVM's target
    splitting sums that are split over the rTasks of two operators, on a GPU
    regions   kernels and plans of the regions of a prepared module
    launch    code of the plans, and launches of it in the place of the regions
    finished  code of a planned program; registers, spills and residency of its kernel, by ptxas
    stages    loaded module -> kernels -> lowered module -> executable
    guard     no exception of TVM's leaves a compilation
    pipeline  the same as passes of a TVM pipeline

A loaded Relax module goes in, an executable or a lowered module comes out.
"""
