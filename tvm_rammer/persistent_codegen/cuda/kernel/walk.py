"""An interpreter of the plan's rows, with one branch for each call signature.

    slices that the vEU keeps     copied to shared memory, once
    for each row of the lane      its words are there: they were loaded while the row before it was executed
        all                       load the words of the next row; find the function, make its pointers
        the first warp            waits, unless its counters were found done when the row before it waited
        all                       block barrier
        the rTask's threads       rTask after rTask
        all, if it signals        block barrier
        the last warp             signals

So the first warp looks at the next counters while the last one waits for its stores to be visible, and a row is decoded
before it waits: each branch has a wait of its own, and nothing lies between its end and the rTask but a barrier.

In a program of several steps the rows come again in each. Where a step says that there is no other, its condition is
in memory once the lane's last row has waited (`RProgram.exit`), and every thread of the block reads it there.
"""

from collections.abc import Sequence

from tvm import tirx
from tvm.ir import Expr
from tvm.tirx.script import builder as T

from ...calls import CallSignature
from .. import sync
from ..rows import SIGNALS, WARP
from ..state import FINISHED, STEPS
from .body import Body, Row, bind, registers
from .call import choose


def walk(body: Body, signatures: Sequence[CallSignature], blocks: int) -> None:
    """Walk the lane of a block, as often as there are steps.

    Parameters
    ----------
    body : Body
    signatures : sequence of CallSignature
    blocks : int
        Of the grid.
    """
    if body.varies:
        count = bind("before", sync.steps_before(body.counter(STEPS)))
    else:
        count = bind("run", sync.run_number(body.counter(FINISHED), blocks))
    first, last = bind("first", body.begin[body.veu]), bind("last", body.begin[body.veu + 1])
    lane = bind("lane", body.tid % WARP)
    here, following = (registers(name, body.form.words // WARP) for name in ("here", "following"))
    target, ahead, waits = registers("target", 1), registers("ahead", 1), registers("waits", 1, "bool")
    row = Row(here, following, target, ahead, waits, bind("zero", body.begin[0]))
    _load(body, row.here, first, lane)
    T.buffer_store(row.ahead, -1, [0])
    if body.steps == 1:
        with T.serial(0, last - first) as n:
            _walk_row(body, signatures, row, n, first + n + 1, lane, count, None)
    else:
        _walk_steps(body, signatures, row, first, last, lane, count)
    with T.If(body.tid == 0), T.Then():
        _finish(body, blocks, count)


def _walk_steps(
    body: Body, signatures: Sequence[CallSignature], row: Row, first: Expr, last: Expr, lane: Expr, count: Expr
) -> None:
    """All steps; `count` is the number of the run, or how many steps there were before it."""
    again = body.rows.shape[0] // body.form.words // 2  # where the rows of all steps but the first begin
    steps = body.steps if body.run_steps is None else body.run_steps
    if body.conditions is not None:  # what has no rows cannot know when to leave
        steps = tirx.Select(first < last, steps, 0)
    with T.serial(0, steps) as k:
        steps_before = bind("steps_before", (count if body.varies else (count - 1) * body.steps) + k)
        with T.serial(0, last - first) as n:
            ends = bind("ends", n + 1 == last - first)
            at = tirx.Select(ends, again + first, tirx.Select(k == 0, 0, again) + first + n + 1)
            _walk_row(body, signatures, row, n, at, lane, steps_before + 1, k)
        if body.conditions is not None:
            T.evaluate(sync.block_barrier())
            with T.If(tirx.Not(body.conditions[k])), T.Then():
                T.evaluate(T.break_loop())


def _finish(body: Body, blocks: int, count: Expr) -> None:
    """One thread says that its block has done its part of the run; the last one, how many steps there were."""
    finished, steps = body.counter(FINISHED), body.counter(STEPS)
    if body.exits is not None:
        T.evaluate(sync.finish_exits(finished, blocks, steps, body.counter(body.exits)))
    elif body.run_steps is not None:
        T.evaluate(sync.finish_steps(finished, blocks, steps, count + body.run_steps))
    else:
        T.evaluate(sync.finish(finished))


def _load(body: Body, words: tirx.Buffer, number: Expr, lane: Expr) -> None:
    for i in range(body.form.words // WARP):
        T.buffer_store(words, body.rows[number * body.form.words + i * WARP + lane], [i])


def _walk_row(
    body: Body,
    signatures: Sequence[CallSignature],
    row: Row,
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
        bind(name, row.word(form.what + i)) for i, name in enumerate(("what", "start", "count", "step"))
    )
    _load(body, row.following, following, lane)

    first_warp = body.tid < WARP
    _prepare_wait(body, row, count)

    def wait() -> None:
        with T.If(tirx.all(first_warp, row.waits[0])), T.Then():
            T.buffer_store(row.ahead, _wait(body, row, n, count), [0])

    def begin() -> None:
        wait()
        T.evaluate(sync.block_barrier())

    if body.watchdog is None:
        with T.If(what >= 0):
            with T.Then():
                choose(body, signatures, 0, what, row, (start, count_, step), k, begin)
            with T.Else():  # the next barrier of the block is soon enough
                wait()
    else:  # whether anything is run is known once the wait is over
        wait()
        what = bind("watched", sync.watched_barrier(body.counter(body.report), what))
        with T.If(what >= 0), T.Then():
            choose(body, signatures, 0, what, row, (start, count_, step), k, lambda: None)
    with T.If((what & SIGNALS) != 0), T.Then():
        T.evaluate(sync.block_barrier())
        with T.If(body.tid >= body.threads - WARP), T.Then():
            T.evaluate(sync.signal(body.counter(0), row.here[0], form.first_signal, form.signals))
    T.buffer_store(row.ahead, sync.seen_ahead(row.ahead[0], form.waits, row.waits[0]), [0])
    for i in range(form.words // WARP):
        T.buffer_store(row.here, sync.arrived(row.following[i], row.zero), [i])


def _prepare_wait(body: Body, row: Row, count: Expr) -> None:
    """What the first warp needs to wait, and whether it has to; nothing is seen yet of the counters of the next row."""
    waits, ahead = body.form.waits, sync.arrived(row.ahead[0], row.zero)
    T.buffer_store(row.target, sync.target(row.here[0], waits, count, backs=body.form.backs), [0])
    T.buffer_store(row.waits, sync.waits_for(row.here[0], waits, ahead), [0])


def _wait(body: Body, row: Row, n: Expr, count: Expr) -> Expr:
    """The call with which the first warp waits for what row `n` needs."""
    waits, given = body.form.waits, (row.target[0], row.ahead[0])
    if body.watchdog is None:
        return sync.wait(body.counter(0), row.here[0], waits, *given)
    report = body.counter(body.report)
    return sync.watched_wait(body.counter(0), row.here[0], waits, *given, count, report, n, body.watchdog)
