"""An rProgram as one function for a CPU: each vEU is a worker of TVM's thread pool.

One parallel launch runs all lanes. Where the pool has fewer workers than the plan has vEUs, waits could
wait for ever; the function then does a serial lane instead, which holds the same rTasks in a legal order.
"""

import importlib.resources
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import tvm
from tvm import ir, tirx
from tvm.ir import GlobalVar, PointerType, PrimType
from tvm.script import tirx as T

from ..ir import ITEM_BYTES, RProgram
from ..kernel import Pack, RTaskFunction
from .assembled import AssembledProgram
from .cpu_stamps import CLOCK, STAMPED
from .layout import CONSTANTS, FIRST_EXTERNAL, WORKSPACE, Layout, lay_out
from .tables import ROW, RUN, SIGNAL, WAIT, CallForm, Tables, build_tables, pointer

COUNTER_WORDS = 16
"""Each counter has a cache line of its own, so that signals do not disturb other waits."""


def assemble_cpu(
    program: RProgram,
    values: Mapping[int, np.ndarray],
    packs: Sequence[Mapping[int, Pack]],
    functions: Sequence[RTaskFunction],
    shared: Mapping[str, GlobalVar],
    *,
    stamped: bool = False,
) -> AssembledProgram:
    """Make the function of an rProgram.

    Parameters
    ----------
    program : RProgram
        Verified.
    values : mapping of int to numpy.ndarray
        The value of each constant buffer of its graph.
    packs : sequence of mapping
        For each operator, how its kernel wants its constant parameters laid out.
    functions : sequence of RTaskFunction
        For each operator, the function of its kernel.
    shared : mapping of str to GlobalVar
        The name under which the module holds each rTask function.
    stamped : bool
        Whether to note when each instruction of each lane ends, for `cpu_stamps`.
    """
    lanes = len(program.lanes)
    arena = max((f.scratch_bytes for f in functions), default=0)
    layout = lay_out(program, values, packs, arenas=lanes + 1, arena_bytes=arena)
    tables = build_tables(program, layout, functions, serial_lane=True)
    counters_at = layout.workspace_bytes
    stamps_at = counters_at + max(1, program.num_events) * COUNTER_WORDS * 4
    # One for each instruction of each lane, the serial one too; then one for each lane's beginning.
    num_stamps = len(tables.code) + lanes + 1 if stamped else 0
    workspace_bytes = stamps_at + num_stamps * 8
    embedded = (layout.constants, tables.begin, tables.code.reshape(-1), tables.arguments.reshape(-1))

    segments = [_buffer("constants", embedded[0]), tirx.decl_buffer((workspace_bytes,), "uint8", "workspace")]
    for i, b in enumerate(layout.external):
        buffer = program.graph.buffers[b]
        segments.append(tirx.decl_buffer(buffer.shape, buffer.dtype, f"arg{i}"))
    plan = [_buffer(n, a) for n, a in zip(("begin", "code", "arguments"), embedded[1:], strict=True)]
    lane_func = _lane(layout, tables, segments, plan, shared, counters_at, stamps_at if stamped else None)
    lane_var = _global(f"{program.name}_lane", lane_func)
    report = _report(program, segments[WORKSPACE], stamps_at, num_stamps) if stamped else []
    main = _main(program, layout, segments, plan, lane_var, counters_at, report)
    used = {shared[f.name]: f.func for f in functions}
    return AssembledProgram(
        name=program.name,
        func=main,
        helpers={lane_var: lane_func, **used},
        inputs=layout.external[: layout.num_inputs],
        outputs=layout.external[layout.num_inputs :],
        embedded=embedded,
        workspace_bytes=workspace_bytes,
    )


def _global(name: str, func: tirx.PrimFunc) -> GlobalVar:
    return tvm.IRModule({name: func}).get_global_var(name)


def _buffer(name: str, array: np.ndarray) -> tirx.Buffer:
    return tirx.decl_buffer(array.shape, str(array.dtype), name)


def _pointer(buffer: tirx.Buffer) -> tirx.Var:
    return tirx.Var(f"{buffer.name}_ptr", PointerType(PrimType(str(buffer.dtype)), "global"))


def _main(
    program: RProgram,
    layout: Layout,
    segments: Sequence[tirx.Buffer],
    plan: Sequence[tirx.Buffer],
    lane_var: GlobalVar,
    counters_at: int,
    afterwards: Sequence[tirx.Stmt],
) -> tirx.PrimFunc:
    lanes = len(program.lanes)
    pointers = [b.data for b in (*segments, *plan)]
    words = max(1, program.num_events) * COUNTER_WORDS
    counters = tirx.decl_buffer((counters_at // 4 + words,), "int32", "counters", data=segments[WORKSPACE].data)
    i, v = tirx.Var("i", "int32"), tirx.Var("veu", "int32")
    workers = tirx.Var("workers", "int32")
    reset = tirx.For(i, 0, words, tirx.ForKind.SERIAL, tirx.BufferStore(counters, 0, [counters_at // 4 + i]))
    launch = tirx.For(v, 0, lanes, tirx.ForKind.PARALLEL, tirx.Evaluate(_call(lane_var, *pointers, v)))
    alone = tirx.Evaluate(_call(lane_var, *pointers, lanes))
    body = tirx.SeqStmt(
        [
            tirx.DeclBuffer(counters, data=segments[WORKSPACE].data),
            reset,
            tirx.Bind(workers, T.call_packed("runtime.NumThreads", dtype="int32")),
            tirx.IfThenElse(workers >= lanes, launch, alone),
            *afterwards,
        ]
    )
    external = segments[FIRST_EXTERNAL:]
    params = [*external[: layout.num_inputs], segments[CONSTANTS], *plan, *external[layout.num_inputs :]]
    func = tirx.PrimFunc([*params, segments[WORKSPACE]], body)
    attrs = {"global_symbol": program.name, "tirx.noalias": True, "s_tir": True, "tirx.is_scheduled": True}
    for key, value in attrs.items():
        func = func.with_attr(key, value)
    return func


def _report(program: RProgram, workspace: tirx.Buffer, stamps_at: int, count: int) -> list[tirx.Stmt]:
    """Tell whoever wants to know where the stamps are."""
    where = T.address_of(workspace[stamps_at])
    return [tirx.Evaluate(T.call_packed(STAMPED, program.name, where, tirx.IntImm("int64", count)))]


def _lane(
    layout: Layout,
    tables: Tables,
    segments: Sequence[tirx.Buffer],
    plan: Sequence[tirx.Buffer],
    shared: Mapping[str, GlobalVar],
    counters_at: int,
    stamps_at: int | None,
) -> tirx.PrimFunc:
    """The interpreter: one call walks through one lane."""
    pointers = [_pointer(b) for b in (*segments, *plan)]
    begin, code, arguments = plan
    workspace = pointers[WORKSPACE]
    counters = tirx.decl_buffer((1 << 20,), "int32", "counters", data=workspace)
    lane, row = tirx.Var("lane", "int32"), tirx.Var("row", "int32")

    def word(k: int) -> ir.Expr:
        return code[row * ROW + k]

    def counter() -> ir.Expr:
        return T.address_of(counters[counters_at // 4 + word(1) * COUNTER_WORDS])

    views: dict[tuple[int, str], tirx.Buffer] = {}

    def view(segment: int, dtype: str) -> tirx.Buffer:
        if (segment, dtype) not in views:
            nbytes = _nbytes(segments[segment])
            shape = (max(1, nbytes // ITEM_BYTES[dtype]),)
            views[segment, dtype] = tirx.decl_buffer(shape, dtype, f"view{segment}_{dtype}", data=pointers[segment])
        return views[segment, dtype]

    def element(dtype: str, segment: int, at: ir.Expr | int) -> ir.Expr:
        return T.address_of(view(segment, dtype)[at])

    def run(form: CallForm) -> tirx.Stmt:
        index = tirx.Var("i", "int32")
        function, width = form.function, tables.arguments.shape[1]
        args = [
            pointer(form.segments[k], arguments[word(1) * width + k], partial(element, dtype), _select)
            for k, dtype in enumerate(function.dtypes)
        ]
        for (_, offset), (_, dtype) in zip(function.scratch_offsets(), function.scratch, strict=True):
            arena = layout.scratch_offset + lane * layout.scratch_bytes + offset
            args.append(T.address_of(view(WORKSPACE, dtype)[arena // ITEM_BYTES[dtype]]))
        call = _call(shared[function.name], *args, word(2) + index * word(4))
        return tirx.For(index, 0, word(3), tirx.ForKind.SERIAL, tirx.Evaluate(call))

    branches: list[tuple[int, tirx.Stmt]] = [
        (WAIT, tirx.Evaluate(T.call_extern("void", "rammer_wait", counter(), word(2)))),
        (SIGNAL, tirx.Evaluate(T.call_extern("void", "rammer_signal", counter()))),
        *((RUN + f, run(form)) for f, form in enumerate(tables.forms)),
    ]
    first = tirx.Var("first", "int32")
    text = importlib.resources.files(__package__).joinpath("sync.ll").read_text(encoding="utf-8")
    step, begun = _switch(word(0), branches), []
    if stamps_at is not None:
        text += CLOCK
        stamps = view(WORKSPACE, "int64")

        def stamp(at: ir.Expr) -> tirx.Stmt:
            return tirx.BufferStore(stamps, T.call_extern("int64", "rammer_now"), [stamps_at // 8 + at])

        step, begun = tirx.SeqStmt([step, stamp(row)]), [stamp(len(tables.code) + lane)]
    walk = tirx.For(row, first, begin[lane + 1] - first, tirx.ForKind.SERIAL, step)
    declared = [tirx.DeclBuffer(b, data=p) for b, p in zip((*segments, *plan), pointers, strict=True)]
    declared += [tirx.DeclBuffer(b, data=pointers[s]) for (s, _), b in views.items()]
    declared.append(tirx.DeclBuffer(counters, data=workspace))
    interpreter = tirx.SeqStmt([*declared, tirx.Bind(first, begin[lane]), *begun, walk])
    body = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", ir.StringImm(text), interpreter)
    func = tirx.PrimFunc([*pointers, lane], body)
    for key in ("s_tir", "tirx.is_scheduled", "rammer.rtask"):
        func = func.with_attr(key, True)
    return func


def _select(condition: ir.Expr, one: ir.Expr, other: ir.Expr) -> ir.Expr:
    return T.call_extern("handle", "rammer_select", condition, one, other)


def _nbytes(buffer: tirx.Buffer) -> int:
    """Size of a buffer in bytes."""
    return int(np.prod([int(s) for s in buffer.shape], dtype=np.int64)) * ITEM_BYTES[str(buffer.dtype)]


def _switch(value: ir.Expr, branches: Sequence[tuple[int, tirx.Stmt]]) -> tirx.Stmt:
    """Choose by halves: LLVM makes a jump table of it, nvcc a tree of logarithmic depth."""
    if len(branches) == 1:
        return branches[0][1]
    middle = len(branches) // 2
    return tirx.IfThenElse(
        value < branches[middle][0], _switch(value, branches[:middle]), _switch(value, branches[middle:])
    )


def _call(function: GlobalVar, *args: ir.Expr) -> ir.Expr:
    return ir.Call(function, list(args), ret_ty=PrimType("void"))
