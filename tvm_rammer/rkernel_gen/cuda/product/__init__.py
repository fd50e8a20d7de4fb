"""Products and convolutions on a GPU.

problem  each of them as C[S, I, J] += A[S, I, K] * B[S, J, K]
gemm     tiles in shared memory and registers, for CUDA cores
gemv/    few rows times constant weights
mma      tiles in shared memory and fragments, for tensor cores
"""
