"""The memory through which the blocks of a persistent kernel synchronise, kept from run to run.

`state` is int32, zeros but for the tag, and divided into cache lines so that two counters never share one:

    line 0        a tag that differs from program to program: equal Relax constants might become one
    line 1        number of blocks that have finished, over all runs: 64 bits, which never wrap around
                  then number of steps, over all runs, where runs differ in it
    line 2 + e    counter of event e: number of its arrivals, over all runs

With a watchdog (watchdog.cuh) its report follows, zeros until a block gives up:

    a line        number of blocks that have given up
    REPORT words  of each block: why it has, row of its lane, event, count it expects, count it saw, run or step
"""

import zlib

import numpy as np

from ...ir import ITEM_BYTES, RProgram

LINE = 128 // ITEM_BYTES["int32"]
FINISHED, STEPS, FIRST_EVENT = LINE, LINE + 2, 2 * LINE
REPORT = 8


def counter_of(event: int) -> int:
    """The word of the state that counts an event's arrivals."""
    return FIRST_EVENT + LINE * event


def first_report(program: RProgram) -> int:
    """The word of the state at which a watchdog's report begins."""
    return counter_of(program.num_events)


def make_state(program: RProgram, *, watched: bool = False) -> np.ndarray:
    """Return the state before the first run; `watched` with room for a watchdog's report."""
    report = LINE + REPORT * len(program.lanes) if watched else 0
    state = np.zeros(first_report(program) + report, np.int32)
    state[:LINE] = zlib.crc32(repr((program.name, program.lanes)).encode()) & 0x7FFFFFFF
    return state
