"""Dependences and shared memory, checked against the happens-before order."""

import itertools
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...errors import VerificationError
from ...ir import RProgram, Run
from .dependences import Dependences, partners_of_run
from .execution import Execution, RunStart, VectorClock
from .memory import Memory


class _Ends:
    """The rTasks of one operator, and which of them have ended when others start."""

    def __init__(self, runs: Sequence[RunStart]) -> None:
        self.runs = [(start, _bits(start.run)) for start in runs]
        self._run_of = {t: n for n, start in enumerate(runs) for t in start.run.indices()}
        self._unordered: dict[int, tuple[VectorClock, int]] = {}

    def running(self, rtasks: int, at: RunStart) -> int:
        """Those of some rTasks (bits) that may not have ended when others start."""
        if rtasks.bit_count() < len(self.runs):
            return self._running_few(rtasks, at)
        unordered = self._unordered_with(at.clock) & rtasks
        if unordered:
            for start, bits in self.runs:
                if start.lane == at.lane and start.instruction < at.instruction:
                    unordered &= ~bits
        return unordered

    def _running_few(self, rtasks: int, at: RunStart) -> int:
        running = 0
        while rtasks:
            start, bits = self.runs[self._run_of[(rtasks & -rtasks).bit_length() - 1]]
            if not _ended(start, at):
                running |= bits & rtasks
            rtasks &= ~bits
        return running

    def _unordered_with(self, clock: VectorClock) -> int:
        if id(clock) not in self._unordered:
            unordered = 0
            for start, bits in self.runs:
                if clock[start.lane] <= start.instruction:
                    unordered |= bits
            # The tuple is kept as well, so that its id is not reused.
            self._unordered[id(clock)] = clock, unordered
        return self._unordered[id(clock)][1]

    def lane_of(self, rtask: int) -> int:
        return self.runs[self._run_of[rtask]][0].lane


def _bits(run: Run) -> int:
    bits = 0
    for t in run.indices():
        bits |= 1 << t
    return bits


def _ended(run: RunStart, at: RunStart) -> bool:
    """Whether a `Run` has ended, in every execution, when another starts."""
    if run.lane == at.lane:
        return run.instruction < at.instruction
    return at.clock[run.lane] > run.instruction


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


class _HappensBefore:
    """Answers whether all rTasks of one operator end before any of another starts."""

    def __init__(self, execution: Execution, ends: Sequence[_Ends]) -> None:
        self._execution, self._ends = execution, ends
        self._answers: dict[tuple[int, int], tuple[int, int] | None] = {}

    def violation(self, first: int, then: int) -> tuple[int, int] | None:
        """None if it holds, else (lane that may still run `first`, lane that starts `then`)."""
        if (first, then) not in self._answers:
            self._answers[first, then] = self._find_violation(first, then)
        return self._answers[first, then]

    def _find_violation(self, first: int, then: int) -> tuple[int, int] | None:
        ends = self._ends[first]
        everything = sum(bits for _, bits in ends.runs)
        for start in self._execution.runs[then]:
            if running := ends.running(everything, start):
                return ends.lane_of(_lowest(running)), start.lane
        return None


def check_dependences(program: RProgram, execution: Execution) -> None:
    """Prove that an rTask starts after all rTasks have ended that write what it reads.

    Raises
    ------
    VerificationError
        A reader may start too early.
    """
    graph, dependences = program.graph, Dependences(program)
    ends = [_Ends(runs) for runs in execution.runs]
    memory = Memory(graph)
    for reader, op in enumerate(graph.operators):
        for i, b in enumerate(op.inputs):
            for writer, n in memory.writers_of(b):
                partners = dependences.partners(writer, n, reader, i)
                everything = (1 << program.kernels[writer].num_rtasks) - 1
                for start in execution.runs[reader]:
                    needed = everything if partners is None else partners_of_run(partners, start.run)
                    if running := ends[writer].running(needed, start):
                        raise _too_early(program, b, writer, _lowest(running), ends[writer], start, partners)


def _too_early(
    program: RProgram, buffer: int, writer: int, late: int, ends: _Ends, start: RunStart, partners: Sequence[int] | None
) -> VerificationError:
    operators, run = program.graph.operators, start.run
    reads = next(t for t in run.indices() if partners is None or partners[t] >> late & 1)
    return VerificationError(
        f"program {program.name!r}: rTask {reads} of {operators[run.operator].name!r} reads "
        f"{program.graph.buffers[buffer].name!r} on lane {start.lane}, but rTask {late} of its writer "
        f"{operators[writer].name!r} on lane {ends.lane_of(late)} may not have ended; a wait is missing"
    )


def check_workspace(program: RProgram, execution: Execution) -> None:
    """Prove that of two buffers that share memory one is dead before the other is written.

    Raises
    ------
    VerificationError
        They may be alive together.
    """
    order, graph = _HappensBefore(execution, [_Ends(runs) for runs in execution.runs]), program.graph
    memory = Memory(graph)
    touching: list[dict[int, None]] = [{} for _ in graph.buffers]
    writing: dict[int, dict[int, None]] = {}
    for o, op in enumerate(graph.operators):
        for b in (*op.inputs, *op.outputs):
            touching[memory.owner(b)][o] = None
        for b in op.outputs:
            writing.setdefault(memory.owner(b), {})[o] = None
    for older, newer in _neighbours(program, execution, writing):
        for o, w in itertools.product(touching[older], writing[newer]):
            if lanes := order.violation(o, w):
                raise VerificationError(
                    f"program {program.name!r}: buffers {graph.buffers[older].name!r} and "
                    f"{graph.buffers[newer].name!r} share memory, but {graph.operators[w].name!r} writes "
                    f"the second on lane {lanes[1]} while {graph.operators[o].name!r} on lane {lanes[0]} may still use "
                    "the first; a wait or another offset is missing"
                )


def _neighbours(
    program: RProgram, execution: Execution, writing: Mapping[int, Iterable[int]]
) -> Iterator[tuple[int, int]]:
    """Pairs of buffers that follow each other in some byte of the workspace, as (older, newer).

    The sweep over offsets keeps the buffers of a byte in the order in which they are written. It suffices to check
    neighbours when a buffer enters the sweep: that a buffer is dead before the next is written is transitive, also
    when one between them leaves.
    """
    rank = {o: n for n, o in enumerate(execution.sequence)}
    points: list[tuple[int, bool, int, int]] = []
    for b, offset in program.offsets.items():
        nbytes = program.graph.buffers[b].nbytes
        if nbytes and b in writing:
            first = min(rank[o] for o in writing[b])
            points += [(offset, True, first, b), (offset + nbytes, False, first, b)]
    buffers: list[tuple[int, int]] = []
    # At the same byte buffers that leave (False) come before those that enter.
    for _, enters, time, b in sorted(points):
        at = bisect_left(buffers, (time, b))
        if enters:
            insort(buffers, (time, b))
            if at > 0:
                yield buffers[at - 1][1], b
            if at + 1 < len(buffers):
                yield b, buffers[at + 1][1]
        else:
            del buffers[at]
