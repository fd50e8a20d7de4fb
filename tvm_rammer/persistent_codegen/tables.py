"""An rProgram as data: int32 tables that a small interpreter in the generated code walks through.

A graph of thousands of operators must not become thousands of branches, so the code has one branch for
each *call signature* (an rTask function, and the kinds of segments that its pointers come from), and all else is data:

    begin[v] .. begin[v + 1]      the rows of lane v in `code`
    code[row]                     (WAIT, event, arrivals) | (SIGNAL, event) | (RUN + signature, operator, start, count,
                                  step)
    arguments[operator]           for each of its buffers: in constants or workspace the offset, in elements; for an
                                  input or output of the program the segment; then, if any operator reads or writes
                                  views of those, the offsets in these segments
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tvm.ir import Expr

from ..errors import CodegenError
from ..ir import ITEM_BYTES, Instruction, RProgram, Run, Signal, Wait
from ..kernel import RTaskFunction
from .arrays import item_bytes
from .layout import CONSTANTS, FIRST_EXTERNAL, Address, Layout

WAIT, SIGNAL, RUN = 0, 1, 2
ROW = 8
"""int32 words in a row of `code`: 32 bytes, so that four rows share a cache line."""

COUNTER_WORDS = 32
"""int32 words between the counters of two events, at most."""

_INT32 = 2**31


@dataclass(frozen=True, slots=True)
class CallSignature:
    """What the interpreter has one branch for: an rTask function, and where its pointers may point.

    Parameters
    ----------
    function : RTaskFunction
    segments : tuple of tuple of int
        For each of its pointers the segments that it may come from, in order: the constants, the workspace, or some
        inputs and outputs of the program.
    offsets : tuple of (int or None)
        For each of its pointers to inputs and outputs, which word of the arguments is the offset in the segment; None
        where it is always 0.
    """

    function: RTaskFunction
    segments: tuple[tuple[int, ...], ...]
    offsets: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Tables:
    """The plan as data (see the module)."""

    begin: np.ndarray
    code: np.ndarray
    arguments: np.ndarray
    signatures: tuple[CallSignature, ...]


def build_tables(program: RProgram, layout: Layout, functions: Sequence[RTaskFunction]) -> Tables:
    """Write a program as tables.

    Parameters
    ----------
    program : RProgram
    layout : Layout
    functions : sequence of RTaskFunction
        For each operator, the function of its kernel.

    Returns
    -------
    Tables

    Raises
    ------
    CodegenError
        An index of a row, a counter or an element does not fit into 32 bits.
    """
    lanes: Sequence[Sequence[Instruction]] = program.lanes
    _check_indices(program, layout, functions, sum(map(len, lanes)))
    number: dict[tuple[str, tuple[int, ...]], int] = {}
    found: list[tuple[RTaskFunction, list[set[int]]]] = []
    signature_of: list[int] = []
    width = max((len(addresses) for addresses in layout.addresses), default=1)
    shifted = any(map(_is_shifted, (a for addresses in layout.addresses for a in addresses)))
    arguments = np.zeros((len(layout.addresses), 2 * width if shifted else width), np.int32)
    moved: set[tuple[int, int]] = set()
    for o, (addresses, function) in enumerate(zip(layout.addresses, functions, strict=True)):
        key = (function.name, tuple(min(a.segment, FIRST_EXTERNAL) for a in addresses))
        if key not in number:
            number[key] = len(found)
            found.append((function, [set() for _ in addresses]))
        signature_of.append(number[key])
        for i, (address, dtype) in enumerate(zip(addresses, function.dtypes, strict=True)):
            found[number[key]][1][i].add(address.segment)
            external, offset = address.segment >= FIRST_EXTERNAL, address.offset // ITEM_BYTES[dtype]
            arguments[o, i] = address.segment if external else offset
            if _is_shifted(address):
                arguments[o, width + i] = offset
                moved.add((number[key], i))

    rows = [_row(i, signature_of) for lane in lanes for i in lane]
    begin = np.cumsum([0, *(len(lane) for lane in lanes)]).astype(np.int32)
    code = np.array(rows or [[0] * ROW], np.int32).reshape(-1, ROW)
    signatures = tuple(
        CallSignature(
            function,
            tuple(tuple(sorted(possible)) for possible in segments),
            tuple(width + i if (n, i) in moved else None for i in range(len(segments))),
        )
        for n, (function, segments) in enumerate(found)
    )
    return Tables(begin, code, arguments, signatures)


def _is_shifted(address: Address) -> bool:
    """Whether an address is within an input or output of the program, and not where that begins."""
    return address.segment >= FIRST_EXTERNAL and address.offset > 0


def _check_indices(program: RProgram, layout: Layout, functions: Sequence[RTaskFunction], rows: int) -> None:
    """Generated code counts with int32, which wraps around without a word."""
    width = max(map(len, layout.addresses), default=1)
    ends = [
        (f"{rows} instructions", rows * ROW),
        (f"{len(layout.addresses)} operators of {width} arguments", len(layout.addresses) * width),
        (f"{program.num_events} events", layout.workspace_bytes // 4 + (program.num_events + 3) * COUNTER_WORDS),
    ]
    for op, addresses, function in zip(program.graph.operators, layout.addresses, functions, strict=True):
        for b, address, dtype in zip((*op.inputs, *op.outputs), addresses, function.dtypes, strict=True):
            buffer = program.graph.buffers[b]
            end = layout.constants.size if address.segment == CONSTANTS else address.offset + buffer.nbytes
            ends.append((f"buffer {buffer.name!r}", end // item_bytes(dtype)))
        if layout.arena_bytes:
            arenas = {dtype: layout.workspace_bytes // item_bytes(dtype) for _, dtype in function.scratch}
            ends += [(f"the arenas, seen as {dtype},", end) for dtype, end in arenas.items()]
    for what, end in ends:
        if end > _INT32:
            raise CodegenError(
                f"{program.name}: {what} would need the index {end - 1}, and generated code counts to {_INT32 - 1}; "
                "divide the model or its batch"
            )


def pointer(
    segments: Sequence[int],
    word: Expr,
    address: Callable[[int, Expr | int], Expr],
    select: Callable[[Expr, Expr, Expr], Expr],
    offset: Expr | int = 0,
) -> Expr:
    """The pointer that an operator's word in `arguments` stands for.

    Parameters
    ----------
    segments : sequence of int
        Where it may come from, as in `CallSignature`.
    word : Expr
    address : callable
        The address of an element of a segment.
    select : callable
        The first of two pointers where a condition holds, else the second; TIR can only choose between numbers.
    offset : Expr or int
        Where it points to in a segment that is an input or output of the program.
    """
    if segments[0] < FIRST_EXTERNAL:
        return address(segments[0], word)
    if len(segments) == 1:
        return address(segments[0], offset)
    middle = len(segments) // 2
    low, high = (pointer(half, word, address, select, offset) for half in (segments[:middle], segments[middle:]))
    return select(word < segments[middle], low, high)


def _row(instruction: Instruction, signature_of: Sequence[int]) -> list[int]:
    match instruction:
        case Wait(event, arrivals):
            words = [WAIT, event, arrivals]
        case Signal(event):
            words = [SIGNAL, event]
        case Run(operator, start, count, step):
            words = [RUN + signature_of[operator], operator, start, count, step]
    return words + [0] * (ROW - len(words))
