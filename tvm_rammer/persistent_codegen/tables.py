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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tvm.ir import Expr

from ..errors import CodegenError
from ..ir import ITEM_BYTES, Instruction, RProgram, Run, Signal, Wait
from ..kernel import RTaskFunction
from .arrays import item_bytes
from .layout import CONSTANTS, FIRST_EXTERNAL, KEPT, Address, Layout

WAIT, SIGNAL, RUN = 0, 1, 2
ROW = 8
"""int32 words in a row of `code`: 32 bytes, so that four rows share a cache line."""

COUNTER_WORDS = 32
"""int32 words between the counters of two events, at most."""

FIRST = 5
"""The word of a row that takes the place of word 0 in step 0."""

_INT32 = 2**31
_EVERY_BIT = _INT32 - 1


@dataclass(frozen=True, slots=True)
class CallSignature:
    """What the interpreter has one branch for: an rTask function, and where its pointers may point.

    Parameters
    ----------
    function : RTaskFunction
    segments : tuple of tuple of int
        For each of its pointers the segments that it may come from, in order: what the vEU keeps, the constants, the
        workspace, or some inputs and outputs of the program.
    offsets : tuple of (int or None)
        For each of its pointers to inputs and outputs, which word of the arguments is the offset in the segment; None
        where it is always 0.
    strides : tuple of (int or None)
        For each of its pointers, which word of the arguments is the stride of a buffer that moves from step to step.
    """

    function: RTaskFunction
    segments: tuple[tuple[int, ...], ...]
    offsets: tuple[int | None, ...]
    strides: tuple[int | None, ...]


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
    calls = _Calls(program, layout, functions, kept_at)
    records = _Records(calls, 0 if program.steps == 1 else 3 if program.graph.trip_count is None else 4)
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


class _Calls:
    """What rTask functions are called with: for each operator, for each in step 0, for each `Run` that keeps slices.

    Attributes
    ----------
    calls : list of (sequence of Address, RTaskFunction)
    made : set of int
        Those that are made: not that of an operator all of whose slices are kept.
    """

    def __init__(self, program: RProgram, layout: Layout, functions: Sequence[RTaskFunction], kept_at: int) -> None:
        self._operators = len(functions)
        self._phases = [layout.addresses, *([layout.first] if layout.first else [])]
        self.calls = [call for addresses in self._phases for call in zip(addresses, functions, strict=True)]
        self._kept: dict[Run, int] = {}
        runs = [run for _, _, run in program.instructions() if isinstance(run, Run)]
        for run in (run for run in runs if run.kept is not None):
            self._kept[run] = len(self.calls)
            o, slices = run.operator, program.kernels[run.operator].slices
            assert slices is not None and run.kept is not None
            place = Address(KEPT, kept_at + run.kept - run.start * slices.nbytes)
            for addresses in self._phases:
                self.calls.append((_replaced(addresses[o], slices.parameter, place), functions[o]))
        self.made = {self.of(run, first=bool(phase)) for run in runs for phase in range(len(self._phases))}

    def of(self, run: Run, *, first: bool = False) -> int:
        """The number of the call of a `Run`, in step 0 or in all others."""
        if run.kept is not None:
            return self._kept[run] + first
        return run.operator + first * self._operators


def _replaced(addresses: Sequence[Address], number: int, address: Address) -> tuple[Address, ...]:
    return (*addresses[:number], address, *addresses[number + 1 :])


class _Records:
    """The table `arguments`, a row for each call, and the signatures of these rows.

    Parameters
    ----------
    calls : _Calls
    moves : int
        How many words say how a buffer moves from step to step.

    Attributes
    ----------
    arguments : numpy.ndarray
    signature_of : dict of int to int
        For each row of a call that is made.
    width : int
        How many buffers and numbers an operator has, at most.
    """

    def __init__(self, calls: _Calls, moves: int) -> None:
        self.width = max((len(addresses) + len(of.numbers) for addresses, of in calls.calls), default=1)
        shifted = any(map(_is_shifted, (a for addresses, _ in calls.calls for a in addresses)))
        # Word 0 of what follows: the offsets, if there are any; the strides, if there are steps.
        self._offsets = self.width
        self._strides = (2 if shifted else 1) * self.width
        words = self._strides + moves * self.width
        self.arguments = np.zeros((len(calls.calls), words), np.int32)
        self.signature_of: dict[int, int] = {}
        self._number: dict[tuple[str, tuple[int, ...]], int] = {}
        self._found: list[tuple[RTaskFunction, list[set[int]]]] = []
        self._shifted: set[tuple[int, int]] = set()
        self._moving: set[tuple[int, int]] = set()
        for row in sorted(calls.made):
            self._add(row, *calls.calls[row])

    def _add(self, row: int, addresses: Sequence[Address], function: RTaskFunction) -> None:
        key = (function.name, tuple(min(a.segment, FIRST_EXTERNAL) for a in addresses))
        if key not in self._number:
            self._number[key] = len(self._found)
            self._found.append((function, [set() for _ in addresses]))
        number = self._number[key]
        self.signature_of[row] = number
        self.arguments[row, len(addresses) : len(addresses) + len(function.numbers)] = function.numbers
        for i, (address, dtype) in enumerate(zip(addresses, function.dtypes, strict=True)):
            self._found[number][1][i].add(address.segment)
            external, offset = address.segment >= FIRST_EXTERNAL, address.offset // ITEM_BYTES[dtype]
            self.arguments[row, i] = address.segment if external else offset
            if _is_shifted(address):
                self.arguments[row, self._offsets + i] = offset
                self._shifted.add((number, i))
            if address.stride:
                slot = address.ahead, _slot_bits(address.phases), int(address.from_end)
                words = self.arguments[row, self._strides + i :: self.width]
                words[:] = (address.stride // ITEM_BYTES[dtype], *slot)[: len(words)]
                self._moving.add((number, i))

    def signatures(self) -> tuple[CallSignature, ...]:
        """What the interpreter has branches for."""
        return tuple(
            CallSignature(
                function,
                tuple(tuple(sorted(possible)) for possible in segments),
                tuple(self._offsets + i if (n, i) in self._shifted else None for i in range(len(segments))),
                tuple(self._strides + i if (n, i) in self._moving else None for i in range(len(segments))),
            )
            for n, (function, segments) in enumerate(self._found)
        )


def _slot_bits(phases: int) -> int:
    """By which the number of a step becomes that of a slot."""
    if phases & (phases - 1):
        raise CodegenError(f"slots that are used in turn, {phases} of them; generated code needs a power of two")
    return phases - 1 if phases else _EVERY_BIT


def _add_first(row: list[int], instruction: Instruction, calls: _Calls, signature_of: Mapping[int, int]) -> None:
    """Add to a row what it is in step 0."""
    row[FIRST] = row[0]
    if isinstance(instruction, Wait):
        row[3] = instruction.back
    elif isinstance(instruction, Run):
        call = calls.of(instruction, first=True)
        row[FIRST : FIRST + 2] = RUN + signature_of[call], call


def _is_shifted(address: Address) -> bool:
    """Whether an address is within an input or output of the program, and not where that begins."""
    return address.segment >= FIRST_EXTERNAL and address.offset > 0


def _check_indices(program: RProgram, layout: Layout, functions: Sequence[RTaskFunction], rows: int) -> None:
    """Generated code counts with int32, which wraps around without a word."""
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


def _leaves(program: RProgram, instruction: Instruction) -> bool:
    """Whether an instruction is the wait after which a lane ends if there is no other step."""
    return isinstance(instruction, Wait) and instruction.event == program.exit


def _row(instruction: Instruction, calls: _Calls, signature_of: Mapping[int, int], wait: int) -> list[int]:
    match instruction:
        case Wait(event, arrivals):
            words = [wait, event, arrivals]
        case Signal(event):
            words = [SIGNAL, event]
        case Run(_, start, count, step):
            call = calls.of(instruction)
            words = [RUN + signature_of[call], call, start, count, step]
    return words + [0] * (ROW - len(words))
