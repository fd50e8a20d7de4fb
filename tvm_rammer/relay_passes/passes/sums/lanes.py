"""Sums along what follows one another in memory: some at once in the lanes of a vector, which are summed up at the end.

TVM adds one number after another to the one before: each waits for that, and of millions of numbers those that come
last are lost in the rounding.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, TensorLoad

from ....loads.bodies import substituted
from ...bindings import rewrite_prim_funcs, with_root_body
from ...module_pass import module_pass
from ..elements.loops import Places, in_order, loop, nested
from ..elements.nests import goes_along, product, split, statements_of
from .vectorise import is_at

_COMBINES = (tirx.Add, tirx.Max, tirx.Min)
_REGISTERS = 4
"""Vectors of sums at most: as many additions as a core has under way."""
MOST_STEPS = 512
"""Numbers that a lane adds to one another, before their sum is added to those of others."""


def SumInLanes(register_bytes: int) -> tvm.transform.Pass:
    """Make the pass; it works on the sums, maxima and minima of functions in blocks that nobody scheduled.

    Parameters
    ----------
    register_bytes : int
        Of a vector register.
    """
    rewrite = partial(_rewritten, register_bytes)

    @module_pass("SumInLanes")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_prim_funcs(mod, rewrite)

    return run


def _rewritten(register_bytes: int, func: tirx.PrimFunc) -> tirx.PrimFunc | None:
    statements = statements_of(func)
    made = [_in_lanes(statement, register_bytes) for statement in statements]
    if not any(made):
        return None
    return with_root_body(func, [new or old for new, old in zip(made, statements, strict=True)])


def _in_lanes(nest: tirx.Stmt, register_bytes: int) -> tirx.Stmt | None:
    """A nest of loops that sums up, in lanes; None where it does not, or where what it reads is apart."""
    loops: list[tirx.For] = []
    while isinstance(nest, tirx.For):
        loops.append(nest)
        nest = nest.body
    if not isinstance(nest, s_tir.SBlockRealize) or not _is_plain(nest, loops):
        return None
    block = nest.block
    summed = [axis for axis in block.iter_vars if axis.iter_type == tirx.IterVar.CommReduce]
    inner = _in_a_row(block, summed)
    extent = product(axis.dom.extent for axis in inner)
    lanes = _lanes(extent, register_bytes * 8 // block.body.value.ty.dtype.bits)
    if lanes is None:
        return None
    along = [axis for axis in block.iter_vars if axis.iter_type != tirx.IterVar.CommReduce]
    return nested(along, {}, _Sum(block, summed[: len(summed) - len(inner)], inner, lanes).code)


def _is_plain(realize: s_tir.SBlockRealize, loops: Sequence[tirx.For]) -> bool:
    """Whether it is a sum, maximum or minimum of numbers of 32 or 64 bits, in serial loops, one for each axis."""
    block = realize.block
    store, init = block.body, block.init
    if not isinstance(store, tirx.BufferStore) or not isinstance(init, tirx.BufferStore):
        return False
    value, calls = store.value, list[Call]()
    tvm_ffi.structural_walk(value, (Call, calls.append), order="pre")
    wide = str(value.ty.dtype) in ("float32", "float64", "int32", "int64")
    return (
        wide
        and isinstance(value, _COMBINES)
        and sum(is_at(part, store) for part in (value.a, value.b)) == 1
        and _count(value, store) == 1
        and not calls
        and is_at(init, store)
        and isinstance(realize.predicate, tirx.IntImm)
        and int(realize.predicate) == 1
        and {loop.loop_var for loop in loops} == set(realize.iter_values)
        and len(loops) == len(realize.iter_values)
        and all(loop.kind == tirx.ForKind.SERIAL for loop in loops)
        and all(str(axis.var.ty.dtype) == "int64" for axis in block.iter_vars)
    )


def _count(value: Expr, store: tirx.BufferStore) -> int:
    """How often an expression reads the buffer that a statement stores to."""
    found: list[TensorLoad] = []
    tvm_ffi.structural_walk(value, (TensorLoad, found.append), order="pre")
    return sum(load.source.same_as(store.buffer) for load in found)


def _in_a_row(block: s_tir.SBlock, summed: Sequence[tirx.IterVar]) -> list[tirx.IterVar]:
    """The last axes of a sum, along which the block reads memory in its order."""
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(block.body.value, (TensorLoad, loads.append), order="pre")
    count = 0
    while count < len(summed) and (count == 0 or isinstance(summed[-count].dom.extent, tirx.IntImm)):
        inner = [(axis.var, axis.dom.extent) for axis in summed[len(summed) - count - 1 :]]
        if not all(goes_along(inner, (load.source, load.indices)) for load in loads):
            break
        count += 1
    return list(summed[len(summed) - count :])


def _lanes(extent: Expr, register: int) -> int | None:
    """How many sums are under way; None where there is nothing to gain."""
    if not isinstance(extent, tirx.IntImm):
        return register * _REGISTERS
    fitting = [n for n in (register * _REGISTERS, register, register // 2) if int(extent) >= 2 * n]
    return fitting[0] if fitting and fitting[0] > 1 else None


@dataclass(frozen=True, slots=True)
class _Sum:
    """One result, of a block: sums in lanes, of what fills no vector, too, and then all of them together.

    Parameters
    ----------
    block : s_tir.SBlock
    outer, inner : sequence of tirx.IterVar
        The axes that are summed: the last ones go through memory in its order.
    lanes : int
    """

    block: s_tir.SBlock
    outer: Sequence[tirx.IterVar]
    inner: Sequence[tirx.IterVar]
    lanes: int

    def code(self, at: Places) -> tirx.Stmt:
        """The sum, where the other axes are."""
        store, combine = self.block.body, type(self.block.body.value)
        kind = str(store.value.ty.dtype)
        begin = substituted(self.block.init.value, at)
        neutral = tirx.const(0, kind) if combine is tirx.Add else begin
        sums, totals = (tirx.decl_buffer((self.lanes,), kind, name) for name in ("sums", "totals"))
        extent = product(axis.dom.extent for axis in self.inner)
        full = tirx.floordiv(extent, self.lanes)
        # Of many numbers those that come last would be lost: some are summed up by themselves.
        apart = combine is tirx.Add and kind.startswith("float") and (self.outer or not _is_at_most(full, MOST_STEPS))
        into = totals if apart else sums

        def added(lane: Expr, k: Expr, at: Places) -> tirx.Stmt:
            value = tvm_ffi.structural_map(
                store.value, [(TensorLoad, lambda load: sums[lane] if is_at(load, store) else load)], order="post"
            )
            places = split([(axis.var, axis.dom.extent) for axis in self.inner], k)
            return tirx.BufferStore(sums, substituted(value, at | places), [lane])

        def vectors(first: Expr, count: Expr, at: Places) -> tirx.Stmt:
            return loop(count, lambda i: self._each(lambda e: added(e, (first + i) * self.lanes + e, at)))

        def rest(at: Places) -> tirx.Stmt:
            return loop(extent - full * self.lanes, lambda e: added(e, full * self.lanes + e, at))

        def part(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
            start = self._each(lambda e: tirx.BufferStore(sums, neutral, [e]))
            end = self._each(lambda e: tirx.BufferStore(totals, totals[e] + sums[e], [e]))
            return tirx.SeqStmt([start, *statements, end])

        def step(at: Places) -> tirx.Stmt:
            if not apart:
                return in_order([vectors(tirx.IntImm("int64", 0), full, at), rest(at)])
            parts = tirx.floordiv(full, MOST_STEPS)
            steps = tirx.IntImm("int64", MOST_STEPS)
            return in_order([
                loop(parts, lambda p: part([vectors(p * MOST_STEPS, steps, at)])),
                part([vectors(parts * MOST_STEPS, full - parts * MOST_STEPS, at), rest(at)]),
            ])  # fmt: skip

        place = [substituted(index, at) for index in store.indices]
        arrays = [sums, totals] if apart else [sums]
        return tirx.SeqStmt([
            *map(tirx.AllocBuffer, arrays),
            self._each(lambda e: tirx.BufferStore(into, neutral, [e])),
            nested(self.outer, at, step),
            *self._together(into),
            tirx.BufferStore(store.buffer, combine(begin, into[tirx.IntImm("int64", 0)]), place),
        ])  # fmt: skip

    def _each(self, body: Callable[[Expr], tirx.Stmt]) -> tirx.Stmt:
        return loop(self.lanes, body, "VECTORIZED")

    def _together(self, sums: tirx.Var) -> Iterator[tirx.Stmt]:
        """All lanes into the first, half of them at a time."""
        combine, lanes = type(self.block.body.value), self.lanes
        while lanes > 1:
            lanes //= 2
            half = tirx.IntImm("int64", lanes)

            def joined(e: Expr, half: Expr = half) -> tirx.Stmt:
                return tirx.BufferStore(sums, combine(sums[e], sums[e + half]), [e])

            yield loop(lanes, joined, "VECTORIZED") if lanes > 1 else joined(tirx.IntImm("int64", 0))


def _is_at_most(extent: Expr, most: int) -> bool:
    return isinstance(extent, tirx.IntImm) and int(extent) <= most
