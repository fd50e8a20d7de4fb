"""A product as expressions: an element of each operand, a product of two of them, and what is stored of a sum.

TVM's schedule inlines what comes before the product (padding, activations) and after it (bias, activations). What it
leaves are three blocks; here they are read as functions of the product's axes, so that any loops can be built of them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad
from tvm.s_tir.dlight.gpu.matmul import auto_inline_consumer_chain, auto_inline_producers
from tvm.s_tir.schedule import SBlockRV

from ...analysis.blocks import REDUCTION, new_schedule
from ...analysis.variables import substituted, uses
from .problem import fastest_axes, summed_products

Values = Mapping[tirx.Var, Expr]


@dataclass(frozen=True, slots=True)
class Axes:
    """Axes of a product's block with their extents: the linear index of a group counts them, the last one fastest."""

    variables: tuple[tirx.Var, ...]
    extents: tuple[int, ...]

    @property
    def extent(self) -> int:
        """Of the linear index."""
        return math.prod(self.extents)

    def at(self, index: Expr) -> dict[tirx.Var, Expr]:
        """The value of each axis at a linear index."""
        moving = [axis for axis in zip(self.variables, self.extents, strict=True) if axis[1] > 1]
        values: dict[tirx.Var, Expr] = {var: tirx.IntImm("int64", 0) for var in self.variables}
        for var, extent in reversed(moving[1:]):
            values[var] = tirx.floormod(index, tirx.IntImm("int64", extent))
            index = tirx.floordiv(index, tirx.IntImm("int64", extent))
        return values | {var: index for var, _ in moving[:1]}


@dataclass(frozen=True, slots=True)
class Operand:
    """What is read for an element of A or B.

    Parameters
    ----------
    value : Expr
        In terms of the product's axes.
    dtype : str
    spatial_fast : bool
        Whether neighbours in memory differ in I or J, not in K.
    """

    value: Expr
    dtype: str
    spatial_fast: bool


@dataclass(frozen=True, slots=True)
class Product:
    """A product, in terms of the axes of its block.

    Parameters
    ----------
    s, i, j : Axes
        Batch and groups, pixels or rows, filters or columns.
    taps, channels : Axes
        The summed axes that slide over an image with its pixels, and the others.
    operands : tuple of Operand
        A and B.
    dtype : str
        Of the sums.
    add : callable
        A sum after an element of A and one of B were multiplied: `add(sum, a, b)`.
    store : callable
        `store(values, sum)` stores the result at the values of the axes.
    fast_i : bool
        Whether neighbours in the output differ in I.
    """

    s: Axes
    i: Axes
    j: Axes
    taps: Axes
    channels: Axes
    operands: tuple[Operand, Operand]
    dtype: str
    add: Callable[[Expr, Expr, Expr], Expr]
    store: Callable[[Values, Expr], tirx.Stmt]
    fast_i: bool


def read_product(func: tirx.PrimFunc) -> Product:
    """Read a function that has a product.

    Raises
    ------
    ScheduleError, AssertionError
        What surrounds the product cannot be inlined.
    ValueError
        It is no product, or what remains after inlining has another form.
    """
    sch = new_schedule(func)
    found = summed_products(sch)
    if found is None:
        raise ValueError("the function has no product")
    main = found[0]
    stmt = sch.get(main)
    spatial = {axis.var for axis in stmt.iter_vars if axis.iter_type != REDUCTION}
    fast = [bool(fastest_axes(stmt, read) & spatial) for read in stmt.reads]
    taps = window_axes(stmt)
    kinds = ["SIJ"[_kind(stmt, axis)] if axis.iter_type != REDUCTION else "K" for axis in stmt.iter_vars]
    fast_axes = fastest_axes(stmt, stmt.writes[0])
    fast_i = any(k == "I" and axis.var in fast_axes for k, axis in zip(kinds, stmt.iter_vars, strict=True))
    reads = [sch.reindex(main, ("read", n)) for n in (0, 1)]
    write = sch.reindex(main, ("write", 0))
    for read in reads:
        auto_inline_producers(sch, read)
    auto_inline_consumer_chain(sch, write)
    stmt = sch.get(main)
    groups: dict[str, list[tirx.IterVar]] = {name: [] for name in "SIJTC"}
    for position, (kind, axis) in enumerate(zip(kinds, stmt.iter_vars, strict=True)):
        groups["T" if position in taps else "C" if kind == "K" else kind].append(axis)
    axes = {name: Axes(tuple(a.var for a in g), tuple(int(a.dom.extent) for a in g)) for name, g in groups.items()}
    loads = _loads(stmt, [sch.get(read) for read in reads], sch.get(write))
    return Product(
        axes["S"], axes["I"], axes["J"], axes["T"], axes["C"],
        operands=(_operand(sch, reads[0], loads[0], fast[0]), _operand(sch, reads[1], loads[1], fast[1])),
        dtype=str(loads[2].ty.dtype),
        add=lambda total, a, b: _replaced(stmt.body.value, dict(zip(loads, (a, b, total), strict=True))),
        store=_store(sch, write, loads[2]),
        fast_i=fast_i,
    )  # fmt: skip


def _kind(stmt: s_tir.SBlock, axis: tirx.IterVar) -> int:
    """0, 1 or 2: the axis indexes both operands, A alone, or B alone."""
    a, b = (any(uses(part.min, axis.var) for part in stmt.reads[n].region) for n in (0, 1))
    return 0 if a and b else 1 if a else 2


def window_axes(stmt: s_tir.SBlock) -> set[int]:
    """Positions of the summed axes that share an index of A with another axis."""
    reduced = {axis.var: i for i, axis in enumerate(stmt.iter_vars) if axis.iter_type == REDUCTION}
    shared: set[int] = set()
    for part in stmt.reads[0].region:
        used = set(tirx.analysis.undefined_vars(part.min))
        if len([axis for axis in stmt.iter_vars if axis.var in used]) > 1:
            shared |= {reduced[var] for var in used & set(reduced)}
    return shared


def _loads(stmt: s_tir.SBlock, reads: Sequence[s_tir.SBlock], write: s_tir.SBlock) -> tuple[TensorLoad, ...]:
    """The loads of A, of B and of the sum in the product's block, whose indices are its axes."""
    found: list[TensorLoad] = []
    tvm_ffi.structural_walk(stmt.body.value, [(TensorLoad, found.append)], order="pre")
    buffers = [*(read.writes[0].source for read in reads), stmt.body.buffer]
    loads = tuple(next((load for load in found if load.source.same_as(b)), None) for b in buffers)
    if None in loads or len(found) != 3 or not _reads(write, buffers[2]):
        raise ValueError("the product's block does more than to multiply and add")
    return loads


def _reads(block: s_tir.SBlock, buffer: tirx.Var) -> bool:
    return any(region.source.same_as(buffer) for region in block.reads)


def _operand(sch: s_tir.Schedule, block: SBlockRV, load: TensorLoad, spatial_fast: bool) -> Operand:
    """An element, in the axes of the product: its own block has axes of its own."""
    stmt = sch.get(block)
    own = dict(zip(stmt.body.indices, load.indices, strict=True))
    if not all(isinstance(index, tirx.Var) for index in own):
        raise ValueError("an operand's block does not write its axes")
    return Operand(substituted(stmt.body.value, own), str(load.ty.dtype), spatial_fast)


def _store(sch: s_tir.Schedule, block: SBlockRV, total: TensorLoad) -> Callable[[Values, Expr], tirx.Stmt]:
    stmt = sch.get(block)
    sums: list[TensorLoad] = []
    tvm_ffi.structural_walk(
        stmt.body, [(TensorLoad, lambda n: sums.append(n) if n.source.same_as(total.source) else None)], order="pre"
    )
    if not sums or not isinstance(stmt.body, tirx.BufferStore) or not _is_whole(sch, block):
        raise ValueError("the results are not stored one by one")
    own = dict(zip(sums[0].indices, total.indices, strict=True))
    if not all(isinstance(index, tirx.Var) for index in own):
        raise ValueError("a result is read at other places than the block's axes")

    def store(values: Values, result: Expr) -> tirx.Stmt:
        places = {var: substituted(index, values) for var, index in own.items()}
        body = substituted(stmt.body, places | {v: tirx.IntImm("int64", 0) for v in unit - set(places)})
        return tvm_ffi.structural_map(
            body, (TensorLoad, lambda n: result if n.source.same_as(total.source) else n), order="post"
        )

    unit = {axis.var for axis in stmt.iter_vars if int(axis.dom.extent) == 1}
    if not {axis.var for axis in stmt.iter_vars} <= unit | set(own):
        raise ValueError("what follows the product has axes of its own")
    return store


def _is_whole(sch: s_tir.Schedule, block: SBlockRV) -> bool:
    """Whether a block runs for all its axes, without a condition."""
    realize: list[s_tir.SBlockRealize] = []
    name = sch.get(block).name_hint

    def visit(node: s_tir.SBlockRealize) -> None:
        if node.block.name_hint == name:
            realize.append(node)

    tvm_ffi.structural_walk(sch.mod["main"].body, [(s_tir.SBlockRealize, visit)], order="pre")
    return all(isinstance(node.predicate, tirx.IntImm) and node.predicate.value for node in realize)


def _replaced(value: Expr, places: Mapping[TensorLoad, Expr]) -> Expr:
    def load(node: TensorLoad) -> Expr:
        return next((new for old, new in places.items() if old.source.same_as(node.source)), node)

    return tvm_ffi.structural_map(value, (TensorLoad, load), order="post")
