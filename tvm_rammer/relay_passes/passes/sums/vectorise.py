"""Sums in vectors: elements that follow one another in the result are one, and the sum goes around it."""

from collections.abc import Iterator, Sequence

import tvm
import tvm_ffi
from tvm import s_tir, sym, tirx
from tvm.error import InternalError
from tvm.ir import Call, Expr, TensorLoad
from tvm.s_tir.schedule import ScheduleError

from ...bindings import rewrite_prim_funcs
from ...module_pass import module_pass

MOST_BYTES = 256
"""Of a vector, at most: four registers of 64 bytes, or eight of 32."""
LEAST_ELEMENTS = 4
"""Of fewer a vector is not worth its while."""


@module_pass("VectoriseSums")
def _vectorise_sums(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_prim_funcs(mod, _vectorised)


def VectoriseSums() -> tvm.transform.Pass:
    """Make the pass that vectorises the sums of functions in blocks that nobody scheduled."""
    return _vectorise_sums


def _vectorised(func: tirx.PrimFunc) -> tirx.PrimFunc | None:
    """A function whose sums are in vectors, where they can be; None where none can."""
    found = [] if "tirx.is_scheduled" in (func.attrs or {}) else sums_of(func)
    reductions = [realize for realize in found if vector_of(realize.block) >= LEAST_ELEMENTS]
    if not reductions:
        return None
    try:
        schedule = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
        for realize in reductions:
            _vectorise(schedule, realize)
    except (InternalError, ScheduleError, ValueError):
        return None  # it is written in a way that TVM cannot schedule
    return func.with_body(schedule.mod["main"].body)


def _vectorise(schedule: s_tir.Schedule, realize: s_tir.SBlockRealize) -> None:
    """Put the sum of a block around a vector of its results."""
    block = schedule.get_sblock(realize.block.name_hint)
    loops = {schedule.get(loop).loop_var: loop for loop in schedule.get_loops(block)}
    if not all(value in loops for value in realize.iter_values):
        return  # it is a block within a block
    along: list[s_tir.schedule.LoopRV] = []
    across: list[s_tir.schedule.LoopRV] = []
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        (across if axis.iter_type == tirx.IterVar.CommReduce else along).append(loops[value])
    size = vector_of(realize.block)
    outer, inner = schedule.split(along[-1], [None, size])
    schedule.reorder(*along[:-1], outer, *across, inner)
    schedule.vectorize(inner)
    schedule.decompose_reduction(block, across[0])


def sums_of(func: tirx.PrimFunc) -> Iterator[s_tir.SBlockRealize]:
    """The blocks of a function whose sums can be in vectors."""
    if not isinstance(func.body, s_tir.SBlockRealize):
        return
    found: list[s_tir.SBlockRealize] = []
    tvm_ffi.structural_walk(func.body, (s_tir.SBlockRealize, found.append), order="pre")
    for realize in found:
        if realize.block.init is not None and _has_vectors(realize):
            yield realize


def _has_vectors(realize: s_tir.SBlockRealize) -> bool:
    """Whether a block sums numbers for elements that follow one another wherever it reads and writes."""
    block = realize.block
    if not isinstance(block.body, tirx.BufferStore) or str(block.body.value.ty.dtype) not in ("float32", "float64"):
        return False
    kinds = [axis.iter_type == tirx.IterVar.CommReduce for axis in block.iter_vars]
    plain = all(isinstance(value, tirx.Var) for value in realize.iter_values)
    # Loops of the results come first, as TVM writes them.
    if not plain or kinds != sorted(kinds) or all(kinds) or not any(kinds):
        return False
    extents = [axis.dom.extent for axis in block.iter_vars]
    last = kinds.index(True) - 1
    sums = extents[last + 1 :]
    if not all(isinstance(extent, tirx.IntImm) and int(extent) > 0 for extent in (extents[last], *sums)):
        return False
    store, var = block.body, block.iter_vars[last].var
    found = [_follows(store.indices, var, must=True), is_at(block.init, store)]

    def load(node: TensorLoad) -> None:
        # What reads results of its neighbours needs them in order.
        found.append(_follows(node.indices, var, must=False))
        found.append(not node.source.same_as(store.buffer) or is_at(node, store))

    def call(node: Call) -> None:
        found.append(False)  # TVM makes vectors of few of them: it would do all of it an element at a time again

    tvm_ffi.structural_walk(block.body.value, [(TensorLoad, load), (Call, call)], order="pre")
    return all(found)


def vector_of(block: s_tir.SBlock) -> int:
    """The largest divisor of the extent of the last axis that is not summed, which a vector may have as its length."""
    *_, along = (axis for axis in block.iter_vars if axis.iter_type != tirx.IterVar.CommReduce)
    most, extent = MOST_BYTES * 8 // block.body.value.ty.dtype.bits, int(along.dom.extent)
    return max(n for n in range(1, most + 1) if extent % n == 0)


def is_at(access: TensorLoad | tirx.Stmt, store: tirx.BufferStore) -> bool:
    """Whether a load or a statement accesses the very element that another one stores."""
    place = access.source if isinstance(access, TensorLoad) else getattr(access, "buffer", None)
    same = place is not None and place.same_as(store.buffer)
    return same and bool(tvm_ffi.structural_equal(access.indices, store.indices))


def _follows(indices: Sequence[Expr], var: tirx.Var, *, must: bool) -> bool:
    """Whether elements at successive values of a variable follow one another, or, unless they must, are the same."""
    if not indices:
        return not must
    *others, last = indices
    if any(var in tirx.analysis.undefined_vars(index) for index in others):
        return False
    if var not in tirx.analysis.undefined_vars(last):
        return not must

    def following(node: tirx.Var) -> Expr:
        return node + 1 if node.same_as(var) else node

    step = tvm_ffi.structural_map(last, (tirx.Var, following), order="post") - last
    step = sym.Analyzer().simplify(step)
    return isinstance(step, tirx.IntImm) and int(step) == 1
