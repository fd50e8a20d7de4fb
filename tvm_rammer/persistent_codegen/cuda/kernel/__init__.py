"""The persistent kernel of a program as TIR: `build_kernel`.

In: a program with its layout, its tables and rows, its rTask functions. Out: one PrimFunc, a grid of vEUs.

    body    what the other modules refer to: buffers, indices, the row that a block is at
    build   the function: parameters, grid, arena
    walk    row after row, step after step
    call    what a row runs: one branch for each call signature
"""

from .build import build_kernel

__all__ = ["build_kernel"]
