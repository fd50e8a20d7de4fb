"""Axes that no tile divides: the last tiles are moved back, so that they end where the axis does.

    for t in range(33):                       for t in range(33):
        for i in range(6):                        for i in range(6):
            row = 6 * t + i                           row = min(6 * t, 197 - 6) + i
            if row < 197:                             y[row] = ...
                y[row] = ...

What two tiles compute both is the same twice. So no element is guarded, and all tiles are whole ones: of 197 rows six
at a time cost half a percent more sums than there are, where one row at a time would leave registers empty.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, Range, TensorLoad, TensorRegion
from tvm.s_tir.schedule import ScheduleError

from ...analysis.blocks import SPATIAL
from ...analysis.variables import substituted


@dataclass(frozen=True, slots=True)
class Cover:
    """How tiles cover an axis.

    Parameters
    ----------
    size : int
        Elements of a tile, at most as many as the axis has.
    extent : int
        Elements of all tiles: a multiple of `size`, at least as many as the axis has.
    """

    size: int
    extent: int

    def place(self, element: Expr, end: int) -> Expr:
        """Where an element of the tiles is on the axis, which ends at `end`."""
        tile = tirx.floordiv(element, self.size) * self.size
        return tirx.min(tile, end - self.size) + tirx.floormod(element, self.size)


@dataclass(frozen=True, slots=True)
class _Growth:
    """What has more elements where tiles cover axes of a sum.

    Parameters
    ----------
    axes : dict of Var to int
        The axes of blocks: which axis of the sum each of them is.
    dims : dict of Var to dict
        For each buffer of what the sum becomes, its dimensions: which axis each of them is.
    """

    axes: dict[tirx.Var, int]
    dims: dict[tirx.Var, dict[int, int]]


def can_cover(func: tirx.PrimFunc, first: s_tir.SBlock, axis: int) -> bool:
    """Whether tiles may cover an axis of a block, through all blocks that use its result."""
    return _growth(func, first, [axis]) is not None


def covered(
    func: tirx.PrimFunc, first: s_tir.SBlock, covers: Mapping[int, Cover], packed: tuple[tirx.Var, int, int] | None
) -> tirx.PrimFunc:
    """The same function with tiles that cover axes of a block, through all blocks that use its result.

    Parameters
    ----------
    func : tirx.PrimFunc
        In blocks, not scheduled.
    first : SBlock
        A block of it. Its result is not an output.
    covers : mapping of int to Cover
        For each of the block's axes that tiles cover.
    packed : (Var, int, int) or None
        A parameter whose elements are as the tiles cover them (`Pack.blocks`): it, its dimension, and which axis of the
        block that is.

    Raises
    ------
    ScheduleError
        Tiles cannot cover these axes together.
    """
    growth = _growth(func, first, list(covers))
    if growth is None:
        raise ScheduleError("an axis becomes more than a dimension of what follows")
    dims = dict(growth.dims)
    if packed is not None and packed[2] in covers:
        dims[packed[0]] = {packed[1]: packed[2]}
    larger = {
        buffer: _larger(buffer, {dim: covers[axis].extent for dim, axis in d.items()}) for buffer, d in dims.items()
    }
    ends = {axis: int(first.iter_vars[axis].dom.extent) for axis in covers}

    def block(old: s_tir.SBlock) -> s_tir.SBlock:
        own = {axis.var: growth.axes[axis.var] for axis in old.iter_vars if axis.var in growth.axes}
        if not own:
            return old
        places = {var: covers[axis].place(var, ends[axis]) for var, axis in own.items()}
        code = _Rewriting(places, {axis: var for var, axis in own.items()}, dims)
        iter_vars = [
            tirx.IterVar(_range(a.var, covers[own[a.var]].extent), a.var, a.iter_type) if a.var in own else a
            for a in old.iter_vars
        ]
        return s_tir.SBlock(
            iter_vars, code.regions(old.reads), code.regions(old.writes), old.name_hint, code(old.body),
            None if old.init is None else code(old.init), old.alloc_buffers, old.match_buffers, old.annotations,
        )  # fmt: skip

    loops = {
        value: covers[growth.axes[axis.var]].extent
        for realize in _realizes(func)
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if axis.var in growth.axes
    }

    def loop(old: tirx.For) -> tirx.For:
        if old.loop_var not in loops:
            return old
        return tirx.For(old.loop_var, old.min, _range(old.loop_var, loops[old.loop_var]).extent, old.kind, old.body)

    body = tvm_ffi.structural_map(func.body, [(s_tir.SBlock, block), (tirx.For, loop)], order="post")
    body = tvm_ffi.structural_map(body, (tirx.Var, lambda var: larger.get(var, var)), order="post")
    return tirx.PrimFunc([larger.get(p, p) for p in func.params], body, func.ret_type, func.attrs)


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """Puts the places of elements into a block's code; buffers that have grown keep the elements' numbers."""

    places: Mapping[tirx.Var, Expr]
    var_of: Mapping[int, tirx.Var]
    dims: Mapping[tirx.Var, Mapping[int, int]]

    def __call__(self, code: tirx.Stmt) -> tirx.Stmt:
        def load(node: TensorLoad) -> TensorLoad:
            grown = self.dims.get(node.source)
            return node if grown is None else tirx.BufferLoad(node.source, self._numbers(node.indices, grown))

        def store(node: tirx.BufferStore) -> tirx.BufferStore:
            grown = self.dims.get(node.buffer)
            return (
                node if grown is None else tirx.BufferStore(node.buffer, node.value, self._numbers(node.indices, grown))
            )

        rules: list[tuple[type, Callable[..., object]]] = [(TensorLoad, load), (tirx.BufferStore, store)]
        return tvm_ffi.structural_map(substituted(code, self.places), rules, order="post")

    def regions(self, regions: Sequence[TensorRegion]) -> list[TensorRegion]:
        """What the block says that it reads or writes."""
        made = []
        for region in regions:
            first = self._numbers(
                [substituted(r.min, self.places) for r in region.region], self.dims.get(region.source, {})
            )
            ranges = [Range.from_min_extent(f, r.extent) for f, r in zip(first, region.region, strict=True)]
            made.append(TensorRegion(region.source, ranges, region.ty))
        return made

    def _numbers(self, indices: Sequence[Expr], grown: Mapping[int, int]) -> list[Expr]:
        return [self.var_of[grown[dim]] if dim in grown else index for dim, index in enumerate(indices)]


def _growth(func: tirx.PrimFunc, first: s_tir.SBlock, axes: Sequence[int]) -> _Growth | None:
    """What grows with axes of a block; None where one of them becomes anything but one dimension of what follows."""
    growth = _Growth({first.iter_vars[axis].var: axis for axis in axes}, {})
    extents = {axis: int(first.iter_vars[axis].dom.extent) for axis in axes}
    results = set(func.params)
    for realize in dropwhile(lambda realize: not realize.block.same_as(first), _realizes(func)):
        if not (_follow(realize.block, first, growth) and _grow(realize, extents, results, growth)):
            return None
    return growth


def _follow(block: s_tir.SBlock, first: s_tir.SBlock, growth: _Growth) -> bool:
    """Find the axes by which a block reads what has grown; whether each of them is an index of its own."""
    loads: list[TensorLoad] = []
    if not block.same_as(first):
        tvm_ffi.structural_walk(block.body, [(TensorLoad, loads.append)], order="pre")
    return all(
        isinstance(load.indices[dim], tirx.Var) and growth.axes.setdefault(load.indices[dim], axis) == axis
        for load in loads
        for dim, axis in growth.dims.get(load.source, {}).items()
    )


def _grow(
    realize: s_tir.SBlockRealize, extents: Mapping[int, int], results: Collection[tirx.Var], growth: _Growth
) -> bool:
    """Let what a block writes grow with its axes; whether these are plain loops over all elements."""
    block = realize.block
    pairs = zip(block.iter_vars, realize.iter_values, strict=True)
    own = [(axis, value, growth.axes[axis.var]) for axis, value in pairs if axis.var in growth.axes]
    if not own:
        return True
    numbers = sorted(number for _, _, number in own)
    plain = all(
        axis.iter_type == SPATIAL and int(axis.dom.extent) == extents[number] and isinstance(value, tirx.Var)
        for axis, value, number in own
    )
    if not plain or len(set(numbers)) < len(numbers) or not isinstance(block.body, tirx.BufferStore):
        return False
    if block.body.buffer in results:
        return True
    dims = _dims(block.body, growth.axes)
    if dims is None or sorted(dims.values()) != numbers:
        return False
    growth.dims[block.body.buffer] = dims
    return True


def _dims(store: tirx.BufferStore, axes: Mapping[tirx.Var, int]) -> dict[int, int] | None:
    """The dimensions that axes are the indices of; None where one is a part of an index."""
    dims = {
        dim: axes[index] for dim, index in enumerate(store.indices) if isinstance(index, tirx.Var) and index in axes
    }
    others = [index for dim, index in enumerate(store.indices) if dim not in dims]
    return None if any(var in axes for index in others for var in tirx.analysis.undefined_vars(index)) else dims


def _realizes(func: tirx.PrimFunc) -> Iterator[s_tir.SBlockRealize]:
    """The function's blocks under its root, in the order of the program."""
    found: list[s_tir.SBlockRealize] = []
    tvm_ffi.structural_walk(func.body, [(s_tir.SBlockRealize, found.append)], order="pre")
    yield from (realize for realize in found if realize.block.iter_vars)


def _range(var: tirx.Var, extent: int) -> Range:
    dtype = str(var.ty.dtype)
    return Range.from_min_extent(tirx.IntImm(dtype, 0), tirx.IntImm(dtype, extent))


def _larger(buffer: tirx.Var, extents: Mapping[int, int]) -> tirx.Var:
    shape = [tirx.IntImm(str(n.ty.dtype), extents.get(dim, int(n))) for dim, n in enumerate(buffer.shape)]
    return tirx.decl_buffer(shape, str(buffer.dtype), buffer.name, scope=str(buffer.scope()))
