"""The persistent kernel as TIR: an interpreter of the tables, with one branch for each call signature."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from tvm import tirx
from tvm.ir import Expr, GlobalVar
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from ...ir import RProgram
from ..arrays import array_bytes, item_bytes
from ..layout import CONSTANTS, FIRST_EXTERNAL, WORKSPACE, Layout
from ..tables import ROW, RUN, SIGNAL, WAIT, CallSignature, Tables, pointer
from . import sync
from .rtask import RTASK_BARRIER
from .state import FINISHED, FIRST_EVENT, LINE

CONSTANT_NAMES = ("weights", "begin", "code", "arguments", "state")


@dataclass(frozen=True, slots=True)
class _Body:
    """What the pieces of the kernel refer to: its buffers, and the indices of its block and thread."""

    begin: tirx.Buffer
    code: tirx.Buffer
    arguments: tirx.Buffer
    state: tirx.Buffer
    width: int
    views: Mapping[tuple[int, str], tirx.Buffer]
    arena: Mapping[str, tirx.Buffer]
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
                    views=_views(segments, tables.signatures),
                    arena=_arena(tables.signatures, shared_bytes),
                    callees=callees,
                    threads=threads,
                    veu=veu,
                    tid=tid,
                ),
                tables.signatures,
                len(program.lanes),
            )
    return builder.get()


def _parameters(
    program: RProgram, layout: Layout, constants: Sequence[np.ndarray]
) -> tuple[dict[int, tirx.Buffer], dict[str, tirx.Buffer]]:
    """Declare the parameters; return the segments by number, and the tables by name."""
    segments: dict[int, tirx.Buffer] = {}
    plan: dict[str, tirx.Buffer] = {}
    external_buffers = (*layout.inputs, *layout.outputs)

    def tensor(name: str, shape: tuple[int, ...], dtype: str) -> tirx.Buffer:
        return T.arg(name, T.buffer(shape, dtype, layout=None))

    def declare_external(positions: range) -> None:
        for i in positions:
            buffer = program.graph.buffers[external_buffers[i]]
            segments[FIRST_EXTERNAL + i] = tensor(f"segment{i}", buffer.shape, buffer.dtype)

    declare_external(range(len(layout.inputs)))
    for name, array in zip(CONSTANT_NAMES, constants, strict=True):
        plan[name] = tensor(name, array.shape, str(array.dtype))
    declare_external(range(len(layout.inputs), len(external_buffers)))
    segments[WORKSPACE] = tensor("workspace", (layout.workspace_bytes,), "uint8")
    segments[CONSTANTS] = plan.pop("weights")
    return segments, plan


def _views(
    segments: Mapping[int, tirx.Buffer], signatures: Sequence[CallSignature]
) -> dict[tuple[int, str], tirx.Buffer]:
    """Declare each segment as a flat array of each element type that an rTask function reads or writes there."""
    wanted = {
        (segment, dtype)
        for signature in signatures
        for possible, dtype in zip(signature.segments, signature.function.dtypes, strict=True)
        for segment in possible
    }
    views = {}
    for number, dtype in sorted(wanted):
        segment = segments[number]
        size = array_bytes(segment) // item_bytes(dtype)
        views[number, dtype] = T.decl_buffer((size,), dtype, data=segment.data, layout=None)
    return views


def _arena(signatures: Sequence[CallSignature], shared_bytes: int) -> dict[str, tirx.Buffer]:
    """Allocate the block's scratch arena in dynamic shared memory, and declare it as each element type."""
    dtypes = sorted({dtype for s in signatures for _, dtype in s.function.scratch})
    if not dtypes:
        return {}
    # Where all accesses are of one type TVM retypes an allocation and keeps its extent: as bytes it would grow.
    size = shared_bytes // item_bytes(dtypes[0])
    arena = IRBuilder.name("arena", T.alloc_buffer((size,), dtypes[0], scope="shared.dyn", layout=None))
    return {
        dtype: T.decl_buffer(
            (shared_bytes // item_bytes(dtype),), dtype, data=arena.data, scope="shared.dyn", layout=None
        )
        for dtype in dtypes
    }


def _walk(body: _Body, signatures: Sequence[CallSignature], blocks: int) -> None:
    finished = T.address_of(body.state[FINISHED])
    run = _bind("run", sync.run_number(finished, blocks))
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
                    _choose(body, signatures, 0, what, at)
    with T.If(body.tid == 0), T.Then():
        T.evaluate(sync.finish(finished))


def _bind(name: str, value: Expr) -> tirx.Var:
    return IRBuilder.name(name, T.bind(value))


def _counter(body: _Body, at: Expr) -> Expr:
    return T.address_of(body.state[FIRST_EVENT + body.code[at + 1] * LINE])


def _choose(body: _Body, signatures: Sequence[CallSignature], base: int, what: Expr, at: Expr) -> None:
    """Find the call signature by a binary search, so that hundreds of them cost eight comparisons."""
    if len(signatures) == 1:
        _run(body, signatures[0], at)
        return
    half = len(signatures) // 2
    with T.If(what < RUN + base + half):
        with T.Then():
            _choose(body, signatures[:half], base, what, at)
        with T.Else():
            _choose(body, signatures[half:], base + half, what, at)


def _run(body: _Body, signature: CallSignature, at: Expr) -> None:
    function = signature.function
    words = enumerate(("operator_", "start", "count", "step"))
    operator, start, count, step = [_bind(name, body.code[at + 1 + i]) for i, name in words]

    def element(dtype: str, segment: int, index: Expr | int) -> Expr:
        return T.address_of(body.views[segment, dtype][index])

    def argument(i: int) -> Expr:
        return body.arguments[operator * body.width + i]

    pointers = [
        pointer(segments, argument(i), partial(element, dtype), sync.select, 0 if offset is None else argument(offset))
        for i, (segments, offset, dtype) in enumerate(
            zip(signature.segments, signature.offsets, function.dtypes, strict=True)
        )
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
