"""Small wrongs done to the rows of a program."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.emulation.programs import Built
from tests.persistent_codegen.cuda.read_rows import (
    BEGIN,
    FIRST_EVENT,
    LINE,
    MARKS,
    ROWS,
    SIGNALS,
    arguments_of,
    branches_of,
    form_of,
    memory_of,
    numbers_of,
    operator_of,
    rows_of,
    waits_of,
    width_of,
)
from tvm_rammer.persistent_codegen.cuda.rows import RowForm

_Changed = Callable[[int, int], list[np.ndarray]]
"""The rows of a lane where so much is added to a word of one."""


@dataclass(frozen=True)
class TableMutant:
    """A program with wrong rows."""

    kind: str
    what: str
    built: Built


def mutants_of(built: Built) -> Iterator[TableMutant]:
    """All mutants of a program's rows."""
    lanes, form = rows_of(built), form_of(built)
    for v, rows in enumerate(lanes):
        for n in range(len(rows)):
            for kind, new in _changed_rows(built, form, rows, n):
                yield _mutant(built, kind, f"lane {v}, row {n}: {rows[n]}", [*lanes[:v], new, *lanes[v + 1 :]])
        if v and len(rows):
            moved = [*lanes[: v - 1], [*lanes[v - 1], rows[0]], rows[1:], *lanes[v + 1 :]]
            yield _mutant(built, "begin of a lane + 1", f"lane {v}", moved)


def _changed_rows(
    built: Built, form: RowForm, rows: Sequence[np.ndarray], n: int
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """(kind, what the rows of the lane are then)."""
    row = rows[n]
    what = int(row[form.what])

    def lane(*instead: np.ndarray) -> list[np.ndarray]:
        return [*rows[:n], *instead, *rows[n + 1 :]]

    def word(at: int, by: int) -> list[np.ndarray]:
        new = row.copy()
        new[at] += by
        return lane(new)

    yield "row left out", lane()
    yield "row twice", lane(row, row)
    if what & SIGNALS:
        yield "signals not marked", word(form.what, -SIGNALS)
    looks = range(2 * form.waits if waits_of(form, row, 0) else 0)  # a row that does not wait looks at nothing
    yield from (found for i in looks if row[i] >= 0 for found in _changed_waits(form, row, i, word))
    for i in range(form.first_signal, form.what):
        if row[i] >= 0:
            yield "signal left out", word(i, -1 - int(row[i]))
            yield "signal: event + 1", word(i, LINE)
            if row[i] > FIRST_EVENT:
                yield "signal: event - 1", word(i, -LINE)
            if n and (earlier := rows[n - 1])[i] < 0 and what >= 0:
                before, after = earlier.copy(), row.copy()
                before[i], after[i] = row[i], -1
                before[form.what] |= SIGNALS
                yield "signal before its rTasks", [*rows[: n - 1], before, after, *rows[n + 1 :]]
    if what >= 0:
        yield from _changed_runs(built, form, row, word)


def _changed_waits(form: RowForm, row: np.ndarray, i: int, word: _Changed) -> Iterator[tuple[str, list[np.ndarray]]]:
    name = "wait" if i < form.waits else "look ahead"
    yield f"{name} left out", word(i, -1 - int(row[i]))
    yield f"{name}: event + 1", word(i, LINE)
    if row[i] > FIRST_EVENT:
        yield f"{name}: event - 1", word(i, -LINE)
    yield f"{name}: arrivals + 1", word(form.first_arrivals + i, 1)
    yield f"{name}: arrivals - 1", word(form.first_arrivals + i, -1)


def _changed_runs(
    built: Built, form: RowForm, row: np.ndarray, word: _Changed
) -> Iterator[tuple[str, list[np.ndarray]]]:
    start, count = form.what + 1, form.what + 2
    yield "run left out", word(form.what, -MARKS * (int(row[form.what]) // MARKS + 1))
    yield "run: start + 1", word(start, 1)
    if row[start]:
        yield "run: start - 1", word(start, -1)
    yield "run: count + 1", word(count, 1)
    if row[count] > 1:
        yield "run: count - 1", word(count, -1)
        yield "run: step + 1", word(form.what + 3, 1)
    branches = branches_of(built)
    if int(row[form.what]) // MARKS < max(branches):
        yield "run: branch + 1", word(form.what, MARKS)
    program = built.program
    operator = operator_of(built, form, row, 0)
    for _, i, b in (found for found in arguments_of(program) if found[0] == operator):
        inside = memory_of(program, b).kind == "intermediate"
        for by in (-32, 32) if inside else (-1, 1):
            if row[form.first_argument + i] + by >= 0:
                kind = "offset of an argument" if inside else "segment of an argument"
                yield f"{kind}: {by:+}", word(form.first_argument + i, by)
        if not inside and program.graph.extent(b).start:
            for by in (-16, 16):
                yield f"shift of an argument: {by:+}", word(form.first_argument + width_of(built) + i, by)
    for at, _ in numbers_of(built, operator):
        yield "number of a function - 1", word(form.first_argument + at, -1)


def _mutant(built: Built, kind: str, what: str, lanes: Sequence[Sequence[np.ndarray]]) -> TableMutant:
    begin = np.cumsum([0, *map(len, lanes)]).astype(np.int32)
    words = np.array([row for lane in lanes for row in lane], np.int32).reshape(-1)
    # As many rows as the kernel's parameter has; what comes after the last lane is never executed.
    size = len(built.cuda.constants[ROWS])
    constants = list(built.cuda.constants)
    constants[BEGIN], constants[ROWS] = begin, np.pad(words, (0, max(0, size - len(words))))
    return TableMutant(kind, what, replace(built, cuda=replace(built.cuda, constants=tuple(constants))))
