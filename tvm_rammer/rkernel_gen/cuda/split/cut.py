"""A convolution as two functions: sums over a part of the window each, and what becomes of their sum."""

import math
from collections.abc import Collection
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, sym, tirx
from tvm.ir import TensorLoad
from tvm.s_tir.schedule import SBlockRV, ScheduleError

from ...analysis.blocks import REDUCTION, loops_by_axis, new_schedule
from ..product.parts import window_axes
from ..product.problem import product_block

PRECISE = ("float32", "float64")
"""Element types in which partial sums lose nothing to speak of."""


@dataclass(frozen=True, slots=True)
class Halves:
    """Two functions that compute together what one does.

    Parameters
    ----------
    parts, total : tirx.PrimFunc
        The partial sums, and the function's result: the last parameter of each is what it writes.
    parts_inputs, total_inputs : tuple of int
        Which parameters of the function they read. `total` reads the partial sums first.
    count : int
        Partial sums of an element.
    """

    parts: tirx.PrimFunc
    total: tirx.PrimFunc
    parts_inputs: tuple[int, ...]
    total_inputs: tuple[int, ...]
    count: int


def cut_window(func: tirx.PrimFunc) -> list[Halves]:
    """Split the sums of a convolution over the rows of its window, and over all its positions.

    Parameters
    ----------
    func : tirx.PrimFunc
        Fused and not scheduled.

    Returns
    -------
    list of Halves
        Empty where the function is no convolution with a window, has groups, or is of half precision.
    """
    found = _window_of(new_schedule(func))
    if len(found) < 2:
        return []
    cuts = (found[:1], found)
    return [halves for axes in cuts if (halves := _cut(func, axes)) is not None]


def _window_of(sch: s_tir.Schedule) -> list[int]:
    """Axes of the product's block that slide over the image, of more than one position."""
    found = product_block(sch)
    if found is None or found[1]:
        return []
    stmt = sch.get(found[0])
    if any(str(region.source.dtype) not in PRECISE for region in (*stmt.reads, *stmt.writes)):
        return []
    return [n for n in sorted(window_axes(stmt)) if int(stmt.iter_vars[n].dom.extent) > 1]


def _cut(func: tirx.PrimFunc, axes: list[int]) -> Halves | None:
    sch = new_schedule(func)
    found = product_block(sch)
    assert found is not None
    main = found[0]
    extents = [int(sch.get(main).iter_vars[n].dom.extent) for n in axes]
    try:
        loops = loops_by_axis(sch, main)
        chosen = [loops[n] for n in axes]
        sums = [
            loop
            for n, (axis, loop) in enumerate(zip(sch.get(main).iter_vars, loops, strict=True))
            if axis.iter_type == REDUCTION and n not in axes
        ]
        sch.reorder(*chosen, *sums)
        partial = sch.rfactor(sch.fuse(*chosen), 0)
        _separate(sch, partial, extents)
    except (ScheduleError, ValueError):
        return None
    return _halves(sch.mod["main"], sch.get(partial), math.prod(extents))


def _separate(sch: s_tir.Schedule, partial: SBlockRV, extents: list[int]) -> None:
    """Make the partial sums' position in the window one axis for each of the window's."""
    if len(extents) < 2:
        return
    loops = loops_by_axis(sch, partial)
    sch.reorder(*loops)

    def places(position: tirx.Var, *others: tirx.Var) -> list[object]:
        found: list[object] = []
        for extent in reversed(extents[1:]):
            found.insert(0, position % extent)
            position = position // extent
        return [position, *found, *others]

    axes = [tirx.Var(f"v{n}", "int64") for n in range(len(loops))]
    sch.transform_block_layout(partial, tirx.IndexMap(axes, places(*axes), None))


def _halves(func: tirx.PrimFunc, partial: s_tir.SBlock, count: int) -> Halves | None:
    """Cut a function behind its partial sums."""
    root = func.body.block
    nests = list(root.body.seq)
    sums = partial.writes[0].source
    at = next(n for n, nest in enumerate(nests) if sums in _touched(nest))
    before, after = [*nests[:at], _simplified(nests[at], partial)], nests[at + 1 :]
    inner = [_touched(before, root.alloc_buffers), _touched(after, root.alloc_buffers)]
    if (inner[0] & inner[1]) != {sums} or any(p in _touched(before) for p in func.params[-1:]):
        return None
    inputs = [[n for n, p in enumerate(func.params[:-1]) if p in _touched(half)] for half in (before, after)]
    parts = _function(func, before, [*(func.params[n] for n in inputs[0]), sums], inner[0] - {sums})
    total = _function(func, after, [sums, *(func.params[n] for n in inputs[1]), func.params[-1]], inner[1] - {sums})
    return Halves(parts, total, tuple(inputs[0]), tuple(inputs[1]), count)


def _simplified(nest: tirx.Stmt, block: s_tir.SBlock) -> tirx.Stmt:
    """Quotients and remainders of axes that were separated are these axes."""
    analyzer = sym.Analyzer()
    for axis in block.iter_vars:
        analyzer.bind(axis.var, axis.dom)
    return tvm_ffi.structural_map(
        nest, [(tirx.FloorDiv, analyzer.simplify), (tirx.FloorMod, analyzer.simplify)], order="post"
    )


def _touched(code: object, among: Collection[tirx.Var] | None = None) -> set[tirx.Var]:
    """The buffers that statements load from or store to."""
    found: set[tirx.Var] = set()
    for stmt in code if isinstance(code, list) else [code]:
        tvm_ffi.structural_walk(
            stmt,
            [(TensorLoad, lambda n: found.add(n.source)), (tirx.BufferStore, lambda n: found.add(n.buffer))],
            order="pre",
        )
    return found if among is None else found & set(among)


def _function(
    func: tirx.PrimFunc, nests: list[tirx.Stmt], params: list[tirx.Var], inner: Collection[tirx.Var]
) -> tirx.PrimFunc:
    root = func.body.block
    body = nests[0] if len(nests) == 1 else tirx.SeqStmt(nests)
    kept = [b for b in root.alloc_buffers if b in inner]
    block = s_tir.SBlock([], [], [], root.name_hint, body, None, kept)
    made = s_tir.SBlockRealize([], True, block)
    return tirx.PrimFunc(params, made, func.ret_type, func.attrs)
