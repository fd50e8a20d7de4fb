"""The way back from the rows of a program to a plan: the plan that they say, for the verifier."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tests.emulation.programs import Built
from tvm_rammer.ir import ITEM_BYTES, Buffer, Instruction, Lane, RProgram, Run, Signal, Wait
from tvm_rammer.persistent_codegen.cuda.rows import RowForm

BEGIN, ROWS = 1, 2
"""Positions of the tables among the constants of a program."""

SIGNALS, MARKS = 1, 2
"""In the word that says what a row does: the mark of one that signals, and how many marks there are."""

_EXTERNAL = 2
"""The first segment of inputs and outputs: constants are before them, and intermediates."""

LINE, FIRST_EVENT = 32, 64
"""Words of the state between two counters, and before the first."""


class ContradictionError(Exception):
    """Rows that are those of no plan."""


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
            if waits_of(form, row, 0) and waits_of(form, row, form.waits) != waits_of(form, following, 0):
                raise ContradictionError("a row looks for other events than the next one waits for")
        if len(rows) and any(waits_of(form, rows[-1], form.waits)):
            raise ContradictionError("the last row looks for events of none")
        lanes.append(tuple(i for part in parts for i in part))
    return replace(built.program, lanes=tuple(lanes))


def form_of(built: Built) -> RowForm:
    """Where the parts of a program's rows are."""
    program = built.program
    groups = [group for lane in program.lanes for group in groups_of(lane)]
    most = {kind: max(sum(isinstance(i, kind) for i in group) for group in groups) or 1 for kind in (Wait, Signal)}
    shifted = any(_is_external(program, b) and program.graph.extent(b).start for _, _, b in arguments_of(program))
    return RowForm(most[Wait], most[Signal], program.steps > 1, (2 if shifted else 1) * width_of(built))


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
    event, rest = divmod(int(word) - FIRST_EVENT, LINE)
    if rest:
        raise ContradictionError(f"word {word} of the state is no counter")
    return event


def waits_of(form: RowForm, row: np.ndarray, first: int) -> list[Wait]:
    places = [i for i in range(first, first + form.waits) if row[i] >= 0]
    return [Wait(_event(row[i]), int(row[form.first_arrivals + i])) for i in places]


def _instructions(built: Built, form: RowForm, row: np.ndarray, runs: Iterator[int]) -> list[Instruction]:
    """What a row does; `runs` are the operators that the plan runs on its lane from here on."""
    what = int(row[form.what])
    found: list[Instruction] = [*waits_of(form, row, 0)]
    if what >= 0:
        start, count, step = map(int, row[form.what + 1 : form.first_argument])
        found.append(Run(operator_of(built, form, row, next(runs, 0)), start, count, step))
    signals = row[form.first_signal : form.what] if what & SIGNALS else []
    return [*found, *(Signal(_event(word)) for word in signals if word >= 0)]


def operator_of(built: Built, form: RowForm, row: np.ndarray, planned: int) -> int:
    """The operator that a row runs; if several are alike the one that is planned."""
    program = built.program
    branch, branches = int(row[form.what]) // MARKS, branches_of(built)
    words = row[form.first_argument :]
    fitting = [
        o
        for o in range(len(program.kernels))
        if branches[o] == branch and all(words[at] == word for at, word in _expected(built, o))
    ]
    if not fitting:
        raise ContradictionError(f"branch {branch} with these arguments is no operator's")
    return planned if planned in fitting else fitting[0]


def branches_of(built: Built) -> list[int]:
    """For each operator its branch: one for each rTask function and kinds of memory, in order of first use."""
    program = built.program
    kinds = {"input": _EXTERNAL, "output": _EXTERNAL, "constant": 0, "intermediate": 1}
    calls = [
        (function.name, tuple(kinds[memory_of(program, b).kind] for b in (*op.inputs, *op.outputs)))
        for op, function in zip(program.graph.operators, built.functions, strict=True)
    ]
    distinct = list(dict.fromkeys(calls))
    return [distinct.index(call) for call in calls]


def memory_of(program: RProgram, buffer: int) -> Buffer:
    """The buffer whose memory another one lies in; most are themselves that."""
    return program.graph.buffers[program.graph.extent(buffer).base]


def _is_external(program: RProgram, buffer: int) -> bool:
    return memory_of(program, buffer).kind in ("input", "output")


def arguments_of(program: RProgram) -> Iterator[tuple[int, int, int]]:
    """(operator, parameter, buffer) of each argument."""
    for o, op in enumerate(program.graph.operators):
        for i, b in enumerate((*op.inputs, *op.outputs)):
            yield o, i, b


def _expected(built: Built, operator: int) -> Iterator[tuple[int, int]]:
    """(place, word) of each argument of an operator, but for constants, whose places are the code generator's."""
    program = built.program
    external = {b: _EXTERNAL + n for n, b in enumerate((*built.cuda.inputs, *built.cuda.outputs))}
    for _, i, b in (found for found in arguments_of(program) if found[0] == operator):
        extent, item = program.graph.extent(b), ITEM_BYTES[program.graph.buffers[b].dtype]
        if _is_external(program, b):
            yield i, external[extent.base]
            if extent.start:
                yield width_of(built) + i, extent.start // item
        elif memory_of(program, b).kind == "intermediate":
            yield i, (program.offsets[extent.base] + extent.start) // item
    yield from numbers_of(built, operator)


def numbers_of(built: Built, operator: int) -> Iterator[tuple[int, int]]:
    """(place, word) of each number that an operator's function takes."""
    function = built.functions[operator]
    return enumerate(function.numbers, len(function.dtypes))


def width_of(built: Built) -> int:
    """Words of an operator's arguments before those that shift a pointer within an input or output."""
    return max(len(function.dtypes) + len(function.numbers) for function in built.functions)
