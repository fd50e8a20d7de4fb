"""Largest (or smallest) elements of windows over a padded image, without padding.

    padded[y] = 1 <= y && y < 14 ? image[y - 1] : -inf         padded[y] = image[max(1, min(y, 13)) - 1]

A window that covers a part of the image covers the image's edge beside the padding, and a maximum is the same with an
element twice. So no load has a condition, and all elements of a row of windows share one bound of their index.
"""

from collections.abc import Sequence

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, TensorLoad

from ..analysis.accumulation import read_accumulation
from ..analysis.affine import are, linear
from ..analysis.blocks import REDUCTION

_Box = dict[tirx.Var, tuple[int, int]]


def padded_by_edges(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The same function, in which extremes over windows have the image's edge in the place of padding.

    Parameters
    ----------
    func : tirx.PrimFunc
        In blocks, not scheduled. Returned as it is where it pads nothing so.
    """
    blocks: list[s_tir.SBlock] = []
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(func.body, [(s_tir.SBlock, blocks.append), (TensorLoad, loads.append)], order="pre")
    edged: dict[s_tir.SBlock, s_tir.SBlock] = {}
    for window in blocks:
        found = read_accumulation(window)
        if found is None or found.combine not in ("maximum", "minimum") or not isinstance(found.term, TensorLoad):
            continue
        image = found.term.source
        pads = [b for b in blocks if isinstance(b.body, tirx.BufferStore) and b.body.buffer.same_as(image)]
        if len(pads) == 1 and sum(load.source.same_as(image) for load in loads) == 1:
            value = _by_edges(pads[0], window, found.term.indices, found.initial)
            if value is not None:
                edged[pads[0]] = _with_value(pads[0], value)
    if not edged:
        return func
    return func.with_body(
        tvm_ffi.structural_map(func.body, (s_tir.SBlock, lambda block: edged.get(block, block)), order="post")
    )


def _with_value(pads: s_tir.SBlock, value: Expr) -> s_tir.SBlock:
    """The block with another value, and with the regions that this reads."""
    body = tirx.BufferStore(pads.body.buffer, value, pads.body.indices)
    bare = s_tir.SBlock(pads.iter_vars, [], pads.writes, pads.name_hint, body)
    sources = {region.source: region.source for region in (*pads.reads, *pads.writes)}
    reads, _, _ = s_tir.analysis.get_sblock_access_region(bare, sources)
    return s_tir.SBlock(
        pads.iter_vars, reads, pads.writes, pads.name_hint, body, pads.init, pads.alloc_buffers, pads.match_buffers,
        pads.annotations,
    )  # fmt: skip


def _by_edges(pads: s_tir.SBlock, window: s_tir.SBlock, places: Sequence[Expr], initial: float) -> Expr | None:
    """The value of a padded element, with indices bounded to those without padding; None where it might differ."""
    axes = [axis.var for axis in pads.iter_vars]
    value = pads.body.value
    if not are(pads.body.indices, axes) or not isinstance(value, Call) or not value.op.name.endswith("if_then_else"):
        return None
    condition, element, padding = value.args
    extents = {axis.var: int(axis.dom.extent) for axis in pads.iter_vars}
    box = _box(condition, extents)
    is_padding = isinstance(padding, tirx.FloatImm | tirx.IntImm) and padding.value == initial
    if box is None or not is_padding:
        return None
    for axis, place in zip(axes, places, strict=True):
        if axis in box and not _all_cover(window, place, *box[axis]):
            return None
    near = {axis: tirx.max(tirx.min(axis, last), first) for axis, (first, last) in box.items()}
    return tvm_ffi.structural_map(element, (tirx.Var, lambda v: near.get(v, v)), order="post")


def _box(condition: Expr, extents: dict[tirx.Var, int]) -> _Box | None:
    """The first and last value of each axis that a condition bounds; None where it says anything else."""
    box: _Box = {}
    terms = [condition]
    while terms:
        term = terms.pop()
        if isinstance(term, tirx.And):
            terms += [term.a, term.b]
            continue
        match term:
            case tirx.LE(a=tirx.IntImm() as bound, b=tirx.Var() as axis):
                first, last = int(bound), None
            case tirx.LT(a=tirx.Var() as axis, b=tirx.IntImm() as bound):
                first, last = 0, int(bound) - 1
            case _:
                return None
        if axis not in extents:
            return None
        known = box.get(axis, (0, extents[axis] - 1))
        box[axis] = max(known[0], first), known[1] if last is None else min(known[1], last)
    return box


def _all_cover(window: s_tir.SBlock, place: Expr, first: int, last: int) -> bool:
    """Whether all windows, along one axis, are of neighbours and cover some place from `first` to `last`."""
    axes = window.iter_vars
    factors = linear(place, [axis.var for axis in axes])
    if factors is None or min(factors) < 0:
        return False
    begin = end = factors[-1]
    covered = 1
    for axis, factor in zip(axes, factors, strict=False):
        if axis.iter_type != REDUCTION:
            end += factor * (int(axis.dom.extent) - 1)
        elif factor > 1 or (factor and covered > 1):
            return False
        elif factor:
            covered = int(axis.dom.extent)
    return begin + covered - 1 >= first and end <= last
