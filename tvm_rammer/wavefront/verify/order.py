"""Dependences and shared memory, checked against what each lane is sure of."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

from ...errors import VerificationError
from ...ir import RProgram, Run
from .dependences import Dependences
from .execution import Begun, Execution, Knowledge


class _Ends:
    """The rTasks of one operator, and what is known of their end."""

    def __init__(self, runs: Sequence[Begun]) -> None:
        self.runs = [(begun, _bits(begun.rtasks)) for begun in runs]
        self._run_of = {t: n for n, begun in enumerate(runs) for t in begun.rtasks.indices()}
        self._unsure: dict[int, tuple[Knowledge, int]] = {}

    def running(self, rtasks: int, at: Begun) -> int:
        """Those of some rTasks (bits) that may not have ended when others begin."""
        if rtasks.bit_count() < len(self.runs):
            return self._running_few(rtasks, at)
        unsure = self._unsure_of(at.knows) & rtasks
        if unsure:
            for begun, bits in self.runs:
                if begun.lane == at.lane and begun.instruction < at.instruction:
                    unsure &= ~bits
        return unsure

    def _running_few(self, rtasks: int, at: Begun) -> int:
        running = 0
        while rtasks:
            begun, bits = self.runs[self._run_of[(rtasks & -rtasks).bit_length() - 1]]
            if not _ended(begun, at):
                running |= bits & rtasks
            rtasks &= ~bits
        return running

    def _unsure_of(self, knows: Knowledge) -> int:
        if id(knows) not in self._unsure:
            unsure = 0
            for begun, bits in self.runs:
                if knows[begun.lane] <= begun.instruction:
                    unsure |= bits
            # The tuple is kept as well: its id must not be given to another.
            self._unsure[id(knows)] = knows, unsure
        return self._unsure[id(knows)][1]

    def lane_of(self, rtask: int) -> int:
        return self.runs[self._run_of[rtask]][0].lane


def _bits(run: Run) -> int:
    bits = 0
    for t in run.indices():
        bits |= 1 << t
    return bits


def _ended(begun: Begun, at: Begun) -> bool:
    """Whether rTasks have surely ended when others begin."""
    if begun.lane == at.lane:
        return begun.instruction < at.instruction
    return at.knows[begun.lane] > begun.instruction


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


class _HappensBefore:
    """Answers whether all rTasks of one operator end before any of another begins."""

    def __init__(self, execution: Execution, ends: Sequence[_Ends]) -> None:
        self._execution, self._ends = execution, ends
        self._answers: dict[tuple[int, int], tuple[int, int] | None] = {}

    def gap(self, first: int, then: int) -> tuple[int, int] | None:
        """None if it holds, else (lane that may still run `first`, lane that begins `then`)."""
        if (first, then) not in self._answers:
            self._answers[first, then] = self._gap(first, then)
        return self._answers[first, then]

    def _gap(self, first: int, then: int) -> tuple[int, int] | None:
        ends = self._ends[first]
        everything = sum(bits for _, bits in ends.runs)
        for begun in self._execution.runs[then]:
            if running := ends.running(everything, begun):
                return ends.lane_of(_lowest(running)), begun.lane
        return None


def check_dependences(program: RProgram, execution: Execution) -> None:
    """Prove that an rTask begins after all rTasks have ended that write what it reads.

    Raises
    ------
    VerificationError
        A reader may begin too early.
    """
    graph, dependences = program.graph, Dependences(program)
    ends = [_Ends(runs) for runs in execution.runs]
    writer = {b: o for o, op in enumerate(graph.operators) for b in op.outputs}
    for reader, op in enumerate(graph.operators):
        for b in dict.fromkeys(op.inputs):
            if b not in writer:
                continue
            partners = dependences.partners(writer[b], reader, b)
            everything = (1 << program.kernels[writer[b]].num_rtasks) - 1
            for begun in execution.runs[reader]:
                needed = everything if partners is None else _needed(partners, begun.rtasks)
                if running := ends[writer[b]].running(needed, begun):
                    raise _too_early(program, b, writer[b], _lowest(running), ends[writer[b]], begun, partners)


def _needed(partners: Sequence[int], rtasks: Run) -> int:
    needed = 0
    for t in rtasks.indices():
        needed |= partners[t]
    return needed


def _too_early(
    program: RProgram, buffer: int, writer: int, late: int, ends: _Ends, begun: Begun, partners: Sequence[int] | None
) -> VerificationError:
    operators, run = program.graph.operators, begun.rtasks
    reads = next(t for t in run.indices() if partners is None or partners[t] >> late & 1)
    return VerificationError(
        f"program {program.name!r}: rTask {reads} of {operators[run.operator].name!r} reads "
        f"{program.graph.buffers[buffer].name!r} on lane {begun.lane}, but rTask {late} of its writer "
        f"{operators[writer].name!r} on lane {ends.lane_of(late)} may not have ended; a wait is missing"
    )


def check_workspace(program: RProgram, execution: Execution) -> None:
    """Prove that of two buffers that share memory one is done with before the other is written.

    Raises
    ------
    VerificationError
        They may be alive together.
    """
    order, graph = _HappensBefore(execution, [_Ends(runs) for runs in execution.runs]), program.graph
    touching: list[list[int]] = [[] for _ in graph.buffers]
    writer: dict[int, int] = {}
    for o, op in enumerate(graph.operators):
        for b in dict.fromkeys((*op.inputs, *op.outputs)):
            touching[b].append(o)
        writer.update(dict.fromkeys(op.outputs, o))
    for older, newer in _neighbours(program, execution, writer):
        for o in touching[older]:
            if gap := order.gap(o, writer[newer]):
                raise VerificationError(
                    f"program {program.name!r}: buffers {graph.buffers[older].name!r} and "
                    f"{graph.buffers[newer].name!r} share memory, but {graph.operators[writer[newer]].name!r} writes "
                    f"the second on lane {gap[1]} while {graph.operators[o].name!r} on lane {gap[0]} may still use "
                    "the first; a wait or another offset is missing"
                )


def _neighbours(program: RProgram, execution: Execution, writer: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Pairs of buffers that follow each other in some byte of the workspace, as (older, newer).

    The sweep over offsets keeps the tenants of a byte in the order in which they are written. It suffices to
    prove neighbours apart when one enters: being done with before the next is written carries over from one to
    the next, also when one between them leaves.
    """
    rank = {o: n for n, o in enumerate(execution.sequence)}
    points: list[tuple[int, bool, int, int]] = []
    for b, offset in program.offsets.items():
        nbytes = program.graph.buffers[b].nbytes
        if nbytes and b in writer:
            points += [(offset, True, rank[writer[b]], b), (offset + nbytes, False, rank[writer[b]], b)]
    tenants: list[tuple[int, int]] = []
    # At the same byte who leaves (False) comes before who enters.
    for _, enters, time, b in sorted(points):
        at = bisect_left(tenants, (time, b))
        if enters:
            insort(tenants, (time, b))
            if at > 0:
                yield tenants[at - 1][1], b
            if at + 1 < len(tenants):
                yield b, tenants[at + 1][1]
        else:
            del tenants[at]
