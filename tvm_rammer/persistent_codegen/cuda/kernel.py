"""The text of the persistent kernel, as TIR: a loop over the rows of a lane, and one call for each call form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from tvm import tirx
from tvm.ir import Expr, GlobalVar
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from ...ir import ITEM_BYTES, RProgram
from ..layout import CONSTANTS, FIRST_EXTERNAL, WORKSPACE, Layout
from ..tables import ROW, RUN, SIGNAL, WAIT, CallForm, Tables, pointer
from . import sync
from .rtask import RTASK_BARRIER
from .state import FINISHED, FIRST_EVENT, LINE, RUNS

CONSTANT_NAMES = ("weights", "begin", "code", "arguments", "state")


@dataclass(frozen=True, slots=True)
class _Body:
    """What the pieces of the kernel refer to: its buffers, and the indices of its block and thread."""

    begin: tirx.Var
    code: tirx.Var
    arguments: tirx.Var
    state: tirx.Var
    width: int
    views: Mapping[tuple[int, str], tirx.Var]
    arena: Mapping[str, tirx.Var]
    callees: Mapping[str, GlobalVar]
    threads: int
    veu: tirx.Var
    tid: tirx.Var


def build_kernel(
    program: RProgram,
    layout: Layout,
    tables: Tables,
    constants: Sequence[np.ndarray],
    callees: Mapping[str, GlobalVar],
    threads: int,
    shared_bytes: int,
) -> tirx.PrimFunc:
    """Build the persistent kernel of a program.

    Parameters
    ----------
    program : RProgram
    layout : Layout
    tables : Tables
    constants : sequence of numpy.ndarray
        The arrays named in `CONSTANT_NAMES`.
    callees : mapping of str to GlobalVar
        The rTask functions by name.
    threads, shared_bytes : int
        Block size, and size of its arena.

    Returns
    -------
    tirx.PrimFunc
        Parameters: inputs, `constants`, outputs, workspace.
    """
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name(program.name)
        T.func_attr(
            {
                "global_symbol": program.name,
                "tirx.noalias": True,
                "tirx.is_scheduled": True,
            }
        )
        segments, plan = _parameters(program, layout, constants)
        with (
            T.thread_binding(len(program.lanes), thread="blockIdx.x") as veu,
            T.thread_binding(threads, thread="threadIdx.x") as tid,
        ):
            IRBuilder.name("veu", veu)
            IRBuilder.name("tid", tid)
            _walk(
                _Body(
                    **plan,
                    width=tables.arguments.shape[1],
                    views=_views(segments, tables.forms),
                    arena=_arena(tables.forms, shared_bytes),
                    callees=callees,
                    threads=threads,
                    veu=veu,
                    tid=tid,
                ),
                tables.forms,
                len(program.lanes),
            )
    return builder.get()


def _parameters(
    program: RProgram, layout: Layout, constants: Sequence[np.ndarray]
) -> tuple[dict[int, tirx.Var], dict[str, tirx.Var]]:
    """Declare the parameters; return the segments by number, and the tables by name."""
    segments: dict[int, tirx.Var] = {}
    plan: dict[str, tirx.Var] = {}

    def tensor(name: str, shape: tuple[int, ...], dtype: str) -> tirx.Var:
        return T.arg(name, T.buffer(shape, dtype, layout=None))

    def external(positions: range, prefix: str) -> None:
        for i in positions:
            buffer = program.graph.buffers[layout.external[i]]
            segments[FIRST_EXTERNAL + i] = tensor(f"{prefix}{i}", buffer.shape, buffer.dtype)

    external(range(layout.num_inputs), "segment")
    for name, array in zip(CONSTANT_NAMES, constants, strict=True):
        plan[name] = tensor(name, array.shape, str(array.dtype))
    external(range(layout.num_inputs, len(layout.external)), "segment")
    segments[WORKSPACE] = tensor("workspace", (layout.workspace_bytes,), "uint8")
    segments[CONSTANTS] = plan.pop("weights")
    return segments, plan


def _views(segments: Mapping[int, tirx.Var], forms: Sequence[CallForm]) -> dict[tuple[int, str], tirx.Var]:
    """Each segment as a flat array of each element type that an rTask function wants of it."""
    wanted = sorted(
        {(s, d) for f in forms for some, d in zip(f.segments, f.function.dtypes, strict=True) for s in some}
    )
    views = {}
    for segment, dtype in wanted:
        whole = segments[segment]
        size = int(np.prod([int(n) for n in whole.shape])) * ITEM_BYTES[str(whole.dtype)] // ITEM_BYTES[dtype]
        views[segment, dtype] = T.decl_buffer((size,), dtype, data=whole.data, layout=None)
    return views


def _arena(forms: Sequence[CallForm], shared_bytes: int) -> dict[str, tirx.Var]:
    """One dynamic shared array as long as the largest need, seen as each element type."""
    if not shared_bytes:
        return {}
    whole = IRBuilder.name("arena", T.alloc_buffer((shared_bytes,), "uint8", scope="shared.dyn", layout=None))
    dtypes = sorted({dtype for f in forms for _, dtype in f.function.scratch})
    return {
        dtype: T.decl_buffer(
            (shared_bytes // item_bytes(dtype),), dtype, data=whole.data, scope="shared.dyn", layout=None
        )
        for dtype in dtypes
    }


def item_bytes(dtype: str) -> int:
    """Size of an element; a vector type such as float32x2 counts its lanes."""
    scalar, _, lanes = dtype.partition("x")
    return ITEM_BYTES[scalar] * int(lanes or 1)


def _walk(body: _Body, forms: Sequence[CallForm], blocks: int) -> None:
    runs = T.address_of(body.state[RUNS])
    run = _bind("run", sync.run_number(runs))
    first, last = _bind("first", body.begin[body.veu]), _bind("last", body.begin[body.veu + 1])
    with T.serial(0, last - first) as row:
        at = _bind("at", (first + row) * ROW)
        what = _bind("what", body.code[at])
        with T.If(what == WAIT):
            with T.Then(), T.If(body.tid == 0), T.Then():
                T.evaluate(sync.wait(_counter(body, at), body.code[at + 2], run))
            with T.Else(), T.If(what == SIGNAL):
                with T.Then():
                    T.evaluate(sync.block_barrier())
                    with T.If(body.tid == 0), T.Then():
                        T.evaluate(sync.signal(_counter(body, at)))
                with T.Else():
                    T.evaluate(sync.block_barrier())
                    _choose(body, forms, 0, what, at)
    with T.If(body.tid == 0), T.Then():
        T.evaluate(sync.finish(runs, T.address_of(body.state[FINISHED]), blocks, run))


def _bind(name: str, value: Expr) -> tirx.Var:
    return IRBuilder.name(name, T.bind(value))


def _counter(body: _Body, at: Expr) -> Expr:
    return T.address_of(body.state[FIRST_EVENT + body.code[at + 1] * LINE])


def _choose(body: _Body, forms: Sequence[CallForm], base: int, what: Expr, at: Expr) -> None:
    """Find the call form by halving, so that hundreds of forms cost eight comparisons."""
    if len(forms) == 1:
        _run(body, forms[0], at)
        return
    half = len(forms) // 2
    with T.If(what < RUN + base + half):
        with T.Then():
            _choose(body, forms[:half], base, what, at)
        with T.Else():
            _choose(body, forms[half:], base + half, what, at)


def _run(body: _Body, form: CallForm, at: Expr) -> None:
    function = form.function
    words = enumerate(("operator_", "start", "count", "step"))
    operator, start, count, step = [_bind(name, body.code[at + 1 + i]) for i, name in words]

    def element(dtype: str, segment: int, index: Expr | int) -> Expr:
        return T.address_of(body.views[segment, dtype][index])

    pointers = [
        pointer(form.segments[i], body.arguments[operator * body.width + i], partial(element, dtype), sync.select)
        for i, dtype in enumerate(function.dtypes)
    ]
    scratch = [
        T.address_of(body.arena[dtype][offset // item_bytes(dtype)])
        for (_, dtype), (_, offset) in zip(function.scratch, function.scratch_offsets(), strict=True)
    ]

    def loop() -> None:
        with T.serial(0, count) as i:
            T.evaluate(body.callees[function.name](*pointers, *scratch, start + i * step, body.tid))
            if scratch:  # the next rTask uses the same arena
                T.evaluate(sync.rtask_barrier(RTASK_BARRIER, function.threads))

    if function.threads == body.threads:
        loop()
    else:
        with T.If(body.tid < function.threads), T.Then():
            loop()
