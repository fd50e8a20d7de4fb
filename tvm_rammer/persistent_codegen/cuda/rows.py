"""The plan as a persistent kernel reads it: one row for each run, with all that comes before and after it.

A row holds the waits before a run, the run with what its pointers are made of, and the signals after it. A warp reads
it in one load, a word (or a few) for each lane, while the row before it is executed; `rammer_word` then passes a word
to all.

    events      (own) counters that the run waits for, as words of `state`; -1: none
    events      (next) those of the row after it, which are asked for in the same look
    arrivals    of each
    back        of each, in a program of several steps (`Wait.back`)
    signals     counters that are signalled after the run; -1: none
    what        MARKS x branch, plus SIGNALS if it does; the branch is that of a call signature, or -1
    start, count, step
    arguments   the operator's, with the numbers of its function, as in tables.py

What is polled and signalled lies within the first 32 words: a lane has its own counter at hand. A program of several
steps has all rows twice, first those of step 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...errors import CodegenError
from ..tables import FIRST, RUN, SIGNAL, WAIT, Tables
from .state import counter_of

WARP = 32
"""Words of a row are a multiple of this: a lane of a warp reads as many as it takes."""

SIGNALS, MARKS = 1, 2
"""The mark of a row that signals, and what branches are multiples of."""

MAX_WAITS, MAX_SIGNALS = 4, 4
"""Of a row; where a plan has more at one place, rows without a run come before or after."""


@dataclass(frozen=True, slots=True)
class RowForm:
    """Where in a row its parts are, in words.

    Parameters
    ----------
    waits, signals : int
        Most of each that a row has.
    backs : bool
        Whether waits say for which step they are.
    arguments : int
        Words of an operator's arguments.
    """

    waits: int
    signals: int
    backs: bool
    arguments: int

    @property
    def first_arrivals(self) -> int:
        return 2 * self.waits

    @property
    def first_back(self) -> int:
        return 4 * self.waits

    @property
    def first_signal(self) -> int:
        return (6 if self.backs else 4) * self.waits

    @property
    def what(self) -> int:
        """Followed by start, count and step."""
        return self.first_signal + self.signals

    @property
    def first_argument(self) -> int:
        return self.what + 4

    @property
    def words(self) -> int:
        """Of a row, a multiple of `WARP`."""
        return -(-(self.first_argument + self.arguments) // WARP) * WARP


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of a plan.

    Parameters
    ----------
    form : RowForm
    begin : numpy.ndarray
        int32: lane v has the rows begin[v] .. begin[v + 1].
    words : numpy.ndarray
        int32, (rows, form.words); a row more than all lanes have, for the last one looks a row ahead. In a program
        of several steps those of step 0, then again as many for all others.
    """

    form: RowForm
    begin: np.ndarray
    words: np.ndarray


@dataclass(slots=True)
class _Group:
    """Rows of tables.py that become one row here."""

    waits: list[np.ndarray]
    runs: list[np.ndarray]
    signals: list[np.ndarray]


def build_rows(tables: Tables, steps: int) -> Rows:
    """Put the rows of a plan together.

    Parameters
    ----------
    tables : Tables
    steps : int
        Of the program.

    Raises
    ------
    CodegenError
        The index of a word does not fit into 32 bits.
    """
    code = tables.code.copy()
    code[code[:, 0] == RUN + len(tables.signatures), 0] = (
        WAIT  # at the end of a step all leave, or none (kernel/walk.py)
    )
    lanes = [list(_groups(code[first:last])) for first, last in pairwise(tables.begin)]
    groups = [group for lane in lanes for group in lane]
    form = RowForm(
        max((len(g.waits) for g in groups), default=1) or 1,
        max((len(g.signals) for g in groups), default=1) or 1,
        steps > 1,
        tables.arguments.shape[1],
    )
    begin = np.cumsum([0, *map(len, lanes)]).astype(np.int32)
    words = np.full(((len(groups) + 1) * (2 if steps > 1 else 1), form.words), 0, np.int32)
    if words.size >= 2**31:
        raise CodegenError(f"a plan of {len(groups)} rows is too long for 32 bits; divide the model or its batch")
    for number, copy in enumerate(np.split(words, 2) if steps > 1 else [words]):
        in_step_0 = steps > 1 and number == 0
        for lane, first in zip(lanes, begin, strict=False):
            for n, group in enumerate(lane):
                following = lane[n + 1].waits if n + 1 < len(lane) else []
                _write(copy[first + n], form, group, following, tables.arguments, in_step_0=in_step_0)
    return Rows(form, begin, words)


def _groups(rows: np.ndarray) -> Iterator[_Group]:
    """Waits, then at most one run, then signals: as many rows at a time as fit into one."""
    group = _Group([], [], [])
    for row in rows:
        done = group.runs or group.signals
        full = {WAIT: len(group.waits) == MAX_WAITS, SIGNAL: len(group.signals) == MAX_SIGNALS}
        if (row[0] != SIGNAL and done) or full.get(int(row[0]), False):
            yield group
            group = _Group([], [], [])
        {WAIT: group.waits, SIGNAL: group.signals}.get(int(row[0]), group.runs).append(row)
    if group.waits or group.runs or group.signals:
        yield group


def _write(
    words: np.ndarray,
    form: RowForm,
    group: _Group,
    following: Sequence[np.ndarray],
    arguments: np.ndarray,
    *,
    in_step_0: bool,
) -> None:
    words[: form.first_arrivals] = words[form.first_signal : form.what] = -1
    for first, waits in ((0, group.waits), (form.waits, following)):
        for i, (_, event, arrivals, back, *_) in enumerate(waits, first):
            words[i], words[form.first_arrivals + i] = counter_of(event), arrivals
            if form.backs:
                words[form.first_back + i] = back
    for i, row in enumerate(group.signals, form.first_signal):
        words[i] = counter_of(row[1])
    words[form.what] = (SIGNALS if group.signals else 0) - MARKS
    for row in group.runs:
        what, operator = row[FIRST : FIRST + 2] if in_step_0 else row[:2]
        words[form.what] += MARKS * (1 + what - RUN)
        words[form.what + 1 : form.first_argument] = row[2:5]
        words[form.first_argument : form.first_argument + form.arguments] = arguments[operator]
