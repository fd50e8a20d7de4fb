"""Dependences and shared memory, checked against what each lane is sure of."""

from bisect import bisect_left, insort
from collections.abc import Iterator

from ..errors import VerificationError
from ..ir import RProgram
from .verify_execution import Execution


class _HappensBefore:
    """Answers whether all rTasks of one operator end before any of another begins."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.answers: dict[tuple[int, int], tuple[int, int] | None] = {}

    def gap(self, first: int, then: int) -> tuple[int, int] | None:
        """None if it holds, else (lane that may still run `first`, lane that begins `then`)."""
        if (first, then) not in self.answers:
            self.answers[first, then] = self._gap(first, then)
        return self.answers[first, then]

    def _gap(self, first: int, then: int) -> tuple[int, int] | None:
        ends = self.execution.ends[first]
        unknown: dict[int, list[int]] = {}
        for begin in self.execution.begins[then]:
            if ends.get(begin.lane, -1) >= begin.instruction:
                return begin.lane, begin.lane
            key = id(begin.knows)
            if key not in unknown:
                unknown[key] = [u for u, end in ends.items() if begin.knows[u] <= end][:2]
            for lane in unknown[key]:
                if lane != begin.lane:
                    return lane, begin.lane
        return None


def check_dependences(program: RProgram, execution: Execution) -> None:
    """Prove that whoever reads a buffer begins after all rTasks that write it have ended.

    Raises
    ------
    VerificationError
        A reader may begin too early.
    """
    order, graph = _HappensBefore(execution), program.graph
    writer = {b: o for o, op in enumerate(graph.operators) for b in op.outputs}
    for reader, op in enumerate(graph.operators):
        for b in op.inputs:
            if b in writer and (gap := order.gap(writer[b], reader)):
                raise VerificationError(
                    f"program {program.name!r}: {op.name!r} reads {graph.buffers[b].name!r} on lane {gap[1]}, but "
                    f"rTasks of its writer {graph.operators[writer[b]].name!r} on lane {gap[0]} may not have ended; "
                    "a wait is missing"
                )


def check_workspace(program: RProgram, execution: Execution) -> None:
    """Prove that of two buffers that share memory one is done with before the other is written.

    Raises
    ------
    VerificationError
        They may be alive together.
    """
    order, graph = _HappensBefore(execution), program.graph
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
