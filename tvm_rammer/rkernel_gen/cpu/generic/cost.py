"""The cost model of the generic rule: iterations of blocks, their intrinsics, and memory traffic."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, TensorLoad

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ....loads.bodies import operation
from ....vector_math import FORMULAS, quarters_of
from ...analysis.blocks import SPATIAL, blocks_of, is_reduction
from ...analysis.variables import uses
from ...analysis.work import Work, shape_of
from ..branches import is_choice
from ..cost import RTASK_US, stream_us
from ..reciprocals import divides_exactly
from .read import inlined_schedule, reads_along, spatial_axes, splits_of, vector_width

FUNCTION_CYCLES = {
    "acos": 12.0, "acosh": 38.0, "asin": 12.0, "asinh": 45.0, "atan": 20.0, "atanh": 34.0, "ceil": 4.0, "cos": 62.0,
    "erf": 11.0, "exp": 8.0, "floor": 4.0, "log": 22.0, "log1p": 20.0, "nearbyint": 4.0, "pow": 12.0, "round": 4.0,
    "rsqrt": 1.0, "sigmoid": 11.0, "sin": 62.0, "sqrt": 10.0, "tan": 70.0, "tanh": 12.0, "trunc": 4.0,
}  # fmt: skip
"""Cycles for a vector of results, of `log`, `sqrt` and `tanh` as on an AMD EPYC of family 25; `rsqrt` is once a row."""
MAX_VECTOR = 64
"""Longer vectors than any device has."""
FREE_CALLS = frozenset(
    {"call_llvm_pure_intrin", "fabs", "if_then_else", "isfinite", "isinf", "isnan", "likely", "reinterpret"}
)
CALL_CYCLES = 20.0
"""Cycles for one call of a function of the C library."""
DIVISION_CYCLES = 7.0
"""Cycles for a vector of quotients, in a kernel that does nothing else (an AMD EPYC of family 25)."""
NODE_CYCLES = 0.06
"""Cycles for a vector of results of each expression node, loads and indices included."""
SUM_CYCLES = 1.6
"""Cycles from one addition of a sum to the next."""
LONG_EXTREME_CYCLES = 4.5
"""Cycles from one number to the next of a search for the largest or smallest one, in which NaN stays."""
ROW_CYCLES = 20.0
"""Cycles to start a sum, and to add up its vector of partial sums."""
GATHER_CYCLES = 1.0
"""Cycles for each element that is not read as part of a contiguous vector."""


@dataclass(frozen=True, slots=True)
class BlockCost:
    """The cost of one block, and how it is shared among rTasks.

    Parameters
    ----------
    points : int
        Iterations of the block.
    results : int
        Elements that it writes, if they are sums along rows; 0 for others.
    width : int
        Longest vector that its last axis can be split into.
    vector_cycles, element_cycles : float
        Cycles for a vector of points, and further cycles for each point.
    axes : frozenset of int
        Axes of the output that determine which of the block's elements are needed.
    loops : bool
        Whether an iteration has loops of its own, of which only the data may know how long they are.
    """

    points: int
    results: int
    width: int
    vector_cycles: float
    element_cycles: float
    axes: frozenset[int]
    loops: bool

    def cycles(self, simd: int) -> float:
        """Cycles of all its iterations."""
        return (
            self.points * (self.vector_cycles / min(simd, self.width) + self.element_cycles) + self.results * ROW_CYCLES
        )


def generic_us(func: tirx.PrimFunc, parts: int, simd: int, shape: tuple[int, ...], device: DeviceSpec) -> float:
    """Time of one rTask, in microseconds.

    Parameters
    ----------
    parts : int
        Number of rTasks; each computes all that it needs itself.
    simd : int
        Elements of a vector.
    shape : tuple of int
        Shape of the output that is split.
    """
    costs, read, written = _block_costs(func)
    splits = splits_of(shape, parts) or (1,)
    cycles = sum(
        cost.cycles(simd) / math.prod(c for axis, c in enumerate(splits) if axis in cost.axes) for cost in costs
    )
    if any(cost.loops for cost in costs):
        cycles = max(cycles, Work.of(func).flops / device.flops_per_cycle / parts)
    return RTASK_US + max(cycles / (device.clock_ghz * 1e3), stream_us(read, written, parts, device))


@lru_cache(maxsize=64)
def _block_costs(func: tirx.PrimFunc) -> tuple[tuple[BlockCost, ...], int, int]:
    """The cost of each block of a function, and the bytes that all of them read and write of its parameters."""
    sch = inlined_schedule(func)
    axes_of: dict[tirx.Buffer, list[frozenset[int]]] = {}
    reads: dict[tirx.Buffer, int] = {}
    writes: dict[tirx.Buffer, int] = {}
    costs: list[BlockCost] = []
    for rv in reversed(blocks_of(sch)):
        block = sch.get(rv)
        axes = spatial_axes(block)
        known = axes_of.get(block.writes[0].source, [frozenset([i]) for i in range(len(axes))])
        by_axis = {axis.var: by for axis, by in zip(axes, known, strict=False)}
        costs.append(_block_cost(block, frozenset().union(*by_axis.values()), reduces=is_reduction(sch, rv)))
        for touched, regions in ((reads, block.reads), (writes, block.writes)):
            for region in regions:
                touched[region.source] = touched.get(region.source, 0) + costs[-1].points
        for read in block.reads:
            axes_of.setdefault(read.source, [_used(r.min, by_axis) for r in read.region])
    read, written = (
        sum(min(touched.get(p, 0), math.prod(shape_of(p))) * ITEM_BYTES[str(p.dtype)] for p in func.params)
        for touched in (reads, writes)
    )
    return tuple(costs), read, written


def expression_cycles(block: s_tir.SBlock) -> tuple[float, int]:
    """Cycles for a vector of what a block computes, and how many functions of the C library an element calls."""
    return _cycles(block, _innermost(block), *_parts(block)[:2])


def _innermost(block: s_tir.SBlock) -> tirx.Var | None:
    """The axis that becomes vectors: of a reduction its last one or, where rows do not lie along it, the results'."""
    axes = [axis for axis in block.iter_vars if int(axis.dom.extent) > 1]
    results = [axis for axis in axes if axis.iter_type == SPATIAL]
    if not axes:
        return None
    return results[-1].var if results and not reads_along(block, axes[-1].var) else axes[-1].var


def _cycles(
    block: s_tir.SBlock, axis: tirx.Var | None, nodes: Sequence[Expr], calls: Sequence[Call]
) -> tuple[float, int]:
    """What is the same in a whole row is computed once there, and costs next to nothing."""

    def varies(value: Expr) -> bool:
        return axis is None or uses(value, axis)

    costly = [call for call in calls if operation(call) not in FREE_CALLS and varies(call)]
    functions = [cycles for call in costly if (cycles := _function_cycles(call)) is not None]
    quotients = [node for node in nodes if isinstance(node, tirx.Div) and "float" in str(node.ty.dtype)]
    divides = divides_exactly(block.body)
    divisions = sum(varies(node.b) or (divides and varies(node.a)) for node in quotients)
    vector = NODE_CYCLES * len(nodes) + DIVISION_CYCLES * divisions + sum(functions)
    return vector, len(costly) - len(functions)


def _parts(block: s_tir.SBlock) -> tuple[list[Expr], list[Call], list[TensorLoad]]:
    """All expressions of a block's body, the calls and the loads among them."""
    nodes: list[Expr] = []
    calls: list[Call] = []
    loads: list[TensorLoad] = []
    visits: list[tuple[Any, Callable[[Any], None]]] = [
        (Call, calls.append),
        (TensorLoad, loads.append),
        (Expr, nodes.append),
    ]
    body = tvm_ffi.structural_map(block.body, (Call, _longer_arm), order="post")
    for visit in visits:
        tvm_ffi.structural_walk(body, [visit], order="pre")
    return nodes, calls, loads


def _block_cost(block: s_tir.SBlock, axes: frozenset[int], *, reduces: bool) -> BlockCost:
    points = math.prod(int(axis.dom.extent) for axis in block.iter_vars)
    results = math.prod(int(axis.dom.extent) for axis in spatial_axes(block))
    along = reduces and reads_along(block, block.iter_vars[-1].var)
    nodes, called, loads = _parts(block)
    axis = _innermost(block)
    vector, calls = _cycles(block, axis, nodes, called)
    chain = LONG_EXTREME_CYCLES if any(isinstance(node, tirx.Max | tirx.Min) for node in nodes) else SUM_CYCLES
    gathers = sum(_is_gather(load, axis) for load in loads) if axis is not None else 0
    return BlockCost(
        points=points, results=results if along else 0, axes=axes,
        width=vector_width(int(block.iter_vars[-1].dom.extent), MAX_VECTOR) if along else MAX_VECTOR,
        vector_cycles=max(vector, chain) if reduces else vector,
        element_cycles=CALL_CYCLES * calls + GATHER_CYCLES * gathers,
        loops=not isinstance(block.body, tirx.BufferStore),
    )  # fmt: skip


def _longer_arm(call: Call) -> Expr:
    """Of a choice that a loop makes once, as that of a concatenation's part, what has more to do: the loop is split."""
    if operation(call) != "if_then_else":
        return call
    condition, *arms = call.args
    return max(arms, key=_size) if is_choice(condition) else call


def _size(value: Expr) -> int:
    nodes: list[Expr] = []
    tvm_ffi.structural_walk(value, [(Expr, nodes.append)], order="pre")
    return len(nodes)


def _function_cycles(call: Call) -> float | None:
    """Cycles of a function for a vector; None where it is called for each element."""
    name = operation(call)
    if name in FORMULAS and str(call.args[0].ty.dtype) != "float32":
        return None
    return None if name == "pow" and quarters_of(call.args[1]) is None else FUNCTION_CYCLES.get(name)


def _is_gather(load: TensorLoad, axis: tirx.Var) -> bool:
    """Whether neighbours along the innermost axis are not read from neighbouring places, nor from the same one.

    Where an index divides by a number, as that of a resize, places are copied, not gathered.
    """
    if not load.indices:
        return False
    *outer, last = load.indices
    if any(uses(index, axis) for index in outer):
        return True
    if last.same_as(axis) or not uses(last, axis):
        return False
    linear = tvm.sym.detect_linear_equation(last, [axis])
    return int(linear[0]) not in (0, 1) if linear and isinstance(linear[0], tirx.IntImm) else _is_computed(last)


def _is_computed(index: Expr) -> bool:
    """Whether an index comes from floats, as in a resize, or from an array."""
    found: list[bool] = []
    visits: list[tuple[Any, Callable[[Any], None]]] = [
        (tirx.Cast, lambda cast: found.append("float" in str(cast.value.ty.dtype))),
        (TensorLoad, lambda _: found.append(True)),
    ]
    for visit in visits:
        tvm_ffi.structural_walk(index, [visit], order="pre")
    return any(found)


def _used(index: Expr, axes: Mapping[tirx.Var, frozenset[int]]) -> frozenset[int]:
    found: list[frozenset[int]] = [frozenset()]
    tvm_ffi.structural_walk(index, [(tirx.Var, lambda v: found.append(axes.get(v, frozenset())))], order="pre")
    return frozenset().union(*found)
