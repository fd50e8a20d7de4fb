"""Hints to load what an epilogue will read and write, while the sums of a register tile are computed.

An image that it reads, as the other summand of a residual block, was written by another operator, so it lies in the
last-level cache or beyond; so does what the results replace. Both are touched in short bursts at distances of an image,
which the processor does not foresee.
"""

from collections.abc import Iterable, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad

from ...analysis.work import shape_of
from .problem import Window

READ, WRITE = 0, 1
"""What a line is wanted for, as LLVM's prefetch instruction numbers it."""


def fetch_ahead(window: Window, results: Iterable[Sequence[Expr]], *, stores: bool = False) -> list[tirx.Stmt]:
    """Ask for what the epilogue touches for these results, each given by its n, filter, y and x.

    Parameters
    ----------
    window : Window
    results : iterable of sequences of Expr
    stores : bool
        Whether to ask for the lines that the results are stored to, too; else only for what is read of other images.
    """
    hints = []
    for index in results:
        place = list(index) if window.rank == 2 else [*index[:2], *index[3:]]
        if stores:
            hints.append(_hint(tirx.BufferLoad(window.out, place), WRITE))
        if window.epilogue is None:
            continue
        value = window.epilogue.at(place, tirx.FloatImm("float32", 0.0))
        loads: list[TensorLoad] = []
        tvm_ffi.structural_walk(value, [(TensorLoad, loads.append)], order="pre")
        hints += [_hint(load, READ) for load in loads if shape_of(load.source)[2:] == shape_of(window.out)[2:]]
    return hints


def _hint(load: TensorLoad, access: int) -> tirx.Stmt:
    how, near, data = (tirx.IntImm("int32", n) for n in (access, 3, 1))
    return tirx.Evaluate(tirx.call_intrin("void", "tirx.prefetch", tirx.address_of(load), how, near, data))
