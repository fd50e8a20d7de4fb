"""A scheduled CPU kernel becomes the function of one rTask (docs/architecture.md, decision D1).

The kernel's outermost parallel loop goes away and its variable becomes a parameter. The rTask's arrays
become pointers into its vEU's arena, so that nothing is allocated while it runs.
"""

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad

from ...errors import CodegenError, last_line
from ...ir import RKernel
from ...keep_indices import keep_indices, lower_blocks
from ...kernel import RTaskFunction, ScheduledKernel
from ..arrays import array_bytes, pointer_variable
from .keep_remainders import keep_remainders
from .keep_values import keep_values
from .pipeline import RTASK
from .workers.entries import PLAIN_FUNCTION


def lower(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Lower blocks and n-dimensional buffers to loops over flat arrays, as TVM's own pipeline does."""
    passes = [
        s_tir.transform.CanonicalizeLoop(),
        *lower_blocks(),
        tirx.transform.FlattenBuffer(),
        tirx.transform.NarrowDataType(32),
    ]
    module = tvm.IRModule({"main": keep_indices(func).with_attr("global_symbol", "main")})
    return tvm.transform.Sequential(passes)(module)["main"]


def extract_cpu(kernel: ScheduledKernel) -> RTaskFunction:
    """Make the rTask function of a kernel.

    Raises
    ------
    CodegenError
        The kernel's rTasks share an array, it has another number of rTasks than it says, or TVM fails to lower it.
    """
    try:
        func = lower(kernel.func)
    except Exception as error:  # as TVM's simplifier does on some copies of copies: "Divide by zero"
        raise CodegenError(f"TVM cannot lower {kernel.spec.name}: {last_line(error)}") from error
    rtask = tirx.Var("rtask", "int32")
    scratch: list[tirx.Buffer] = []
    body = [_one_rtask(s, rtask, kernel.spec) for s in _statements(func.body)]
    serial = [_unswitch_loops(_make_serial(_hoist_allocations(s, scratch))) for s in body]
    computed, values = keep_values(tirx.SeqStmt(serial))
    scratch += values

    pointers, arenas = ([pointer_variable(b.name, str(b.dtype)) for b in some] for some in (func.params, scratch))
    declared = [tirx.DeclBuffer(b, data=p) for b, p in zip((*func.params, *scratch), (*pointers, *arenas), strict=True)]
    out = tirx.PrimFunc([*pointers, *arenas, rtask], tirx.SeqStmt([*declared, computed]))
    attrs = {"global_symbol": kernel.spec.name, "calling_conv": PLAIN_FUNCTION, "tirx.noalias": True, "s_tir": True}
    for key, value in (attrs | {"tirx.is_scheduled": True, RTASK: True}).items():
        out = out.with_attr(key, value)
    return RTaskFunction(
        name=kernel.spec.name,
        func=_vectors_of_bfloat16(keep_remainders(keep_indices(out))),
        dtypes=tuple(str(p.dtype) for p in func.params),
        scratch=tuple((array_bytes(b), str(b.dtype)) for b in scratch),
    )


def _vectors_of_bfloat16(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Make vectors before TVM computes bfloat16 in float32: afterwards it makes none of a number that is stored."""
    if not any("bfloat16" in str(param.ty) for param in func.params):
        return func
    return tirx.transform.VectorizeLoop()(tvm.IRModule({"main": func}))["main"]


def _statements(body: tirx.Stmt) -> list[tirx.Stmt]:
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]


def _one_rtask(statement: tirx.Stmt, rtask: tirx.Var, spec: RKernel) -> tirx.Stmt:
    """Replace a parallel loop at the top by its body for one rTask."""
    if isinstance(statement, tirx.DeclBuffer) or spec.num_rtasks == 1:
        return statement
    if not (isinstance(statement, tirx.For) and statement.kind == tirx.ForKind.PARALLEL):
        raise CodegenError(f"kernel {spec.name} does work outside its rTasks: {type(statement).__name__}")
    if int(statement.extent) != spec.num_rtasks:
        raise CodegenError(f"kernel {spec.name} has {statement.extent} rTasks, but says {spec.num_rtasks}")
    return tirx.SeqStmt(
        [tirx.Bind(statement.loop_var, rtask.astype(str(statement.loop_var.ty.dtype))), *_statements(statement.body)]
    )


def _hoist_allocations(statement: tirx.Stmt, scratch: list[tirx.Buffer]) -> tirx.Stmt:
    """Remove the allocation of every array, and collect the arrays.

    Accumulators too: the rTask's pointers do not alias, so LLVM keeps them in registers all the same, while
    TVM would take those over 1 KB from the heap.
    """

    def rewrite(node: tirx.AllocBuffer) -> tirx.Stmt:
        scratch.append(node.buffer)
        return tirx.Evaluate(0)

    return tvm_ffi.structural_map(statement, (tirx.AllocBuffer, rewrite), order="post")


def _make_serial(statement: tirx.Stmt) -> tirx.Stmt:
    """Make all other parallel loops serial: an rTask runs on one worker, which cannot launch others."""

    def rewrite(loop: tirx.For) -> tirx.For:
        if loop.kind != tirx.ForKind.PARALLEL:
            return loop
        return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, loop.body)

    return tvm_ffi.structural_map(statement, (tirx.For, rewrite), order="post")


def _unswitch_loops(statement: tirx.Stmt) -> tirx.Stmt:
    """Take conditions out of loops: those that a loop does not change, and those that change once, such as which part
    of a concatenation an element is from. TVM's own pass for the first takes twice as long for each more.
    """

    def hoist(loop: tirx.For) -> tirx.Stmt:
        branch = loop.body
        if not isinstance(branch, tirx.IfThenElse):
            return loop
        if _is_invariant(branch.condition, loop.loop_var):
            otherwise = None if branch.else_case is None else hoist(_with_body(loop, branch.else_case))
            return tirx.IfThenElse(branch.condition, hoist(_with_body(loop, branch.then_case)), otherwise)
        change = _change(branch.condition, loop)
        if change is None:
            return loop
        at, holds_from_there = change
        cases = branch.then_case, tirx.Evaluate(0) if branch.else_case is None else branch.else_case
        above, below = cases if holds_from_there else reversed(cases)
        return tirx.SeqStmt([hoist(_with_body(loop, below, 0, at)), hoist(_with_body(loop, above, at))])

    return tvm_ffi.structural_map(statement, (tirx.For, hoist), order="post")


def _with_body(loop: tirx.For, body: tirx.Stmt, begin: int = 0, end: int | None = None) -> tirx.For:
    """The loop with another body, and a variable of its own; or some of its iterations, counted from 0."""
    var = tirx.Var(loop.loop_var.name, str(loop.loop_var.ty.dtype))
    value, extent = (var + begin if begin else var), loop.extent
    if begin or end is not None:
        extent = tirx.IntImm(str(extent.ty.dtype), (int(extent) if end is None else end) - begin)
    body = tvm_ffi.structural_map(body, (tirx.Var, lambda v: value if v.same_as(loop.loop_var) else v))
    return tirx.For(var, loop.min, extent, loop.kind, body)


def _change(condition: Expr, loop: tirx.For) -> tuple[int, bool] | None:
    """From which iteration on a condition has another value, and whether it holds from there on; None if not once."""
    if not isinstance(condition, tirx.LT | tirx.LE | tirx.GT | tirx.GE) or loop.kind != tirx.ForKind.SERIAL:
        return None
    left, right = condition.a, condition.b
    is_left = left.same_as(loop.loop_var)
    bound = right if is_left else left
    if not (is_left or right.same_as(loop.loop_var)) or not isinstance(bound, tirx.IntImm):
        return None
    holds_from_there = isinstance(condition, tirx.GT | tirx.GE) == is_left
    beyond = isinstance(condition, tirx.GT | tirx.LE) if is_left else isinstance(condition, tirx.LT | tirx.GE)
    at = int(bound) + beyond
    whole = isinstance(loop.extent, tirx.IntImm) and isinstance(loop.min, tirx.IntImm) and int(loop.min) == 0
    return (at, holds_from_there) if whole and 0 < at < int(loop.extent) else None


def _is_invariant(condition: Expr, loop_var: tirx.Var) -> bool:
    """Whether a condition is loop-invariant: it uses neither the loop variable nor an array."""
    variables: list[tirx.Var] = []
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(condition, [(tirx.Var, variables.append), (TensorLoad, loads.append)], order="pre")
    return not loads and not any(var.same_as(loop_var) for var in variables)
