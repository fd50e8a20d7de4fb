"""The memory through which the blocks of a persistent kernel synchronise, kept from run to run.

`state` is int32, zeros but for the tag, and divided into cache lines so that two counters never share one:

    line 0        a tag that differs from program to program: equal Relax constants might become one
    line 1        number of blocks that have finished, over all runs: 64 bits, which never wrap around
    line 2 + e    counter of event e: number of its arrivals, over all runs
"""

import zlib

import numpy as np

from ...ir import ITEM_BYTES, RProgram

LINE = 128 // ITEM_BYTES["int32"]
FINISHED, FIRST_EVENT = LINE, 2 * LINE


def make_state(program: RProgram) -> np.ndarray:
    """Return the state before the first run."""
    state = np.zeros(FIRST_EVENT + LINE * program.num_events, np.int32)
    state[:LINE] = zlib.crc32(repr((program.name, program.lanes)).encode()) & 0x7FFFFFFF
    return state
