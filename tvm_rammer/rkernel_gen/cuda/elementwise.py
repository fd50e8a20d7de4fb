"""CUDA tilings in which each thread computes whole outputs: element-wise functions, pooling, concatenation.

What an output depends on (padding, the sum of an average) is computed by the same thread. Several outputs of a
function become one kernel: their loop nests are merged.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad
from tvm.s_tir.schedule import LoopRV, SBlockRV, ScheduleError

from ...device import DeviceSpec
from ...loads import MAX_BATCH
from ..analysis.accumulation import read_accumulation
from ..analysis.blocks import blocks_of, is_reduction, new_schedule, outputs_of, producers_of
from ..analysis.variables import substituted
from ..analysis.work import Work
from ..tiling import Function
from .cost import Cost
from .edges import padded_by_edges
from .lowered import MAX_THREADS
from .rule import CudaRule
from .spatial import count_spatial, count_terms, inline_spatial, set_scopes, spatial_loops

VECTORS_PER_THREAD = (1, 2, 4, 8, 16, 32, 64)
"""Vectors (or single elements) that a thread computes one after another."""

FULL_WAVES = (1, 2)
"""How often rTasks may fill all units of a GPU, beside what doubling the elements of a thread gives."""

MAX_TERMS_PER_THREAD = 4096
"""Terms of reductions that a thread adds up at most; a tile with one vector a thread may have more."""

VECTOR_WIDTH = 4
"""Elements of a vector load: 16 bytes of single precision."""

LOADS_IN_FLIGHT = 8
"""Elements, or terms, of a thread whose loads overlap."""

TERMS_IN_FLIGHT = 16
"""The same of few plain terms, for which several elements are computed side by side."""


@dataclass(frozen=True, slots=True)
class ElementwiseTile:
    """Each of the `threads` threads of an rTask computes `vectors_per_thread` vectors of `vector_width` elements."""

    vectors_per_thread: int
    threads: int
    vector_width: int

    @property
    def elements(self) -> int:
        """Elements of an rTask."""
        return self.vectors_per_thread * self.threads * self.vector_width


@dataclass(frozen=True, slots=True)
class Elementwise:
    """A function whose outputs do not depend on one another.

    Parameters
    ----------
    elements : int
        Elements of the largest output.
    terms : int
        Terms of the reductions that one element depends on; 1 where there is none.
    plain_terms : bool
        There are few terms, and each is one element of an input, without a choice.
    neighbours : int
        Elements of one input that an element is computed from, at most, reductions apart.
    vectorizable : bool
        All outputs are single precision, their rows are multiples of `VECTOR_WIDTH`, and a row's inputs are
        contiguous or constant along it. None is a condition: TVM reads a vector of these as if each had two bytes.
    work : Work
        Work of the whole function.
    """

    elements: int
    terms: int
    plain_terms: bool
    neighbours: int
    vectorizable: bool
    work: Work


def find_elementwise(function: Function) -> Elementwise | None:
    """Describe a function whose outputs do not depend on one another; None where a schedule cannot work on it."""
    sch = new_schedule(padded_by_edges(function.func))
    try:
        inline_spatial(sch)
    except ScheduleError:  # not in schedulable blocks, such as a cumulative sum
        return None
    outputs = outputs_of(sch)
    reductions = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    terms = max(1, sum(count_terms(sch, block) for block in reductions))
    return Elementwise(
        elements=max(count_spatial(sch, o) for o in outputs),
        terms=terms,
        plain_terms=1 < terms <= MAX_BATCH and all(_has_plain_terms(sch.get(block)) for block in reductions),
        neighbours=max(_neighbours(sch.get(o)) for o in outputs),
        vectorizable=not reductions and all(_is_vectorizable(sch, o) for o in outputs),
        work=Work.of(function.func),
    )


def _has_plain_terms(block: s_tir.SBlock) -> bool:
    """Whether a reduction's terms are single elements, read without a choice."""
    found = read_accumulation(block)
    return found is not None and isinstance(found.term, TensorLoad)


def _neighbours(block: s_tir.SBlock) -> int:
    """How many elements of one buffer a block reads, at most; the same element counts once."""
    places: dict[tirx.Var, set[str]] = {}
    tvm_ffi.structural_walk(
        block.body, (TensorLoad, lambda n: places.setdefault(n.source, set()).add(str(n.indices))), order="pre"
    )
    return max(map(len, places.values()), default=1)


def elementwise_tiles(problem: Elementwise, device: DeviceSpec) -> Iterator[ElementwiseTile]:
    """From one element a thread up to all elements in one rTask; and so many that the rTasks fill all units."""
    sizes = itertools.product((VECTOR_WIDTH, 1) if problem.vectorizable else (1,), (32, 64, 128, MAX_THREADS))
    for width, threads in sizes:
        full = {-(-problem.elements // (threads * width * device.units * waves)) for waves in FULL_WAVES}
        for vectors in sorted(set(VECTORS_PER_THREAD) | {n for n in full if n <= VECTORS_PER_THREAD[-1]}):
            idle = (vectors - 1) * threads * width >= problem.elements
            if not idle and (vectors == 1 or vectors * problem.terms <= MAX_TERMS_PER_THREAD):
                yield ElementwiseTile(vectors, threads, width)


def elementwise_cost(problem: Elementwise, tile: ElementwiseTile) -> Cost:
    """What an rTask does. Data that neighbouring threads share comes from the cache."""
    num_rtasks = -(-problem.elements // tile.elements)
    terms = tile.vectors_per_thread * problem.terms
    beyond_first = tile.vectors_per_thread * problem.neighbours - LOADS_IN_FLIGHT
    trips = terms / (TERMS_IN_FLIGHT if problem.plain_terms else LOADS_IN_FLIGHT)
    return Cost(
        num_rtasks,
        tile.threads,
        problem.work.flops / num_rtasks,
        problem.work.nbytes / num_rtasks,
        steps=max(trips, beyond_first / LOADS_IN_FLIGHT),
    )


def schedule_elementwise(
    func: tirx.PrimFunc, problem: Elementwise, tile: ElementwiseTile
) -> s_tir.Schedule | tirx.PrimFunc:
    """Schedule a function with some elements for each thread.

    Raises
    ------
    ScheduleError
        An output depends on another one, or its producers cannot move into its loops.
    """
    sch = new_schedule(padded_by_edges(func))
    inline_spatial(sch)
    for output in outputs_of(sch):
        if is_reduction(sch, output):
            sch.cache_write(output, 0, "local")  # otherwise each term would go through global memory
    outputs = outputs_of(sch)
    blocks = -(-problem.elements // tile.elements)
    for output in outputs:
        block_loop, thread_loop, element_loop = _split_elements(sch, output, blocks, tile)
        sch.bind(block_loop, "blockIdx.x")
        sch.bind(thread_loop, "threadIdx.x")
        for producer in reversed(producers_of(sch, output)):
            sch.compute_at(producer, element_loop)
            set_scopes(sch, producer, "local")
            _merge_terms(sch, producer)
    return _merge(sch.mod["main"]) if len(outputs) > 1 else sch


def _is_vectorizable(sch: s_tir.Schedule, output: SBlockRV) -> bool:
    """Whether an output's rows are full vectors, and what they read is contiguous or constant along a row."""
    block = sch.get(output)
    rows = [axis for axis in block.iter_vars if int(axis.dom.extent) > 1]
    if not rows or int(rows[-1].dom.extent) % VECTOR_WIDTH or str(block.writes[0].source.dtype) != "float32":
        return False
    column = rows[-1].var
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(block.body, [(TensorLoad, loads.append)], order="pre")

    def depends(index: Expr) -> bool:
        return any(column.same_as(v) for v in tirx.analysis.undefined_vars(index))

    def contiguous(last: Expr) -> bool:
        shifted = isinstance(last, tirx.Add | tirx.Sub) and isinstance(last.b, tirx.IntImm)
        return bool(column.same_as(last.a if shifted else last))

    if any(str(load.source.dtype) == "bool" for load in loads):
        return False
    indices = [list(load.indices) for load in loads if len(load.indices)]
    return all(
        not any(depends(i) for i in outer) and (not depends(last) or contiguous(last)) for *outer, last in indices
    )


def _split_elements(
    sch: s_tir.Schedule, block: SBlockRV, blocks: int, tile: ElementwiseTile
) -> tuple[LoopRV, LoopRV, LoopRV]:
    """Assign consecutive elements to consecutive threads; return the loops over blocks, threads and elements."""
    fused = sch.fuse(*(spatial_loops(sch, block) or [sch.add_unit_loop(block)]))
    if tile.vector_width > 1:  # first, so that the last rTask's guard is one condition a vector
        fused, element = sch.split(fused, [None, tile.vector_width])
        sch.vectorize(element)
    outer, serial, thread = sch.split(fused, [blocks, None, tile.threads])
    sch.reorder(outer, thread, serial)
    return outer, thread, serial


def _merge_terms(sch: s_tir.Schedule, block: SBlockRV) -> None:
    """Make one loop of the few terms of one element, so that all of them are loaded before they are added up."""
    _, _, _, *inner = sch.get_loops(block)
    extents = [sch.get(loop).extent for loop in inner]
    if len(inner) < 2 or not all(isinstance(extent, tirx.IntImm) for extent in extents):
        return
    if math.prod(map(int, extents)) == count_terms(sch, block) <= MAX_BATCH:
        sch.fuse(*inner)


def _merge(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Merge the loop nests of several outputs, which have equal block and thread loops, into one nest.

    Raises
    ------
    ScheduleError
        There is other code between them.
    """
    realize = func.body
    nests = list(realize.block.body.seq)
    if not all(isinstance(nest, tirx.For) and isinstance(nest.body, tirx.For) for nest in nests):
        raise ScheduleError("outputs are not computed in loops alone")
    block_loop, thread_loop = nests[0], nests[0].body
    bodies = [thread_loop.body]
    for nest in nests[1:]:
        same = {nest.loop_var: block_loop.loop_var, nest.body.loop_var: thread_loop.loop_var}
        bodies.append(substituted(nest.body.body, same))
    inner = _with_body(thread_loop, tirx.SeqStmt(bodies))
    block = realize.block
    root = s_tir.SBlock(
        block.iter_vars, block.reads, block.writes, block.name_hint, _with_body(block_loop, inner), block.init,
        block.alloc_buffers, block.match_buffers, block.annotations,
    )  # fmt: skip
    return func.with_body(s_tir.SBlockRealize(realize.iter_values, realize.predicate, root))


def _with_body(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, loop.annotations)


ELEMENTWISE_RULE = CudaRule(
    "elementwise", find_elementwise, elementwise_tiles, ElementwiseTile, elementwise_cost, schedule_elementwise
)
