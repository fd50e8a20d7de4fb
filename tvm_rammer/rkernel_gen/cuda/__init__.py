"""Rules for GPUs: each rKernel is one CUDA kernel, whose blocks are the rTasks.

rules       the rules, in order of preference; a new one is added there
rule        what a rule consists of: problem, tiles, cost, schedule
product/    convolutions and matrix products: `problem`, `gemm` and `gemv` for CUDA cores,
            `mma` for tensor cores
split/      convolutions whose sums are split over the rTasks of two functions
window/     sliding windows with few channels: depthwise and grouped convolutions, pools
reduction   long reductions with few results
rowwise     functions that reduce each row before they write it
elementwise functions whose threads compute whole outputs
cost        the micro performance model
lowered     the launch of a scheduled function
resources   registers and spills, as ptxas reports them
spatial, groups, tensor_intrinsics   shared schedule steps
"""
