"""An rProgram as data: int32 tables that a small interpreter in the kernel walks through.

A graph of thousands of operators must not become thousands of branches, so the code has one branch for
each *call form* (an rTask function, and the kinds of segments that its pointers come from), and all else is data:

    begin[v] .. begin[v + 1]      the rows of vEU v in `code`
    code[row]                     (WAIT, event, arrivals) | (SIGNAL, event) | (RUN + form, operator, start, count, step)
    arguments[operator]           of each of its buffers the offset in constants or workspace, in elements; of an input
                                  or output of the program the segment
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tvm.ir import Expr

from ..ir import ITEM_BYTES, Instruction, RProgram, Run, Signal, Wait
from ..kernel import RTaskFunction
from .layout import FIRST_EXTERNAL, Layout

WAIT, SIGNAL, RUN = 0, 1, 2
ROW = 8
"""int32 words in a row of `code`: 32 bytes, so that four rows share a cache line."""


@dataclass(frozen=True, slots=True)
class CallForm:
    """A branch of the interpreter.

    Parameters
    ----------
    function : RTaskFunction
    segments : tuple of tuple of int
        For each of its pointers the segments that it may come from, in order: the constants, the workspace, or some
        inputs and outputs of the program.
    """

    function: RTaskFunction
    segments: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Tables:
    """The plan as data (see the module)."""

    begin: np.ndarray
    code: np.ndarray
    arguments: np.ndarray
    forms: tuple[CallForm, ...]


def build_tables(
    program: RProgram, layout: Layout, functions: Sequence[RTaskFunction], *, serial_lane: bool = False
) -> Tables:
    """Turn a program into tables.

    Parameters
    ----------
    program : RProgram
    layout : Layout
    functions : sequence of RTaskFunction
        For each operator, the function of its kernel.
    serial_lane : bool
        Whether to add one more lane that does the whole program alone, for a machine that cannot run
        all vEUs at once.
    """
    forms: dict[tuple[str, tuple[int, ...]], int] = {}
    found: list[tuple[RTaskFunction, list[set[int]]]] = []
    form_of: list[int] = []
    width = max((len(p) for p in layout.places), default=1)
    arguments = np.zeros((len(layout.places), width), np.int32)
    for o, (places, function) in enumerate(zip(layout.places, functions, strict=True)):
        key = (function.name, tuple(min(p.segment, FIRST_EXTERNAL) for p in places))
        if key not in forms:
            forms[key] = len(found)
            found.append((function, [set() for _ in places]))
        form_of.append(forms[key])
        for i, (where, dtype) in enumerate(zip(places, function.dtypes, strict=True)):
            found[forms[key]][1][i].add(where.segment)
            external = where.segment >= FIRST_EXTERNAL
            arguments[o, i] = where.segment if external else where.offset // ITEM_BYTES[dtype]

    lanes: list[Sequence[Instruction]] = list(program.lanes)
    if serial_lane:
        lanes.append(serial_order(program))
    rows = [_row(i, form_of) for lane in lanes for i in lane]
    begin = np.cumsum([0, *(len(lane) for lane in lanes)]).astype(np.int32)
    code = np.array(rows or [[0] * ROW], np.int32).reshape(-1, ROW)
    made = (CallForm(function, tuple(tuple(sorted(some)) for some in segments)) for function, segments in found)
    return Tables(begin, code, arguments, tuple(made))


def pointer(
    segments: Sequence[int],
    word: Expr,
    place: Callable[[int, Expr | int], Expr],
    select: Callable[[Expr, Expr, Expr], Expr],
) -> Expr:
    """The pointer that an operator's word in `arguments` stands for.

    Parameters
    ----------
    segments : sequence of int
        Where it may come from, as in `CallForm`.
    word : Expr
    place : callable
        The address of an element of a segment.
    select : callable
        The first of two pointers where a condition holds, else the second; TIR can only choose between numbers.
    """
    if segments[0] < FIRST_EXTERNAL:
        return place(segments[0], word)
    if len(segments) == 1:
        return place(segments[0], 0)
    middle = len(segments) // 2
    low, high = (pointer(half, word, place, select) for half in (segments[:middle], segments[middle:]))
    return select(word < segments[middle], low, high)


def _row(instruction: Instruction, form_of: Sequence[int]) -> list[int]:
    match instruction:
        case Wait(event, arrivals):
            words = [WAIT, event, arrivals]
        case Signal(event):
            words = [SIGNAL, event]
        case Run(operator, start, count, step):
            words = [RUN + form_of[operator], operator, start, count, step]
    return words + [0] * (ROW - len(words))


def serial_order(program: RProgram) -> tuple[Run, ...]:
    """All `Run`s of a program in one legal order: lane after lane, as far as each lane's waits allow."""
    arrived = [0] * program.num_events
    at = [0] * len(program.lanes)
    order: list[Run] = []
    moved = True
    while moved:
        moved = False
        for v, lane in enumerate(program.lanes):
            while at[v] < len(lane):
                instruction = lane[at[v]]
                if isinstance(instruction, Wait) and arrived[instruction.event] < instruction.arrivals:
                    break
                if isinstance(instruction, Signal):
                    arrived[instruction.event] += 1
                elif isinstance(instruction, Run):
                    order.append(instruction)
                at[v] += 1
                moved = True
    return tuple(order)
