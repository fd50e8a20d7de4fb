"""Hints to load what will soon be read or written, while the sums of a register tile are computed.

An image that an epilogue reads, as the other summand of a residual block, was written by another operator, so it lies
in the last-level cache or beyond; so does what the results replace. Both are touched in short bursts at distances of an
image, which the processor does not foresee. In a model the weights lie there, too: other operators evicted them since
the last run. A block of filters would wait for its own at its first register tile, and leave the memory idle at all
others. So each register tile asks for a part of the next block's weights.
"""

from collections.abc import Iterable, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad

from ...analysis.work import shape_of
from ..loops import loop, number
from .problem import Window

LINE = 16
"""Elements of a cache line."""

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


def fetch_weights(weight: tirx.Buffer, start: Sequence[Expr], elements: int, part: Expr, parts: int) -> list[tirx.Stmt]:
    """Ask for a part of some weights of the next block of filters that lie one after the other.

    Parameters
    ----------
    weight : Buffer
        As it is packed.
    start : sequence of Expr
        Where the weights begin.
    elements : int
        How many they are: fewer than a line are left to the processor.
    part, parts : Expr, int
        Which part of their lines, and of how many. The last part may go past them: a hint accesses nothing.
    """
    lines = elements // LINE
    if lines == 0:
        return []
    share = -(-lines // parts)
    *outer, first = start

    def line(j: Expr) -> tirx.Stmt:
        return _hint(tirx.BufferLoad(weight, [*outer, first + (part * share + j) * LINE]), READ)

    return [loop(share, line)]


def block_after(block: Expr, blocks: int) -> Expr:
    """The block after another one: after the last the first, with which the next pixels begin."""
    return tirx.Select(block == blocks - 1, number(0), block + 1) if blocks > 1 else number(0)


def _hint(load: TensorLoad, access: int) -> tirx.Stmt:
    how, near, data = (tirx.IntImm("int32", n) for n in (access, 3, 1))
    return tirx.Evaluate(tirx.call_intrin("void", "tirx.prefetch", tirx.address_of(load), how, near, data))
