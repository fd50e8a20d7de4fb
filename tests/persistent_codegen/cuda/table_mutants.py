"""Small wrongs done to the rows of a program, and the way back from rows to a plan, for the verifier."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tests.emulation.programs import Built
from tvm_rammer.ir import ITEM_BYTES, Buffer, Instruction, Lane, RProgram, Run, Signal, Wait
from tvm_rammer.persistent_codegen.cuda.rows import RowForm

BEGIN, ROWS = 1, 2
"""Positions of the tables among the constants of a program."""

_SIGNALS, _MARKS = 1, 2
_EXTERNAL = 2
_Changed = Callable[[int, int], list[np.ndarray]]
"""The rows of a lane where so much is added to a word of one."""

_LINE, _FIRST_EVENT = 32, 64
"""Words of the state between two counters, and before the first."""


class ContradictionError(Exception):
    """Rows that are those of no plan."""


@dataclass(frozen=True)
class TableMutant:
    """A program with wrong rows."""

    kind: str
    what: str
    built: Built


def decoded(built: Built) -> RProgram:
    """The plan that the rows of a program say: its lanes, read anew.

    Raises
    ------
    ContradictionError
        A row calls a function with arguments that are no operator's, or looks for other events than the next one.
    """
    planned = built.program.lanes
    form = form_of(built)
    lanes = []
    for lane, rows in zip(planned, rows_of(built), strict=True):
        runs = iter([i.operator for i in lane if isinstance(i, Run)])
        parts = [_instructions(built, form, row, runs) for row in rows]
        for row, following in pairwise(rows):
            if _waits(form, row, 0) and _waits(form, row, form.waits) != _waits(form, following, 0):
                raise ContradictionError("a row looks for other events than the next one waits for")
        if len(rows) and any(_waits(form, rows[-1], form.waits)):
            raise ContradictionError("the last row looks for events of none")
        lanes.append(tuple(i for part in parts for i in part))
    return replace(built.program, lanes=tuple(lanes))


def runs_of(built: Built, branch: int) -> Iterator[tuple[np.ndarray, int, list[int]]]:
    """Each row that takes a branch of the kernel, with its operator and those that the lane has run before."""
    form = form_of(built)
    for lane, rows in zip(built.program.lanes, rows_of(built), strict=True):
        taken = [row for row in rows if row[form.what] >= 0]
        operators = [i.operator for i in lane if isinstance(i, Run)]
        for n, (row, operator) in enumerate(zip(taken, operators, strict=True)):
            if row[form.what] // _MARKS == branch:
                yield row, operator, operators[:n]


def needs_nothing_before(built: Built, branch: int) -> bool:
    """Whether rows that take a branch of the kernel wait for nothing, and share nothing with earlier ones of the lane.

    They read nothing that these write, and not both have memory of their rTasks' own.
    """
    waits, before = form_of(built).waits, built.program.graph.predecessors()
    scratch = [bool(function.scratch) for function in built.functions]
    return not any(
        (row[:waits] >= 0).any()
        or set(before[operator]) & set(earlier)
        or (scratch[operator] and any(scratch[o] for o in earlier))
        for row, operator, earlier in runs_of(built, branch)
    )


def reads_late(built: Built, branch: int) -> bool:
    """Whether the rTasks of a branch read what others have written behind a barrier of their own alone."""
    graph = built.program.graph
    for _, operator, _ in runs_of(built, branch):
        name = built.functions[operator].name
        text = built.source[built.source.rindex(f"void {name}(") :]
        parameters, body = text[: text.index("{")], text[text.index("{") : text.index("\n}\n")]
        head, barrier, _ = body.partition("rammer_rtask_barrier")
        names = re.findall(r"\bp(\d+)_\w+_ptr", parameters)
        op = graph.operators[operator]
        made = {str(n) for n, b in enumerate((*op.inputs, *op.outputs)) if graph.buffers[b].kind == "intermediate"}
        if not barrier or len(names) != len(op.inputs) + len(op.outputs):
            return False
        if made & set(re.findall(r"\bp(\d+)_\w+_ptr", head)):
            return False
    return True


def form_of(built: Built) -> RowForm:
    """Where the parts of a program's rows are."""
    program = built.program
    groups = [group for lane in program.lanes for group in groups_of(lane)]
    most = {kind: max(sum(isinstance(i, kind) for i in group) for group in groups) or 1 for kind in (Wait, Signal)}
    shifted = any(_is_external(program, b) and program.graph.extent(b).start for _, _, b in _arguments(program))
    return RowForm(most[Wait], most[Signal], program.steps > 1, (2 if shifted else 1) * _width(built))


def groups_of(lane: Lane) -> list[list[Instruction]]:
    """The instructions of each row: waits, a run, signals."""
    groups: list[list[Instruction]] = [[]]
    for instruction in lane:
        if any(not isinstance(i, Wait) for i in groups[-1]) and not isinstance(instruction, Signal):
            groups.append([])
        groups[-1].append(instruction)
    return groups


def rows_of(built: Built) -> list[np.ndarray]:
    """The rows of each lane."""
    begin, rows = built.cuda.constants[BEGIN], built.cuda.constants[ROWS].reshape(-1, form_of(built).words)
    return [rows[first:last] for first, last in pairwise(begin)]


def _event(word: int) -> int:
    event, rest = divmod(int(word) - _FIRST_EVENT, _LINE)
    if rest:
        raise ContradictionError(f"word {word} of the state is no counter")
    return event


def _waits(form: RowForm, row: np.ndarray, first: int) -> list[Wait]:
    places = [i for i in range(first, first + form.waits) if row[i] >= 0]
    return [Wait(_event(row[i]), int(row[form.first_arrivals + i])) for i in places]


def _instructions(built: Built, form: RowForm, row: np.ndarray, runs: Iterator[int]) -> list[Instruction]:
    """What a row does; `runs` are the operators that the plan runs on its lane from here on."""
    what = int(row[form.what])
    found: list[Instruction] = [*_waits(form, row, 0)]
    if what >= 0:
        start, count, step = map(int, row[form.what + 1 : form.first_argument])
        found.append(Run(_operator(built, form, row, next(runs, 0)), start, count, step))
    signals = row[form.first_signal : form.what] if what & _SIGNALS else []
    return [*found, *(Signal(_event(word)) for word in signals if word >= 0)]


def _operator(built: Built, form: RowForm, row: np.ndarray, planned: int) -> int:
    """The operator that a row runs; if several are alike the one that is planned."""
    program = built.program
    branch, branches = int(row[form.what]) // _MARKS, _branches(built)
    words = row[form.first_argument :]
    fitting = [
        o
        for o in range(len(program.kernels))
        if branches[o] == branch and all(words[at] == word for at, word in _expected(built, o))
    ]
    if not fitting:
        raise ContradictionError(f"branch {branch} with these arguments is no operator's")
    return planned if planned in fitting else fitting[0]


def _branches(built: Built) -> list[int]:
    """For each operator its branch: one for each rTask function and kinds of memory, in order of first use."""
    program = built.program
    kinds = {"input": _EXTERNAL, "output": _EXTERNAL, "constant": 0, "intermediate": 1}
    calls = [
        (function.name, tuple(kinds[_memory(program, b).kind] for b in (*op.inputs, *op.outputs)))
        for op, function in zip(program.graph.operators, built.functions, strict=True)
    ]
    distinct = list(dict.fromkeys(calls))
    return [distinct.index(call) for call in calls]


def _memory(program: RProgram, buffer: int) -> Buffer:
    """The buffer whose memory another one lies in; most are themselves that."""
    return program.graph.buffers[program.graph.extent(buffer).base]


def _is_external(program: RProgram, buffer: int) -> bool:
    return _memory(program, buffer).kind in ("input", "output")


def _arguments(program: RProgram) -> Iterator[tuple[int, int, int]]:
    """(operator, parameter, buffer) of each argument."""
    for o, op in enumerate(program.graph.operators):
        for i, b in enumerate((*op.inputs, *op.outputs)):
            yield o, i, b


def _expected(built: Built, operator: int) -> Iterator[tuple[int, int]]:
    """(place, word) of each argument of an operator, but for constants, whose places are the code generator's."""
    program = built.program
    external = {b: _EXTERNAL + n for n, b in enumerate((*built.cuda.inputs, *built.cuda.outputs))}
    for _, i, b in (found for found in _arguments(program) if found[0] == operator):
        extent, item = program.graph.extent(b), ITEM_BYTES[program.graph.buffers[b].dtype]
        if _is_external(program, b):
            yield i, external[extent.base]
            if extent.start:
                yield _width(built) + i, extent.start // item
        elif _memory(program, b).kind == "intermediate":
            yield i, (program.offsets[extent.base] + extent.start) // item
    yield from _numbers(built, operator)


def _numbers(built: Built, operator: int) -> Iterator[tuple[int, int]]:
    """(place, word) of each number that an operator's function takes."""
    function = built.functions[operator]
    return enumerate(function.numbers, len(function.dtypes))


def _width(built: Built) -> int:
    """Words of an operator's arguments before those that shift a pointer within an input or output."""
    return max(len(function.dtypes) + len(function.numbers) for function in built.functions)


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
    if what & _SIGNALS:
        yield "signals not marked", word(form.what, -_SIGNALS)
    looks = range(2 * form.waits if _waits(form, row, 0) else 0)  # a row that does not wait looks at nothing
    yield from (found for i in looks if row[i] >= 0 for found in _changed_waits(form, row, i, word))
    for i in range(form.first_signal, form.what):
        if row[i] >= 0:
            yield "signal left out", word(i, -1 - int(row[i]))
            yield "signal: event + 1", word(i, _LINE)
            if row[i] > _FIRST_EVENT:
                yield "signal: event - 1", word(i, -_LINE)
            if n and (earlier := rows[n - 1])[i] < 0 and what >= 0:
                before, after = earlier.copy(), row.copy()
                before[i], after[i] = row[i], -1
                before[form.what] |= _SIGNALS
                yield "signal before its rTasks", [*rows[: n - 1], before, after, *rows[n + 1 :]]
    if what >= 0:
        yield from _changed_runs(built, form, row, word)


def _changed_waits(form: RowForm, row: np.ndarray, i: int, word: _Changed) -> Iterator[tuple[str, list[np.ndarray]]]:
    name = "wait" if i < form.waits else "look ahead"
    yield f"{name} left out", word(i, -1 - int(row[i]))
    yield f"{name}: event + 1", word(i, _LINE)
    if row[i] > _FIRST_EVENT:
        yield f"{name}: event - 1", word(i, -_LINE)
    yield f"{name}: arrivals + 1", word(form.first_arrivals + i, 1)
    yield f"{name}: arrivals - 1", word(form.first_arrivals + i, -1)


def _changed_runs(
    built: Built, form: RowForm, row: np.ndarray, word: _Changed
) -> Iterator[tuple[str, list[np.ndarray]]]:
    start, count = form.what + 1, form.what + 2
    yield "run left out", word(form.what, -_MARKS * (int(row[form.what]) // _MARKS + 1))
    yield "run: start + 1", word(start, 1)
    if row[start]:
        yield "run: start - 1", word(start, -1)
    yield "run: count + 1", word(count, 1)
    if row[count] > 1:
        yield "run: count - 1", word(count, -1)
        yield "run: step + 1", word(form.what + 3, 1)
    branches = _branches(built)
    if int(row[form.what]) // _MARKS < max(branches):
        yield "run: branch + 1", word(form.what, _MARKS)
    program = built.program
    operator = _operator(built, form, row, 0)
    for _, i, b in (found for found in _arguments(program) if found[0] == operator):
        inside = _memory(program, b).kind == "intermediate"
        for by in (-32, 32) if inside else (-1, 1):
            if row[form.first_argument + i] + by >= 0:
                kind = "offset of an argument" if inside else "segment of an argument"
                yield f"{kind}: {by:+}", word(form.first_argument + i, by)
        if not inside and program.graph.extent(b).start:
            for by in (-16, 16):
                yield f"shift of an argument: {by:+}", word(form.first_argument + _width(built) + i, by)
    for at, _ in _numbers(built, operator):
        yield "number of a function - 1", word(form.first_argument + at, -1)


def _mutant(built: Built, kind: str, what: str, lanes: Sequence[Sequence[np.ndarray]]) -> TableMutant:
    begin = np.cumsum([0, *map(len, lanes)]).astype(np.int32)
    words = np.array([row for lane in lanes for row in lane], np.int32).reshape(-1)
    # As many rows as the kernel's parameter has; what comes after the last lane is never executed.
    size = len(built.cuda.constants[ROWS])
    constants = list(built.cuda.constants)
    constants[BEGIN], constants[ROWS] = begin, np.pad(words, (0, max(0, size - len(words))))
    return TableMutant(kind, what, replace(built, cuda=replace(built.cuda, constants=tuple(constants))))
