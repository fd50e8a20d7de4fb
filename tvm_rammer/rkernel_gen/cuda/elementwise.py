"""CUDA tilings in which one thread makes one output at a time: element-wise functions, pooling, concatenation.

What an output needs before it (padding, the sum of an average) is computed by its own thread. Several outputs
of a function become one kernel: the loop nests are laid into one another.
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
from ..analysis.anchor import REDUCTION, SPATIAL, blocks_of, is_reduction, outputs_of
from ..tiling import Function
from .cost import Cost, Work
from .lowered import MAX_THREADS
from .rule import CudaRule, start

MAX_TURNS = 64
"""Elements that a thread makes one after another at most."""

MAX_TERMS = 4096
"""Terms of sums that a thread adds up at most, all its elements together, where there is another way."""

VECTOR = 4
"""Elements that a thread loads at once, where they lie side by side."""

IN_A_TRIP = 4
"""Elements, or terms, of a thread that are under way together."""


@dataclass(frozen=True, slots=True)
class ElementsTile:
    """Each of `threads` threads of an rTask makes `turns` vectors of `lanes` elements."""

    turns: int
    threads: int
    lanes: int

    @property
    def elements(self) -> int:
        """Of an rTask."""
        return self.turns * self.threads * self.lanes


@dataclass(frozen=True, slots=True)
class Elements:
    """What the rule has to know of a function.

    Parameters
    ----------
    elements : int
        Of the largest output.
    terms : int
        Of the sums behind one element; 1 where there is none.
    vectors : bool
        Every output's rows are single precision, and whole vectors.
    work : Work
        Of the whole function.
    """

    elements: int
    terms: int
    vectors: bool
    work: Work


def find_elements(function: Function) -> Elements | None:
    """Describe any function whose outputs are independent of one another."""
    sch = start(function.func)
    try:
        inline_spatial(sch)
    except ScheduleError:  # not written in blocks that a schedule can work on, as a cumulative sum is
        return None
    outputs = outputs_of(sch)
    sums = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    terms = sum(terms_of(sch, block) for block in sums)
    vectors = not sums and all(_in_vectors(sch, o) for o in outputs)
    return Elements(max(count_spatial(sch, o) for o in outputs), max(1, terms), vectors, Work.of(function.func))


def elements_tiles(form: Elements, device: DeviceSpec) -> Iterator[ElementsTile]:
    """From one element a thread, to as many as one rTask would need."""
    sizes = itertools.product((VECTOR, 1) if form.vectors else (1,), (32, 64, 128, MAX_THREADS))
    for (lanes, threads), turns in itertools.product(sizes, (1, 2, 4, 8, 16, 32, MAX_TURNS)):
        covered = (turns - 1) * threads * lanes >= form.elements
        if not covered and (turns == 1 or turns * form.terms <= MAX_TERMS):
            yield ElementsTile(turns, threads, lanes)


def elements_cost(form: Elements, tile: ElementsTile) -> Cost:
    """What an rTask does; what neighbours read together comes from the cache."""
    num_rtasks = -(-form.elements // tile.elements)
    return Cost(
        num_rtasks,
        tile.threads,
        form.work.flops / num_rtasks,
        form.work.nbytes / num_rtasks,
        steps=tile.turns * form.terms / IN_A_TRIP,
    )


def schedule_elements(func: tirx.PrimFunc, form: Elements, tile: ElementsTile) -> s_tir.Schedule | tirx.PrimFunc:
    """Schedule a function with each thread making some elements.

    Raises
    ------
    ScheduleError
        An output depends on another one, or its producers cannot move into its loops.
    """
    sch = start(func)
    inline_spatial(sch)
    for output in outputs_of(sch):
        if is_reduction(sch, output):
            sch.cache_write(output, 0, "local")  # or every term would go through global memory
    outputs = outputs_of(sch)
    blocks = -(-form.elements // tile.elements)
    for output in outputs:
        block_loop, thread_loop, element_loop = _spread(sch, output, blocks, tile)
        sch.bind(block_loop, "blockIdx.x")
        sch.bind(thread_loop, "threadIdx.x")
        for producer in reversed(producers_of(sch, output)):
            sch.compute_at(producer, element_loop)
            set_scopes(sch, producer, "local")
    return _merge(sch.mod["main"]) if len(outputs) > 1 else sch


def terms_of(sch: s_tir.Schedule, block: SBlockRV) -> int:
    """Terms of each sum that a block makes."""
    axes = sch.get(block).iter_vars
    return math.prod(int(axis.dom.extent) for axis in axes if axis.iter_type == REDUCTION)


def inline_spatial(sch: s_tir.Schedule) -> None:
    """Inline every block that neither reduces nor writes an output, as far as TVM can."""
    for block in blocks_of(sch):
        if sch.get_consumers(block) and not is_reduction(sch, block):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                continue


def producers_of(sch: s_tir.Schedule, block: SBlockRV) -> list[SBlockRV]:
    """All blocks that `block` needs, in the order of the program."""
    needed: list[str] = []
    pending = [block]
    while pending:
        for producer in sch.get_producers(pending.pop()):
            if sch.get(producer).name_hint not in needed:
                needed.append(sch.get(producer).name_hint)
                pending.append(producer)
    return [b for b in blocks_of(sch) if sch.get(b).name_hint in needed]


def set_scopes(sch: s_tir.Schedule, block: SBlockRV, scope: str) -> None:
    """Put all that a block writes into one kind of memory: a mean and a variance may be made together."""
    for index in range(len(sch.get(block).writes)):
        sch.set_scope(block, index, scope)


def spatial_loops(sch: s_tir.Schedule, block: SBlockRV) -> list[LoopRV]:
    """Loops of a block that no schedule has touched yet, over its spatial axes."""
    axes = sch.get(block).iter_vars
    return [loop for loop, axis in zip(sch.get_loops(block), axes, strict=True) if axis.iter_type == SPATIAL]


def count_spatial(sch: s_tir.Schedule, block: SBlockRV) -> int:
    """Elements that a block writes."""
    count = 1
    for axis in sch.get(block).iter_vars:
        count *= int(axis.dom.extent) if axis.iter_type == SPATIAL else 1
    return count


def _in_vectors(sch: s_tir.Schedule, output: SBlockRV) -> bool:
    """Whether the rows of an output are whole vectors, and what it reads for one lies side by side or is one value."""
    block = sch.get(output)
    rows = [axis for axis in block.iter_vars if int(axis.dom.extent) > 1]
    if not rows or int(rows[-1].dom.extent) % VECTOR or str(block.writes[0].source.dtype) != "float32":
        return False
    column = rows[-1].var
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(block.body, [(TensorLoad, loads.append)], order="pre")

    def moves(index: Expr) -> bool:
        return any(column.same_as(v) for v in tirx.analysis.undefined_vars(index))

    def side_by_side(last: Expr) -> bool:
        shifted = isinstance(last, tirx.Add | tirx.Sub) and isinstance(last.b, tirx.IntImm)
        return column.same_as(last.a if shifted else last)

    indices = [list(load.indices) for load in loads if len(load.indices)]
    return all(not any(moves(i) for i in rest) and (not moves(last) or side_by_side(last)) for *rest, last in indices)


def _spread(sch: s_tir.Schedule, block: SBlockRV, blocks: int, tile: ElementsTile) -> tuple[LoopRV, LoopRV, LoopRV]:
    """Deal the elements out, consecutive ones to consecutive threads; return block, thread and element loop."""
    fused = sch.fuse(*(spatial_loops(sch, block) or [sch.add_unit_loop(block)]))
    if tile.lanes > 1:  # first, so that the guard of the last rTask asks for a vector, not for its lanes
        fused, lane = sch.split(fused, [None, tile.lanes])
        sch.vectorize(lane)
    outer, serial, thread = sch.split(fused, [blocks, None, tile.threads])
    sch.reorder(outer, thread, serial)
    return outer, thread, serial


def _merge(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Put the nests of several outputs, equal in their block and thread loops, into one nest."""
    realize = func.body
    nests = list(realize.block.body.seq)
    block_loop, thread_loop = nests[0], nests[0].body
    bodies = [thread_loop.body]
    for nest in nests[1:]:
        same = {nest.loop_var: block_loop.loop_var, nest.body.loop_var: thread_loop.loop_var}
        bodies.append(tvm_ffi.structural_map(nest.body.body, (tirx.Var, lambda v, s=same: s.get(v, v)), order="post"))
    inner = _with_body(thread_loop, tirx.SeqStmt(bodies))
    block = realize.block
    root = s_tir.SBlock(
        block.iter_vars, block.reads, block.writes, block.name_hint, _with_body(block_loop, inner), block.init,
        block.alloc_buffers, block.match_buffers, block.annotations,
    )  # fmt: skip
    return func.with_body(s_tir.SBlockRealize(realize.iter_values, realize.predicate, root))


def _with_body(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, loop.annotations)


ELEMENTS_RULE = CudaRule("elements", find_elements, elements_tiles, ElementsTile, elements_cost, schedule_elements)
