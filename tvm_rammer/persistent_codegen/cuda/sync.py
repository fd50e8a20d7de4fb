"""Calls of the fixed device functions in sync.cuh, steps.cuh and watchdog.cuh, as TIR.

Each call carries the whole file; its include guard keeps one copy. So the text travels with the IR through
`tvm.compile`, and nothing is added to the generated source afterwards.
"""

import functools
import pathlib

from tvm.backend.cuda.op import cuda_func_call
from tvm.ir import Expr


@functools.cache
def source(file: str = "sync.cuh") -> str:
    """Return the text of a file of device functions."""
    return (pathlib.Path(__file__).parent / file).read_text(encoding="utf-8") + "\n"


def run_number(finished: Expr, blocks: int) -> Expr:
    """Number of this run, from 1, for the thread that will say that its block, one of so many, has finished."""
    return cuda_func_call("rammer_run_number", finished, blocks, source_code=source(), return_type="int32")


def steps_before(steps: Expr) -> Expr:
    """Number of steps in all runs before, where runs differ in it."""
    return cuda_func_call("rammer_steps_before", steps, source_code=source("steps.cuh"), return_type="int32")


def word(own: Expr, lane: int) -> Expr:
    """A word that one lane of each warp holds, handed to all threads of the warp."""
    return cuda_func_call("rammer_word", own, lane, source_code=source(), return_type="int32")


def arrived(ahead: Expr, zero: Expr) -> Expr:
    """A word that was loaded in advance, when it is needed; `zero` is 0, but known at run time only."""
    return cuda_func_call("rammer_arrived", ahead, zero, source_code=source(), return_type="int32")


def thread(tid: Expr, threads: int) -> Expr:
    """The index of a thread of an rTask, hidden from nvcc, which would compute what depends on it ahead of all rows."""
    return cuda_func_call("rammer_thread", tid, threads, source_code=source(), return_type="int32")


def target(own: Expr, waits: int, run: Expr, *, backs: bool) -> Expr:
    """What the counter of a lane is to reach, of its own row and of the next."""
    return cuda_func_call("rammer_target", own, waits, run, int(backs), source_code=source(), return_type="int32")


def waits_for(own: Expr, waits: int, ahead: Expr) -> Expr:
    """Whether a row has to look at a counter; `ahead` is how far ahead of its target each lane's was seen."""
    return cuda_func_call("rammer_waits", own, waits, ahead, source_code=source(), return_type="bool")


def wait(state: Expr, own: Expr, waits: int, target: Expr, ahead: Expr) -> Expr:
    """A warp sleeps until its first `waits` counters have reached their targets: an acquire, for the whole GPU.

    Returns for each lane how far ahead its counter is.
    """
    return cuda_func_call("rammer_wait", state, own, waits, target, ahead, source_code=source(), return_type="int32")


def watched_wait(
    state: Expr, own: Expr, waits: int, target: Expr, ahead: Expr, run: Expr, report: Expr, row: Expr, limit: int
) -> Expr:
    """As `wait`, but the block gives up after `limit` times 2^20 cycles, and says so in `report`."""
    return cuda_func_call(
        "rammer_watched_wait", state, own, waits, target, ahead, run, report, row, limit,
        source_code=source("watchdog.cuh"), return_type="int32",
    )  # fmt: skip


def seen_ahead(seen: Expr, waits: int, looked: Expr) -> Expr:
    """For each lane how far ahead its counter of the next row is, by what the lanes after it have seen."""
    return cuda_func_call("rammer_ahead", seen, waits, looked, source_code=source(), return_type="int32")


def watched_barrier(report: Expr, what: Expr) -> Expr:
    """All threads of the block; what the row is to do, or nothing where a block has given up."""
    return cuda_func_call(
        "rammer_watched_barrier", report, what, source_code=source("watchdog.cuh"), return_type="int32"
    )


def signal(state: Expr, own: Expr, first: int, signals: int) -> Expr:
    """A warp adds one to each of some counters: a release, for the whole GPU."""
    return cuda_func_call("rammer_signal", state, own, first, signals, source_code=source())


def finish(finished: Expr) -> Expr:
    """One thread says that its block has done its part of the run."""
    return cuda_func_call("rammer_finish", finished, source_code=source())


def finish_steps(finished: Expr, blocks: int, steps: Expr, done: Expr) -> Expr:
    """As `finish`; the last of the blocks notes how many steps are `done`, over all runs."""
    return cuda_func_call("rammer_finish_steps", finished, blocks, steps, done, source_code=source("steps.cuh"))


def finish_exits(finished: Expr, blocks: int, steps: Expr, exits: Expr) -> Expr:
    """As `finish_steps`; a counter has one arrival for each step."""
    return cuda_func_call("rammer_finish_exits", finished, blocks, steps, exits, source_code=source("steps.cuh"))


def block_barrier() -> Expr:
    """All threads of the block."""
    return cuda_func_call("rammer_block_barrier", source_code=source())


def rtask_barrier(identity: int, threads: int) -> Expr:
    """The first `threads` threads of the block, on hardware barrier `identity` (1 to 15)."""
    return cuda_func_call("rammer_rtask_barrier", identity, threads, source_code=source())


def keep(constant: Expr, kept: Expr, vectors: Expr) -> Expr:
    """All threads of the block copy so many vectors of 16 bytes to shared memory."""
    return cuda_func_call("rammer_keep", constant, kept, vectors, source_code=source())


def opaque(pointer: Expr) -> Expr:
    """A pointer into global memory that nvcc knows nothing of."""
    return cuda_func_call("rammer_pointer", pointer, source_code=source(), return_type="handle")


def select(condition: Expr, one: Expr, other: Expr) -> Expr:
    """The first of two pointers where a condition holds, else the second."""
    return cuda_func_call("rammer_select", condition, one, other, source_code=source(), return_type="handle")
