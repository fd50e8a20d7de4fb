"""What rTask functions are called with: the table `arguments`, and the call signatures of its rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tvm.ir import Expr

from ..errors import CodegenError
from ..ir import ITEM_BYTES, RProgram, Run
from ..kernel import RTaskFunction
from .layout import FIRST_EXTERNAL, KEPT, Address, Layout

_EVERY_BIT = 2**31 - 1


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


class Calls:
    """What rTask functions are called with: for each operator, for each in step 0, for each `Run` that keeps slices.

    Attributes
    ----------
    calls : list of (sequence of Address, RTaskFunction)
    made : set of int
        The calls that some `Run` makes: not that of an operator all of whose slices are kept.
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


class Records:
    """The table `arguments`, a row for each call, and the signatures of these rows.

    Parameters
    ----------
    calls : Calls
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

    def __init__(self, calls: Calls, moves: int) -> None:
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
    """The mask that makes the number of a step that of its slot."""
    if phases & (phases - 1):
        raise CodegenError(f"slots that are used in turn, {phases} of them; generated code needs a power of two")
    return phases - 1 if phases else _EVERY_BIT


def _is_shifted(address: Address) -> bool:
    """Whether an address is within an input or output of the program, and not where that begins."""
    return address.segment >= FIRST_EXTERNAL and address.offset > 0


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
