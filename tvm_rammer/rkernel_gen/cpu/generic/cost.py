"""What an rTask of the generic rule costs, as predicted: the points of its blocks, their functions, and the bytes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, TensorLoad

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ...analysis.anchor import blocks_of, is_reduction
from ..cost import RTASK_US, traffic_us
from .read import cuts_of, reads_along, spatial_axes, start, vector_width

FUNCTION_CYCLES = {"exp": 8.0, "tanh": 7.0, "sigmoid": 11.0, "sqrt": 5.0, "rsqrt": 1.0, "pow": 12.0, "floor": 4.0}
"""Cycles for a vector of results; `rsqrt` comes once a row."""
LONGEST_VECTOR = 64
CHEAP = frozenset({"if_then_else", "likely", "reinterpret"})
CALL_CYCLES = 20.0
"""Cycles for one result of a function of the C library."""
NODE_CYCLES = 0.06
"""Cycles for a vector of results of each operation, loads and indices included."""
SUM_CYCLES = 1.6
"""Cycles from one addition of a sum to the next."""
ROW_CYCLES = 20.0
"""Cycles to begin a sum, and to add its lanes up."""
GATHER_CYCLES = 1.0
"""Cycles for each element that is read from where no vector lies."""


@dataclass(frozen=True, slots=True)
class Share:
    """One block, and what the rTasks of an output need of it.

    Parameters
    ----------
    points : int
        All its iterations.
    results : int
        Elements that it writes of sums along rows; 0 for all else.
    width : int
        Longest vector that its last axis can be cut into.
    vector_cycles, element_cycles : float
        Cycles for a vector of points, and for each point besides.
    axes : frozenset of int
        Axes of the output that choose which of the block's elements are needed.
    """

    points: int
    results: int
    width: int
    vector_cycles: float
    element_cycles: float
    axes: frozenset[int]

    def cycles(self, lanes: int) -> float:
        """Of the whole block."""
        return (
            self.points * (self.vector_cycles / min(lanes, self.width) + self.element_cycles)
            + self.results * ROW_CYCLES
        )


def generic_us(func: tirx.PrimFunc, parts: int, lanes: int, shape: tuple[int, ...], device: DeviceSpec) -> float:
    """Time of one rTask, in microseconds.

    Parameters
    ----------
    parts : int
        Number of rTasks, each of which computes for itself what it needs.
    lanes : int
        Elements of a vector.
    shape : tuple of int
        Of the output that is cut.
    """
    shares, nbytes = _shares(func)
    cuts = cuts_of(shape, parts) or (1,)
    cycles = sum(
        share.cycles(lanes) / math.prod(c for axis, c in enumerate(cuts) if axis in share.axes) for share in shares
    )
    return RTASK_US + max(cycles / (device.clock_ghz * 1e3), traffic_us(nbytes, nbytes / parts, device))


@lru_cache(maxsize=64)
def _shares(func: tirx.PrimFunc) -> tuple[tuple[Share, ...], int]:
    """What each block of a function costs; and the bytes that all touch together."""
    sch = start(func)
    chosen: dict[tirx.Buffer, list[frozenset[int]]] = {}
    touched: dict[tirx.Buffer, int] = {}
    shares = []
    for rv in reversed(blocks_of(sch)):
        block = sch.get(rv)
        axes = spatial_axes(block)
        known = chosen.get(block.writes[0].source, [frozenset([i]) for i in range(len(axes))])
        by_axis = {axis.var: by for axis, by in zip(axes, known, strict=False)}
        shares.append(_share(block, frozenset().union(*by_axis.values()), reduces=is_reduction(sch, rv)))
        for region in (*block.reads, *block.writes):
            touched[region.source] = touched.get(region.source, 0) + shares[-1].points
        for read in block.reads:
            chosen.setdefault(read.source, [_used(r.min, by_axis) for r in read.region])
    nbytes = [
        min(touched.get(p, 0), math.prod(int(s) for s in p.shape)) * ITEM_BYTES[str(p.dtype)] for p in func.params
    ]
    return tuple(shares), sum(nbytes)


def _share(block: s_tir.SBlock, axes: frozenset[int], *, reduces: bool) -> Share:
    nodes: list[Expr] = []
    names: list[str] = []
    loads: list[TensorLoad] = []
    visits = [
        (Call, lambda c: names.append(c.op.name.split(".")[-1])),
        (TensorLoad, loads.append),
        (Expr, nodes.append),
    ]
    for visit in visits:
        tvm_ffi.structural_walk(block.body, [visit], order="pre")
    points = math.prod(int(axis.dom.extent) for axis in block.iter_vars)
    results = math.prod(int(axis.dom.extent) for axis in spatial_axes(block))
    along = reduces and reads_along(block, block.iter_vars[-1].var)
    scalar = [name for name in names if name not in FUNCTION_CYCLES and name not in CHEAP]
    vector = NODE_CYCLES * len(nodes) + sum(FUNCTION_CYCLES.get(name, 0.0) for name in names)
    gathers = sum(_is_gather(load, block.iter_vars[-1].var) for load in loads) if block.iter_vars else 0
    return Share(
        points=points, results=results if along else 0, axes=axes,
        width=vector_width(int(block.iter_vars[-1].dom.extent), LONGEST_VECTOR) if along else LONGEST_VECTOR,
        vector_cycles=max(vector, SUM_CYCLES) if reduces else vector,
        element_cycles=CALL_CYCLES * len(scalar) + GATHER_CYCLES * gathers,
    )  # fmt: skip


def _is_gather(load: TensorLoad, axis: tirx.Var) -> bool:
    """Whether neighbours along the innermost axis are read from places that are no neighbours."""
    if not load.indices:
        return False
    *outer, last = load.indices
    return any(_used(index, {axis: frozenset([0])}) for index in outer) or _has_float(last)


def _has_float(index: Expr) -> bool:
    """Whether an index is computed from numbers that are no integers, as where an image is resized."""
    found: list[bool] = []
    tvm_ffi.structural_walk(index, [(tirx.Cast, lambda c: found.append("float" in str(c.value.ty.dtype)))], order="pre")
    return any(found)


def _used(index: Expr, axes: Mapping[tirx.Var, frozenset[int]]) -> frozenset[int]:
    found: list[frozenset[int]] = [frozenset()]
    tvm_ffi.structural_walk(index, [(tirx.Var, lambda v: found.append(axes.get(v, frozenset())))], order="pre")
    return frozenset().union(*found)
