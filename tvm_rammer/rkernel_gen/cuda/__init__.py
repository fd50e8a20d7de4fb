"""Rules for GPUs: one kernel each, whose blocks are the rTasks.

rules      the rules, in their order; a new one is added there
rule       what a rule is put together from: form, tiles, cost, schedule
product/   convolutions and products: `form` of all, `gemm` on CUDA cores, `wmma` on tensor cores
window/    windows of few channels
reduction, rowwise, elementwise   long sums of few results; rows that are reduced first; one output a thread
cost       the micro performance model
lowered    what a scheduled function needs, seen by lowering it
resources  registers and spills of many kernels, asked of ptxas once and remembered
groups, tensor_intrinsics   tools
"""
