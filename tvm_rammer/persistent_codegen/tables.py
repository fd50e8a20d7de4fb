"""An rProgram as data: int32 tables that a small interpreter in the generated code walks through.

A graph of thousands of operators must not become thousands of branches, so the code has one branch for
each *call signature* (an rTask function, and the kinds of segments that its pointers come from), and all else is data:

    begin[v] .. begin[v + 1]      the rows of lane v in `code`
    code[row]                     (WAIT, event, arrivals) | (SIGNAL, event) | (RUN + signature, operator, start, count,
                                  step)
    arguments[operator]           for each of its buffers: in constants or workspace the offset, in elements; for an
                                  input or output of the program the segment; then the numbers of its function, if it
                                  has any; then, if any operator reads or writes views of inputs or outputs, the
                                  offsets in these segments

A program of several steps has a little more:

    code[row]                     (WAIT, event, arrivals, back); word FIRST is what word 0 is in step 0, and word
                                  FIRST + 1 of a RUN the row of `arguments` in step 0
    arguments[row]                then for each buffer its stride, in elements; then how many slots it is ahead; then
                                  the bits of the number of a slot that count; then, if the number of steps is an
                                  input, 1 where slots are counted from the last step
    arguments[operators + o]      operator o in step 0

The waits after which a lane ends if a step says that there is no other (`RProgram.exit`) are of a kind of their own,
the one after all signatures.

A `Run` whose slices of a constant are kept (`Run.kept`) has a row of `arguments` of its own, in the place of its
operator's, and where there are several steps one more for step 0: they follow those of all operators. What its rTask
function gets is where the whole constant would begin, for it adds the place of a slice in that itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import CodegenError
from ..ir import Instruction, RProgram, Run, Signal, Wait
from ..kernel import RTaskFunction
from .arrays import item_bytes
from .calls import Calls, CallSignature, Records
from .layout import CONSTANTS, Layout

WAIT, SIGNAL, RUN = 0, 1, 2
ROW = 8
"""int32 words in a row of `code`: 32 bytes, so that four rows share a cache line."""

COUNTER_WORDS = 32
"""int32 words between the counters of two events, at most."""

FIRST = 5
"""The word of a row that takes the place of word 0 in step 0."""

_INT32 = 2**31


@dataclass(frozen=True, slots=True)
class Tables:
    """The plan as data (see the module); `width` is how many buffers and numbers an operator has, at most."""

    begin: np.ndarray
    code: np.ndarray
    arguments: np.ndarray
    signatures: tuple[CallSignature, ...]
    width: int


def build_tables(program: RProgram, layout: Layout, functions: Sequence[RTaskFunction], kept_at: int = 0) -> Tables:
    """Write a program as tables.

    Parameters
    ----------
    program : RProgram
    layout : Layout
    functions : sequence of RTaskFunction
        For each operator, the function of its kernel.
    kept_at : int
        Byte of a vEU's own memory at which the slices begin that it keeps.

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
    calls = Calls(program, layout, functions, kept_at)
    records = Records(calls, 0 if program.steps == 1 else 3 if program.graph.trip_count is None else 4)
    leave = RUN + len(records.signatures())
    rows = [
        _row(i, calls, records.signature_of, leave if _leaves(program, i) else WAIT) for lane in lanes for i in lane
    ]
    if program.steps > 1:
        for row, instruction in zip(rows, (i for lane in lanes for i in lane), strict=True):
            _add_first(row, instruction, calls, records.signature_of)
    begin = np.cumsum([0, *(len(lane) for lane in lanes)]).astype(np.int32)
    code = np.array(rows or [[0] * ROW], np.int32).reshape(-1, ROW)
    return Tables(begin, code, records.arguments, records.signatures(), records.width)


def _add_first(row: list[int], instruction: Instruction, calls: Calls, signature_of: Mapping[int, int]) -> None:
    """Add to a row the words that it has in step 0."""
    row[FIRST] = row[0]
    if isinstance(instruction, Wait):
        row[3] = instruction.back
    elif isinstance(instruction, Run):
        call = calls.of(instruction, first=True)
        row[FIRST : FIRST + 2] = RUN + signature_of[call], call


def _check_indices(program: RProgram, layout: Layout, functions: Sequence[RTaskFunction], rows: int) -> None:
    """Refuse a program with an index beyond int32, which generated code counts with and which wraps around silently."""
    width = max(map(len, layout.addresses), default=1)
    ends = [
        (f"{rows} instructions", rows * ROW),
        (f"{len(layout.addresses)} operators of {width} arguments", len(layout.addresses) * width * 12),
        (f"{program.steps} steps of {rows} instructions", program.steps * (rows + 1)),
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


def _leaves(program: RProgram, instruction: Instruction) -> bool:
    """Whether an instruction is the wait at the end of a step, after which the lane may leave the loop."""
    return isinstance(instruction, Wait) and instruction.event == program.exit


def _row(instruction: Instruction, calls: Calls, signature_of: Mapping[int, int], wait: int) -> list[int]:
    match instruction:
        case Wait(event, arrivals):
            words = [wait, event, arrivals]
        case Signal(event):
            words = [SIGNAL, event]
        case Run(_, start, count, step):
            call = calls.of(instruction)
            words = [RUN + signature_of[call], call, start, count, step]
    return words + [0] * (ROW - len(words))
