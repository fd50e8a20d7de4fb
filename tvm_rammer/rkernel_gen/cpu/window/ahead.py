"""Hints to load what an epilogue will read of other images, while the sums of a register tile are computed.

Such an image, as the other summand of a residual block, was written by another operator, so it lies in the last-level
cache or beyond. It is read in short bursts at distances of an image, which the processor does not foresee.
"""

from collections.abc import Iterable, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad

from ...analysis.work import shape_of
from .problem import Window


def fetch_ahead(window: Window, results: Iterable[Sequence[Expr]]) -> list[tirx.Stmt]:
    """Ask for what the epilogue reads of other images for these results, each given by its n, filter, y and x."""
    if window.epilogue is None:
        return []
    hints = []
    for index in results:
        place = list(index) if window.rank == 2 else [*index[:2], *index[3:]]
        value = window.epilogue.at(place, tirx.FloatImm("float32", 0.0))
        loads: list[TensorLoad] = []
        tvm_ffi.structural_walk(value, [(TensorLoad, loads.append)], order="pre")
        hints += [_hint(load) for load in loads if shape_of(load.source)[2:] == shape_of(window.out)[2:]]
    return hints


def _hint(load: TensorLoad) -> tirx.Stmt:
    to_read, near, data = (tirx.IntImm("int32", n) for n in (0, 3, 1))
    return tirx.Evaluate(tirx.call_intrin("void", "tirx.prefetch", tirx.address_of(load), to_read, near, data))
