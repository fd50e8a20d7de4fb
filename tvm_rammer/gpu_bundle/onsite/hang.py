"""The report of a kernel that a watchdog ended: who waits for what.

It lies behind the counters of a persistent kernel, int32 words that are zero as long as nothing hangs
(`persistent_codegen/cuda/state.py`):

    HEAD words          number of vEUs that have given up
    WORDS of each vEU   why it has, row of its lane, event, count it expects, count it saw, number of the run or step
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import HangError

HEAD, WORDS = 32, 8
TOO_LATE = 1
"""Why a vEU gave up that waited for too long; any other number: it waited when another one gave up."""

_SHOWN = 8


def report_bytes(blocks: int) -> int:
    """Bytes of the report of so many vEUs."""
    return 4 * (HEAD + WORDS * blocks)


@dataclass(frozen=True, slots=True)
class Hang:
    """A wait that had not come true when the kernel ended.

    Parameters
    ----------
    veu : int
    row : int
        Of the vEU's lane, from 0 (`persistent_codegen/cuda/rows.py`).
    event : int
        Number in the plan.
    expected, seen : int
        What its counter should have reached, and what it had, over all runs and modulo 2^32.
    run : int
        Number of the run, or of the step over all runs, from 1.
    late : bool
        Whether this vEU waited for too long; otherwise another one did, while this one waited.
    """

    veu: int
    row: int
    event: int
    expected: int
    seen: int
    run: int
    late: bool

    def __str__(self) -> str:
        return (
            f"vEU {self.veu}, row {self.row}: event {self.event} was to reach {self.expected} and is at {self.seen} "
            f"(run {self.run})"
        )


def read_hangs(words: Sequence[int]) -> list[Hang]:
    """Read a report.

    Parameters
    ----------
    words : sequence of int
        int32.

    Returns
    -------
    list of Hang
        Those that waited for too long first; empty where nothing hung.
    """
    if not words[0]:
        return []
    found = []
    for veu, start in enumerate(range(HEAD, len(words) - WORDS + 1, WORDS)):
        why, row, event, expected, seen, run, *_ = words[start : start + WORDS]
        if why:
            found.append(Hang(veu, row, event, expected % 2**32, seen % 2**32, run, why == TOO_LATE))
    return sorted(found, key=lambda hang: (not hang.late, hang.veu))


def check_hangs(kernel: str, words: Sequence[int]) -> None:
    """Make sure that a run came to its end.

    Raises
    ------
    HangError
        A watchdog ended it: names the vEUs that waited, and for what.
    """
    if hangs := read_hangs(words):
        more = f", and {len(hangs) - _SHOWN} more vEUs" if len(hangs) > _SHOWN else ""
        raise HangError(
            f"{kernel} hung, and its watchdog ended it: {'; '.join(map(str, hangs[:_SHOWN]))}{more}. Its counters are "
            "spoilt; load it anew, and report this with the model"
        )
