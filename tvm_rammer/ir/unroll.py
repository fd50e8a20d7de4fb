"""A program of several steps as one of a single step, in which each step has operators of its own.

What is known of programs without loops is known of this one: it is simulated, drawn, interpreted and profiled, and the
proof of a loop is compared with the proof of it.
"""

from collections.abc import Sequence
from dataclasses import replace

from .graph import Buffer, BufferKind, Place, RGraph, ROperator
from .program import Lane, RProgram, Run, Signal, Wait


def unroll(program: RProgram, steps: int | None = None) -> RProgram:
    """Write the steps of a program one after another.

    Parameters
    ----------
    program : RProgram
    steps : int, optional
        Only so many: the first ones, or those of a run of so many where that is known only at run time. All that there
        may be, if nothing is given.

    Returns
    -------
    RProgram
        Operator o of step k has the number k * (number of operators) + o, instruction n of a lane in step k the number
        k * (length of the lane) + n, as long as no wait or signal is left out: a wait for a step before the first, and
        a signal for a step after the last. The same program where it has one step.
    """
    if program.steps == 1:
        return program
    unrolling = _Unrolling(program, min(steps or program.steps, program.steps))
    return unrolling.program()


class _Unrolling:
    def __init__(self, program: RProgram, steps: int) -> None:
        self._old, self._steps = program, steps
        self._missing = program.steps - steps if program.graph.trip_count else 0
        self._buffers: list[Buffer] = []
        self._offsets: dict[int, int] = {}
        self._position: dict[tuple[int, int], int] = {}

    def program(self) -> RProgram:
        old, steps = self._old, self._steps
        for b, buffer in enumerate(old.graph.buffers):
            if buffer.kind in ("input", "constant", "output"):
                self._position[b, 0] = self._add(buffer)
        operators = tuple(self._operator(o, k) for k in range(steps) for o in range(len(old.graph.operators)))
        graph = RGraph(old.graph.name, tuple(self._buffers), operators)
        lanes, num_events = _renumbered([[i for _, i in lane] for lane in _instructions(old, steps)])
        straight = replace(old, graph=graph, kernels=old.kernels * steps, lanes=lanes, num_events=num_events)
        return replace(straight, offsets=self._offsets, exit=None)

    def _operator(self, number: int, step: int) -> ROperator:
        op = self._old.graph.operators[number]
        inputs = op.first if op.first and step == 0 else op.inputs
        return ROperator(
            f"{op.name}@{step}",
            op.function,
            tuple(self._at(b, step) for b in inputs),
            tuple(self._at(b, step) for b in op.outputs),
        )

    def _at(self, b: int, step: int) -> int:
        """The position of a buffer in a step: one in the workspace is a new one wherever it is written again."""
        buffer, graph = self._old.graph.buffers[b], self._old.graph
        if buffer.kind in ("input", "constant", "output"):
            return self._position[b, 0]
        base = b if buffer.place is None else buffer.place.base
        start = graph.extent(b, step, self._missing).start
        if graph.buffers[base].kind != "intermediate":
            return self._named(b, f"{buffer.name}@{start}", start, place=Place(self._position[base, 0], start))
        if buffer.place is None:
            return self._named(b, f"{buffer.name}@{step}", step, offset=self._old.offsets[b])
        if buffer.place.stride == 0:
            whole = self._named(base, f"{graph.buffers[base].name}@{step}", step, offset=self._old.offsets[base])
            return self._named(b, f"{buffer.name}@{step}", step, place=Place(whole, start))
        slot = step + buffer.place.ahead
        name = f"{graph.buffers[base].name}@{slot}"
        return self._named(-1 - base, name, slot, kind_of=b, offset=self._old.offsets[base] + start)

    def _named(
        self, key: int, name: str, step: int, *, kind_of: int | None = None, place: Place | None = None, offset: int = 0
    ) -> int:
        if (key, step) not in self._position:
            old = self._old.graph.buffers[key if kind_of is None else kind_of]
            kind: BufferKind = "intermediate" if place is None else "view"
            self._position[key, step] = self._add(replace(old, name=name, kind=kind, place=place))
            if place is None:
                self._offsets[self._position[key, step]] = offset
        return self._position[key, step]

    def _add(self, buffer: Buffer) -> int:
        self._buffers.append(buffer)
        return len(self._buffers) - 1


def unrolled_positions(program: RProgram) -> list[list[int]]:
    """For each instruction of each unrolled lane, which one it was in the loop, counted through all steps."""
    return [[position for position, _ in lane] for lane in _instructions(program, program.steps)]


def _instructions(program: RProgram, steps: int) -> list[list[tuple[int, Run | Signal | Wait]]]:
    """The instructions of all steps, each with its position.

    Without waits for steps before the first one, and without signals that nobody waits for.
    """
    operators, events = len(program.graph.operators), program.num_events

    def in_step(i: Run | Signal | Wait, step: int) -> Run | Signal | Wait:
        if isinstance(i, Run):
            return replace(i, operator=step * operators + i.operator)
        if isinstance(i, Signal):
            return Signal(step * events + i.event)
        return Wait((step - i.back) * events + i.event, i.arrivals)

    lanes = [
        [
            (step * len(lane) + n, in_step(i, step))
            for step in range(steps)
            for n, i in enumerate(lane)
            if not isinstance(i, Wait) or i.back <= step
        ]
        for lane in program.lanes
    ]
    awaited = {i.event for lane in lanes for _, i in lane if isinstance(i, Wait)}
    return [[(n, i) for n, i in lane if not isinstance(i, Signal) or i.event in awaited] for lane in lanes]


def _renumbered(lanes: Sequence[Sequence[Run | Signal | Wait]]) -> tuple[tuple[Lane, ...], int]:
    """Number the events from 0 on."""
    number = {e: n for n, e in enumerate(sorted({i.event for lane in lanes for i in lane if isinstance(i, Wait)}))}
    renumbered = tuple(
        tuple(i if isinstance(i, Run) else replace(i, event=number[i.event]) for i in lane) for lane in lanes
    )
    return renumbered, len(number)
