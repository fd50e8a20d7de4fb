"""The persistent kernel as TIR: an interpreter of the plan's rows, with one branch for each call signature.

    slices that the vEU keeps     copied to shared memory, once
    for each row of the lane      its words are there: they were loaded while the row before it was executed
        all                       load the words of the next row
        the first warp            waits, unless its counters were found done when the row before it waited
        all                       block barrier
        the rTask's threads       rTask after rTask
        all, if it signals        block barrier
        the last warp             signals

So the first warp looks at the next counters while the last one waits for its stores to be visible.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tvm import tirx
from tvm.ir import Expr, GlobalVar
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from ...ir import RProgram
from ..arrays import item_bytes, scalar_of
from ..layout import CONSTANTS, FIRST_EXTERNAL, KEPT, Layout
from ..tables import CallSignature, Tables, pointer
from . import sync
from .kept import copy_slices
from .memory import declare_arena, declare_parameters, declare_views
from .rows import MARKS, SIGNALS, WARP, RowForm
from .rtask import RTASK_BARRIER
from .state import FINISHED, first_report

_MIN_BLOCKS = "tirx.launch_bounds_min_blocks_per_sm"

MANY_FUNCTIONS = 20
"""With more of them, what they make of a thread's index is computed in each row (`sync.thread`), some 20 cycles; with
fewer it is kept in registers."""


@dataclass(frozen=True, slots=True)
class _Body:
    """What the pieces of the kernel refer to: its buffers, and the indices of its block and thread."""

    begin: tirx.Buffer
    rows: tirx.Buffer
    state: tirx.Buffer
    form: RowForm
    width: int
    steps: int
    views: Mapping[tuple[int, str], tirx.Buffer]
    arena: Mapping[str, tirx.Buffer]
    callees: Mapping[str, GlobalVar]
    threads: int
    veu: tirx.Var
    tid: tirx.Var
    many: bool
    watchdog: int | None
    report: int


def build_kernel(
    program: RProgram,
    layout: Layout,
    tables: Tables,
    form: RowForm,
    constants: Sequence[np.ndarray],
    callees: Mapping[str, GlobalVar],
    threads: int,
    shared_bytes: int,
    blocks_per_unit: int,
    watchdog: int | None,
) -> tirx.PrimFunc:
    """Build the persistent kernel of a program.

    Parameters
    ----------
    program : RProgram
    layout : Layout
    tables : Tables
    form : RowForm
    constants : sequence of numpy.ndarray
        The arrays named in `memory.CONSTANT_NAMES`.
    callees : mapping of str to GlobalVar
        The rTask functions by name.
    threads, shared_bytes : int
        Block size, and shared memory of a block: its arena, and what it keeps of constants.
    blocks_per_unit : int
        How many must be resident on each unit: a thread gets no more registers than that leaves it. Where nothing is
        said, ptxas may spill some for the sake of one block more.
    watchdog : int or None
        After how many times 2^20 cycles a wait gives up.

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
        segments, plan = declare_parameters(program, layout, constants)
        with (
            T.thread_binding(len(program.lanes), thread="blockIdx.x") as veu,
            T.thread_binding(threads, thread="threadIdx.x") as tid,
            T.attr(tirx.IntImm("int32", 0), _MIN_BLOCKS, blocks_per_unit),
        ):
            IRBuilder.name("veu", veu)
            IRBuilder.name("tid", tid)
            arena = declare_arena(tables.signatures, shared_bytes)
            views = declare_views(segments, tables.signatures)
            if program.kept_bytes:
                constants_view = next(view for (segment, _), view in views.items() if segment == CONSTANTS)
                copy_slices(plan["begin"], constants_view, arena, veu, len(program.lanes))
            _walk(
                _Body(
                    **plan,
                    form=form,
                    width=tables.width,
                    steps=program.steps,
                    views=views | {(KEPT, dtype): array for dtype, array in arena.items()},
                    arena=arena,
                    callees=callees,
                    threads=threads,
                    veu=veu,
                    tid=tid,
                    many=len(tables.signatures) > MANY_FUNCTIONS,
                    watchdog=watchdog,
                    report=first_report(program),
                ),
                tables.signatures,
                len(program.lanes),
            )
    return builder.get()


def _walk(body: _Body, signatures: Sequence[CallSignature], blocks: int) -> None:
    finished = T.address_of(body.state[FINISHED])
    run = _bind("run", sync.run_number(finished, blocks))
    first, last = _bind("first", body.begin[body.veu]), _bind("last", body.begin[body.veu + 1])
    lane = _bind("lane", body.tid % WARP)
    here, following = (_registers(name, body.form.words // WARP) for name in ("here", "following"))
    row = _Row(here, following, _registers("ahead", 1), _bind("zero", body.begin[0]))
    _load(body, row.here, first, lane)
    T.buffer_store(row.ahead, -1, [0])
    if body.steps == 1:
        with T.serial(0, last - first) as n:
            _walk_row(body, signatures, row, n, first + n + 1, lane, run, None)
    else:
        again = body.rows.shape[0] // body.form.words // 2  # where the rows of all steps but the first begin
        with T.serial(0, body.steps) as k:
            steps_before = _bind("steps_before", (run - 1) * body.steps + k)
            with T.serial(0, last - first) as n:
                ends = _bind("ends", n + 1 == last - first)
                at = tirx.Select(ends, again + first, tirx.Select(k == 0, 0, again) + first + n + 1)
                _walk_row(body, signatures, row, n, at, lane, steps_before + 1, k)
    with T.If(body.tid == 0), T.Then():
        T.evaluate(sync.finish(finished))


@dataclass(frozen=True, slots=True)
class _Row:
    """Registers: a thread's words of this row and of the next; how far ahead of its wait a counter was seen; a 0."""

    here: tirx.Buffer
    following: tirx.Buffer
    ahead: tirx.Buffer
    zero: Expr


def _registers(name: str, count: int) -> tirx.Buffer:
    return IRBuilder.name(name, T.alloc_buffer((count,), "int32", scope="local", layout=None))


def _load(body: _Body, words: tirx.Buffer, number: Expr, lane: Expr) -> None:
    for i in range(body.form.words // WARP):
        T.buffer_store(words, body.rows[number * body.form.words + i * WARP + lane], [i])


def _walk_row(
    body: _Body,
    signatures: Sequence[CallSignature],
    row: _Row,
    n: Expr,
    following: Expr,
    lane: Expr,
    count: Expr,
    k: tirx.Var | None,
) -> None:
    """Row `n` of the lane, before row `following` of the plan; `count` is the number of the run, or of this step over
    all runs.
    """
    form = body.form
    what, start, count_, step = (
        _bind(name, _word(row, form.what + i)) for i, name in enumerate(("what", "start", "count", "step"))
    )
    _load(body, row.following, following, lane)
    with T.If(body.tid < WARP), T.Then():
        T.buffer_store(row.ahead, _wait(body, row, n, count), [0])
    if body.watchdog is None:
        T.evaluate(sync.block_barrier())
    else:
        what = _bind("watched", sync.watched_barrier(_report(body), what))
    with T.If(what >= 0), T.Then():
        _choose(body, signatures, 0, what, row, (start, count_, step), k)
    with T.If((what & SIGNALS) != 0), T.Then():
        T.evaluate(sync.block_barrier())
        with T.If(body.tid >= body.threads - WARP), T.Then():
            T.evaluate(sync.signal(T.address_of(body.state[0]), row.here[0], form.first_signal, form.signals))
    for i in range(form.words // WARP):
        T.buffer_store(row.here, sync.arrived(row.following[i], row.zero), [i])


def _wait(body: _Body, row: _Row, n: Expr, count: Expr) -> Expr:
    """The call with which the first warp waits for what row `n` needs."""
    waits, backs = body.form.waits, body.form.backs
    state, ahead = T.address_of(body.state[0]), sync.arrived(row.ahead[0], row.zero)
    if body.watchdog is None:
        return sync.wait(state, row.here[0], waits, count, ahead, backs=backs)
    report, limit = _report(body), body.watchdog
    return sync.watched_wait(state, row.here[0], waits, count, ahead, report, n, limit, backs=backs)


def _report(body: _Body) -> Expr:
    return T.address_of(body.state[body.report])


def _word(row: _Row, number: int) -> Expr:
    return sync.word(row.here[number // WARP], number % WARP)


def _bind(name: str, value: Expr) -> tirx.Var:
    return IRBuilder.name(name, T.bind(value))


def _choose(
    body: _Body,
    signatures: Sequence[CallSignature],
    base: int,
    what: Expr,
    row: _Row,
    rtasks: tuple[Expr, Expr, Expr],
    k: tirx.Var | None,
) -> None:
    """Find the call signature by a binary search, so that hundreds of them cost eight comparisons."""
    if len(signatures) == 1:
        _run(body, signatures[0], row, rtasks, k)
        return
    half = len(signatures) // 2
    with T.If(what < MARKS * (base + half)):
        with T.Then():
            _choose(body, signatures[:half], base, what, row, rtasks, k)
        with T.Else():
            _choose(body, signatures[half:], base + half, what, row, rtasks, k)


def _run(body: _Body, signature: CallSignature, row: _Row, rtasks: tuple[Expr, Expr, Expr], k: tirx.Var | None) -> None:
    function = signature.function
    start, count, step = rtasks

    def argument(i: int) -> Expr:
        return _bind(f"argument{i}", _word(row, body.form.first_argument + i))

    pointers = [_pointer(body, signature, i, argument, k) for i in range(len(function.dtypes))]
    numbers = [argument(len(pointers) + n) for n in range(len(function.numbers))]
    scratch = [
        _scratch_pointer(body, dtype, offset)
        for (_, dtype), (_, offset) in zip(function.scratch, function.scratch_offsets(), strict=True)
    ]

    def loop() -> None:
        thread = _bind("thread", sync.thread(body.tid, function.threads)) if body.many else body.tid
        with T.serial(0, count, annotations={"disable_unroll": True}) as i:
            T.evaluate(body.callees[function.name](*pointers, *scratch, start + i * step, thread, *numbers))
            if scratch:  # the next rTask uses the same arena
                with T.If(i + 1 < count), T.Then():
                    T.evaluate(sync.rtask_barrier(RTASK_BARRIER, function.threads))

    if function.threads == body.threads:
        loop()
    else:
        with T.If(body.tid < function.threads), T.Then():
            loop()


def _scratch_pointer(body: _Body, dtype: str, offset: int) -> Expr:
    """A pointer into the arena; where there is no array of its vectors, to as many scalars.

    TVM wants one element type a variable, and makes it that of vectors where all accesses are alike.
    """
    if dtype in body.arena:
        return T.address_of(body.arena[dtype][offset // item_bytes(dtype)])
    scalar = scalar_of(dtype)
    lanes = item_bytes(dtype) // item_bytes(scalar)
    return T.address_of(body.arena[scalar][tirx.Ramp(offset // item_bytes(scalar), 1, lanes)])


def _pointer(
    body: _Body, signature: CallSignature, i: int, argument: Callable[[int], Expr], k: tirx.Var | None
) -> Expr:
    """A pointer that a function is called with."""
    segments, dtype = signature.segments[i], signature.function.dtypes[i]
    offset = signature.offsets[i]
    word: Expr | int = argument(i) if segments[0] < FIRST_EXTERNAL or len(segments) > 1 else 0
    shift: Expr | int = 0 if offset is None else argument(offset)
    if k is not None and (stride := signature.strides[i]) is not None:
        slot = (k + argument(stride + body.width)) & argument(stride + 2 * body.width)
        if segments[0] >= FIRST_EXTERNAL:
            shift = shift + slot * argument(stride)
        else:
            word = word + slot * argument(stride)

    def element(segment: int, index: Expr | int) -> Expr:
        return T.address_of(body.views[segment, dtype][index])

    found = pointer(segments, word, element, sync.select, shift)
    return found if KEPT in segments else sync.opaque(found)
