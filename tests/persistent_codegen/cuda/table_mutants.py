"""Small wrongs done to the tables of a program, and the way back from tables to a plan, for the verifier."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tests.emulation.programs import Built
from tvm_rammer.ir import ITEM_BYTES, Buffer, Instruction, RProgram, Run, Signal, Wait

BEGIN, CODE, ARGUMENTS = 1, 2, 3
"""Positions of the tables among the constants of a program."""

_WAIT, _SIGNAL, _RUN, _ROW = 0, 1, 2, 8
_WORKSPACE, _EXTERNAL = 1, 2


class ContradictionError(Exception):
    """Tables that are those of no plan."""


@dataclass(frozen=True)
class TableMutant:
    """A program with wrong tables."""

    kind: str
    what: str
    built: Built


def decoded(built: Built) -> RProgram:
    """The plan that the tables of a program say: its lanes and offsets, read anew.

    Raises
    ------
    ContradictionError
        A row calls a function that is not its operator's, or two operators look for one buffer in different places.
    """
    program = built.program
    lanes = [[_instruction(program, row) for row in rows] for rows in rows_of(built)]
    return replace(program, lanes=tuple(map(tuple, lanes)), offsets=_offsets(built))


def rows_of(built: Built) -> list[np.ndarray]:
    """The rows of each lane."""
    begin, rows = built.cuda.constants[BEGIN], built.cuda.constants[CODE].reshape(-1, _ROW)
    return [rows[first:last] for first, last in pairwise(begin)]


def _instruction(program: RProgram, row: np.ndarray) -> Instruction:
    what, *words = map(int, row)
    if what == _WAIT:
        return Wait(words[0], words[1])
    if what == _SIGNAL:
        return Signal(words[0])
    if not 0 <= words[0] < len(program.kernels) or _branches(program)[words[0]] != what:
        raise ContradictionError(f"branch {what} is not that of operator {words[0]}")
    return Run(*words[:4])


def _branches(program: RProgram) -> list[int]:
    """For each operator its branch: one for each rTask function and kinds of memory, in order of first use."""
    kinds = {"input": _EXTERNAL, "output": _EXTERNAL, "constant": 0, "intermediate": _WORKSPACE}
    calls = [
        (k.name, tuple(kinds[_memory(program, b).kind] for b in (*op.inputs, *op.outputs)))
        for op, k in zip(program.graph.operators, program.kernels, strict=True)
    ]
    distinct = list(dict.fromkeys(calls))
    return [_RUN + distinct.index(call) for call in calls]


def _memory(program: RProgram, buffer: int) -> Buffer:
    """The buffer whose memory another one lies in; most are themselves that."""
    return program.graph.buffers[program.graph.extent(buffer).base]


def _arguments(built: Built) -> Iterator[tuple[int, int, int]]:
    """(operator, parameter, buffer) of each word that is an argument."""
    for o, op in enumerate(built.program.graph.operators):
        for i, b in enumerate((*op.inputs, *op.outputs)):
            yield o, i, b


def _offsets(built: Built) -> dict[int, int]:
    program, words = built.program, _words(built)
    external = {b: _EXTERNAL + n for n, b in enumerate((*built.cuda.inputs, *built.cuda.outputs))}
    width = _width(built)
    offsets: dict[int, int] = {}
    for o, i, b in _arguments(built):
        buffer, extent = program.graph.buffers[b], program.graph.extent(b)
        item = ITEM_BYTES[buffer.dtype]
        if extent.base in external:
            if words[o, i] != external[extent.base]:
                raise ContradictionError(f"operator {o} takes segment {words[o, i]} for {buffer.name!r}")
            shift = int(words[o, width + i]) * item if words.shape[1] > width else 0
            if shift != extent.start:
                raise ContradictionError(f"operator {o} looks for {buffer.name!r} at {shift} of its segment")
        at = int(words[o, i]) * item - extent.start
        if _memory(program, b).kind == "intermediate" and offsets.setdefault(extent.base, at) != at:
            raise ContradictionError(f"operator {o} looks for {buffer.name!r} elsewhere")
    return offsets


def _width(built: Built) -> int:
    """Words of an operator's arguments before those that shift a pointer within an input or output."""
    return max(len(op.inputs) + len(op.outputs) for op in built.program.graph.operators)


def _words(built: Built) -> np.ndarray:
    return built.cuda.constants[ARGUMENTS].reshape(len(built.program.kernels), -1)


def mutants_of(built: Built) -> Iterator[TableMutant]:
    """All mutants of a program's tables."""
    lanes = rows_of(built)
    for v, rows in enumerate(lanes):
        for n, row in enumerate(rows):
            for kind, new in _changed_rows(built, rows, n):
                changed = [*rows[:n], *new, *rows[n + 1 :]]
                yield _mutant(built, kind, f"lane {v}, row {n}: {row[:5]}", [*lanes[:v], changed, *lanes[v + 1 :]])
            if row[0] == _SIGNAL and n and rows[n - 1][0] >= _RUN:
                changed = [*rows[: n - 1], row, rows[n - 1], *rows[n + 1 :]]
                what = f"lane {v}, row {n}"
                yield _mutant(built, "signal before its rTasks", what, [*lanes[:v], changed, *lanes[v + 1 :]])
        if v and len(rows):
            moved = [*lanes[: v - 1], [*lanes[v - 1], rows[0]], rows[1:], *lanes[v + 1 :]]
            yield _mutant(built, "begin of a lane + 1", f"lane {v}", moved)
    yield from _argument_mutants(built)


def _changed_rows(built: Built, rows: Sequence[np.ndarray], n: int) -> Iterator[tuple[str, list[np.ndarray]]]:
    """(kind, what comes instead of row `n`)."""
    row, events, operators = rows[n], built.program.num_events, len(built.program.kernels)

    def word(at: int, by: int) -> list[np.ndarray]:
        new = row.copy()
        new[at] += by
        return [new]

    names = {_WAIT: "wait", _SIGNAL: "signal"}
    name = names.get(int(row[0]), "run")
    yield f"{name} left out", []
    if name != "run":
        yield f"{name}: event + 1", word(1, 1)
        if row[1]:
            yield f"{name}: event - 1", word(1, -1)
        elif events > 2:
            yield f"{name}: last event", word(1, events - 1)
    if name == "wait":
        yield "wait: arrivals + 1", word(2, 1)
        yield "wait: arrivals - 1", word(2, -1)
        yield "wait as a signal", word(0, 1)
    elif name == "signal":
        yield "signal twice", [row, row]
        yield "signal as a wait", word(0, -1)
    else:
        yield "run twice", [row, row]
        yield "run: start + 1", word(2, 1)
        if row[2]:
            yield "run: start - 1", word(2, -1)
        yield "run: count + 1", word(3, 1)
        if row[3] > 1:
            yield "run: count - 1", word(3, -1)
            yield "run: step + 1", word(4, 1)
        if row[1] + 1 < operators:
            yield "run: operator + 1", word(1, 1)


def _argument_mutants(built: Built) -> Iterator[TableMutant]:
    for o, i, b in _arguments(built):
        words = _words(built)
        inside = _memory(built.program, b).kind == "intermediate"
        for by in (-32, 32) if inside else (-1, 1):
            new = words.copy()
            new[o, i] += by
            if new[o, i] >= 0:
                kind = "offset of an argument" if inside else "segment of an argument"
                yield _with(built, f"{kind}: {by:+}", f"operator {o}, argument {i}", ARGUMENTS, new.reshape(-1))
        shift = _width(built) + i
        if not inside and built.program.graph.extent(b).start:
            for by in (-16, 16):
                new = words.copy()
                new[o, shift] += by
                what = f"operator {o}, argument {i}"
                yield _with(built, f"shift of an argument: {by:+}", what, ARGUMENTS, new.reshape(-1))


def _mutant(built: Built, kind: str, what: str, lanes: Sequence[Sequence[np.ndarray]]) -> TableMutant:
    begin = np.cumsum([0, *map(len, lanes)]).astype(np.int32)
    code = np.array([row for lane in lanes for row in lane], np.int32).reshape(-1)
    # As many rows as the kernel's parameter has; what comes after the last lane is never read.
    size = len(built.cuda.constants[CODE])
    code = np.pad(code, (0, max(0, size - len(code))))
    mutant = _with(built, kind, what, BEGIN, begin)
    return replace(mutant, built=_with(mutant.built, kind, what, CODE, code).built)


def _with(built: Built, kind: str, what: str, position: int, table: np.ndarray) -> TableMutant:
    constants = list(built.cuda.constants)
    constants[position] = table
    return TableMutant(kind, what, replace(built, cuda=replace(built.cuda, constants=tuple(constants))))
