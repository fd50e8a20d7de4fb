"""Reductions over nothing: a sum of no elements is 0, their maximum minus infinity, and an ArgMax has no answer.

TVM writes what a reduction starts from when it comes to the first element. Where there is none nobody writes it, and
the result is what the memory held before. How many there are may be known at run time only: how many boxes were found,
how many rows a condition selects.
"""

import tvm
import tvm_ffi
from tvm import ir, s_tir, tirx

from ..errors import DATA_MARK, ModelError
from .bindings import with_root_body
from .module_pass import module_pass


def StartEmptyReductions() -> tvm.transform.Pass:
    """Make the pass that writes what reductions start from before their loops, where these may have no round.

    It works on functions in blocks that nobody scheduled. One that looks for a place, an ArgMax or ArgMin, fails at run
    time where there is none.

    Returns
    -------
    tvm.transform.Pass
        Raises a ModelError where an ArgMax or ArgMin surely has no element.
    """
    return _start_empty_reductions


@module_pass("StartEmptyReductions")
def _start_empty_reductions(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    changed = {}
    for var, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc) and (reductions := _maybe_empty(func)):
            changed[var] = _checked(_started(func, reductions), var.name_hint, reductions)
    if not changed:
        return mod
    made = mod.clone()
    for var, func in changed.items():
        made.update_func(var, func)
    return made


def _maybe_empty(func: tirx.PrimFunc) -> list[s_tir.SBlockRealize]:
    """The blocks that reduce along an axis of which it is not known that it has an element."""
    found: list[s_tir.SBlockRealize] = []
    if not isinstance(func.body, s_tir.SBlockRealize):
        return found

    def visit(realize: s_tir.SBlockRealize) -> None:
        if realize.block.init is not None and _extents(realize.block):
            found.append(realize)

    tvm_ffi.structural_walk(func.body, [(s_tir.SBlockRealize, visit)], order="pre")
    return found


def _extents(block: s_tir.SBlock) -> list[tirx.Expr]:
    """How long those axes are along which a block reduces, and which may have no element."""
    extents = [axis.dom.extent for axis in block.iter_vars if axis.iter_type == tirx.IterVar.CommReduce]
    return [extent for extent in extents if not isinstance(extent, tirx.IntImm) or int(extent) == 0]


def _started(func: tirx.PrimFunc, reductions: list[s_tir.SBlockRealize]) -> tirx.PrimFunc:
    """The function, in which blocks of their own write what these start from."""
    schedule = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    for reduction in reductions:
        block = schedule.get_sblock(reduction.block.name_hint)
        rounds: set[tirx.Var] = set()
        for axis, value in zip(reduction.block.iter_vars, reduction.iter_values, strict=True):
            if axis.iter_type == tirx.IterVar.CommReduce:
                tvm_ffi.structural_walk(value, [(tirx.Var, rounds.add)], order="pre")
        outermost = next(loop for loop in schedule.get_loops(block) if schedule.get(loop).loop_var in rounds)
        schedule.decompose_reduction(block, outermost)
    return func.with_body(schedule.mod["main"].body)


def _checked(func: tirx.PrimFunc, name: str, reductions: list[s_tir.SBlockRealize]) -> tirx.PrimFunc:
    """The function, which fails where it looks for a place among no elements."""
    extents = [extent for r in reductions if _finds_a_place(r.block) for extent in _extents(r.block)]
    message = f"{name} looks for the place of an extreme among no elements; give it one at least"
    if any(isinstance(extent, tirx.IntImm) for extent in extents):
        raise ModelError(message)
    if not extents:
        return func
    fails = ir.StringImm("AssertionError"), [ir.StringImm(DATA_MARK + message)]
    checks = [tirx.AssertStmt(extent > 0, *fails) for extent in extents]
    return with_root_body(func, [*checks, func.body.block.body])


def _finds_a_place(block: s_tir.SBlock) -> bool:
    """Whether a reduction keeps two values for each result: the extreme, and where it is."""
    return isinstance(block.init, tirx.SeqStmt)
