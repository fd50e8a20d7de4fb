"""A reference interpreter: runs an rProgram, rTask by rTask, in random legal orders.

It depends on the program alone, and on nothing of the code generators: no tables, no segments, no generated code.
Buffers that share memory in the plan share it here, too, byte for byte.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from ..errors import VerificationError
from ..ir import ALIGNMENT, Buffer, RProgram, Run, Signal, Wait, unroll
from ..kernel import Pack

RTaskCall = Callable[..., None]
"""Runs one rTask: takes the operator's buffers, inputs then outputs, and the rTask's index."""

_NEW_PRIORITY = 0.25
"""Probability that a lane draws a new priority after a step."""


def interpret(
    program: RProgram,
    rtasks: Sequence[RTaskCall],
    values: Mapping[str, np.ndarray],
    *,
    packs: Sequence[Mapping[int, Pack]] | None = None,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Run a program in one of its legal orders.

    The lane of the highest priority that need not wait takes the next step, and priorities change at random: so one
    lane may run far ahead of another (as in Burckhardt et al., ASPLOS 2010). An rTask begins and ends in two steps, and
    does its work in both, since it may read and write at any time in between: of a right program that changes nothing.
    All memory holds NaN (bytes of 255) at first.

    Parameters
    ----------
    program : RProgram
        Need not be verified. One of several steps runs unrolled; how many there are may be an input, or what a step
        computes.
    rtasks : sequence of callable
        For each operator of a step. What an rTask writes must depend on nothing but its inputs.
    values : mapping of str to numpy.ndarray
        Each input and constant of the graph, by name.
    packs : sequence of mapping, optional
        For each operator, how its kernel wants its constants laid out.
    seed : int
        Chooses the order.

    Returns
    -------
    dict of str to numpy.ndarray
        Each output of the graph, by name.

    Raises
    ------
    VerificationError
        A deadlock.
    """

    def run(steps: int) -> dict[str, np.ndarray]:
        return _interpret(unroll(program, steps), rtasks, values, packs, seed)

    return run(_steps_of_run(program, values)) if program.graph.condition is None else _until_condition(program, run)


def _interpret(
    program: RProgram,
    rtasks: Sequence[RTaskCall],
    values: Mapping[str, np.ndarray],
    packs: Sequence[Mapping[int, Pack]] | None,
    seed: int,
) -> dict[str, np.ndarray]:
    """Run a program of one step."""
    buffers = _allocate(program, values)
    arguments = []
    for o, op in enumerate(program.graph.operators):
        given = [buffers[b] for b in (*op.inputs, *op.outputs)]
        for i, pack in (packs[o % len(packs)] if packs else {}).items():
            given[i] = _aligned(pack.apply(given[i]))
        arguments.append(given)
    for operator, index in _Walk(program, np.random.default_rng(seed)).steps():
        rtasks[operator % len(rtasks)](*arguments[operator], index)
    return {b.name: array for b, array in zip(program.graph.buffers, buffers, strict=True) if b.kind == "output"}


def _until_condition(program: RProgram, run: Callable[[int], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Run as many steps as the condition says: more and more of them, until it is false in one."""
    buffers, condition = program.graph.buffers, program.graph.condition
    place = None if condition is None else buffers[condition].place
    assert place is not None
    steps = 1
    while True:
        results = run(steps)
        ends = np.flatnonzero(~results[buffers[place.base].name].reshape(-1)[:steps].astype(bool))
        if (ends.size and ends[0] + 1 == steps) or (not ends.size and steps == program.steps):
            return results
        steps = int(ends[0]) + 1 if ends.size else min(2 * steps, program.steps)


def _steps_of_run(program: RProgram, values: Mapping[str, np.ndarray]) -> int:
    count = program.graph.trip_count
    return program.steps if count is None else count.steps(int(values[program.graph.buffers[count.buffer].name].item()))


def _allocate(program: RProgram, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """An array for each buffer; intermediate ones lie in the workspace where the plan puts them, views in others."""
    workspace = _poisoned(program.workspace_bytes)
    owned: dict[int, np.ndarray] = {}
    for b, buffer in enumerate(program.graph.buffers):
        if buffer.kind in ("input", "constant"):
            owned[b] = _aligned(values[buffer.name])
        elif buffer.kind != "view":
            offset = program.offsets.get(b, 0)
            memory = workspace[offset : offset + buffer.nbytes] if b in program.offsets else _poisoned(buffer.nbytes)
            owned[b] = memory.view(buffer.dtype).reshape(buffer.shape)
    return [
        owned[b] if buffer.place is None else _viewed(owned[buffer.place.base], buffer, buffer.place.offset)
        for b, buffer in enumerate(program.graph.buffers)
    ]


def _viewed(array: np.ndarray, buffer: Buffer, offset: int) -> np.ndarray:
    memory = array.reshape(-1).view(np.uint8)[offset : offset + buffer.nbytes]
    return memory.view(buffer.dtype).reshape(buffer.shape)


def _poisoned(nbytes: int) -> np.ndarray:
    """Allocate bytes of 255 at an address that TVM's functions accept."""
    memory = np.full(nbytes + ALIGNMENT, 255, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + nbytes]


def _aligned(array: np.ndarray) -> np.ndarray:
    copy = _poisoned(array.nbytes).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@dataclass(slots=True)
class _Event:
    arrived: int = 0
    parked: list[tuple[int, int]] = field(default_factory=list)


class _Walk:
    """One random legal order of a program."""

    def __init__(self, program: RProgram, rng: np.random.Generator) -> None:
        self._program, self._rng = program, rng
        self._lanes = [self._unrolled(v) for v in range(len(program.lanes))]
        self._events = [_Event() for _ in range(program.num_events)]
        self._runnable = [(rng.random(), v) for v in range(len(program.lanes))]
        heapify(self._runnable)

    def steps(self) -> Iterator[tuple[int, int]]:
        """Yield (operator, rTask) twice for each rTask: where it begins and where it ends.

        Raises
        ------
        VerificationError
            Lanes wait for what never comes.
        """
        unfinished = len(self._lanes)
        while self._runnable:
            priority, v = heappop(self._runnable)
            step = next(self._lanes[v], None)
            if step is None:
                unfinished -= 1
                continue
            if isinstance(step, Wait):
                event = self._events[step.event]
                if event.arrived < step.arrivals:
                    event.parked.append((step.arrivals, v))
                    continue
            elif isinstance(step, Signal):
                self._arrive(step.event)
            else:
                yield step
            heappush(self._runnable, (self._rng.random() if self._rng.random() < _NEW_PRIORITY else priority, v))
        if unfinished:
            waiting = sorted(v for event in self._events for _, v in event.parked)
            raise VerificationError(f"program {self._program.name!r}: lanes {waiting[:8]} wait for ever")

    def _unrolled(self, v: int) -> Iterator[tuple[int, int] | Signal | Wait]:
        for instruction in self._program.lanes[v]:
            if isinstance(instruction, Run):
                for index in instruction.indices():
                    yield instruction.operator, index
                    yield instruction.operator, index
            else:
                yield instruction

    def _arrive(self, number: int) -> None:
        event = self._events[number]
        event.arrived += 1
        still = []
        for arrivals, v in event.parked:
            if event.arrived >= arrivals:
                heappush(self._runnable, (self._rng.random(), v))
            else:
                still.append((arrivals, v))
        event.parked = still
