"""Execute a plan abstractly: find deadlocks, and the happens-before order of rTasks as vector clocks.

Counters only grow: a wait that may end at one time may end at any later time. So if one execution terminates, all
do, and one is enough to find a deadlock. The vector clocks do not depend on that one execution either: a wait adds only
what its event guarantees, and that is the same in all executions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...errors import VerificationError
from ...ir import RProgram, Run, Signal, Wait

VectorClock = tuple[int, ...]
"""For each lane how many of its instructions happened before, in every execution. Many lanes share one tuple."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """The start of a `Run`.

    Parameters
    ----------
    lane, instruction : int
    run : Run
    clock : VectorClock
        What happened before it in other lanes.
    """

    lane: int
    instruction: int
    run: Run
    clock: VectorClock


@dataclass(frozen=True, slots=True)
class Execution:
    """The order that the abstract execution found.

    Parameters
    ----------
    sequence : tuple of int
        Operators in the order in which they start.
    runs : tuple of tuple of RunStart
        For each operator its `Run`s, in the order in which they start.
    """

    sequence: tuple[int, ...]
    runs: tuple[tuple[RunStart, ...], ...]


@dataclass(slots=True)
class _Counter:
    """The counter of an event, with its signals as (lane, instruction, the clock there)."""

    total: int = 0
    lanes: set[int] = field(default_factory=set)
    given: list[tuple[int, int, VectorClock]] = field(default_factory=list)
    parked: list[tuple[int, int]] = field(default_factory=list)
    merged: dict[tuple[int, int], tuple[VectorClock, VectorClock]] = field(default_factory=dict)
    guarantees: dict[int, VectorClock | None] = field(default_factory=dict)

    def guarantee(self, arrivals: int) -> VectorClock | None:
        """What happened, in every execution, before a wait for so many signals ends; None for nothing."""
        if arrivals not in self.guarantees:
            if arrivals == self.total:
                self.guarantees[arrivals] = _join(self.given)
            elif len(self.lanes) == 1:
                self.guarantees[arrivals] = _join(self.given[arrivals - 1 : arrivals])
            else:
                # Which of the lanes came first differs from execution to execution.
                self.guarantees[arrivals] = None
        return self.guarantees[arrivals]

    def after_wait(self, clock: VectorClock, arrivals: int) -> VectorClock:
        """The clock of a lane, so far `clock`, after a wait."""
        key = (id(clock), arrivals)
        if key not in self.merged:
            guarantee = self.guarantee(arrivals)
            merged = clock if guarantee is None else tuple(map(max, clock, guarantee))
            # The old tuple is kept as well, so that its id is not reused.
            self.merged[key] = (clock, guarantee if guarantee is not None and merged == guarantee else merged)
        return self.merged[key][1]


def _join(given: Sequence[tuple[int, int, VectorClock]]) -> VectorClock:
    distinct = list({id(clock): clock for _, _, clock in given}.values())
    joined = list(distinct[0]) if len(distinct) == 1 else [max(column) for column in zip(*distinct, strict=True)]
    for lane, instruction, _ in given:
        joined[lane] = max(joined[lane], instruction + 1)
    return tuple(joined)


def execute(program: RProgram) -> Execution:
    """Execute a program whose instructions are well-formed.

    Parameters
    ----------
    program : RProgram

    Returns
    -------
    Execution

    Raises
    ------
    VerificationError
        A deadlock.
    """
    lanes = program.lanes
    counters = [_Counter() for _ in range(program.num_events)]
    for v, lane in enumerate(lanes):
        for instruction in lane:
            if isinstance(instruction, Signal):
                counters[instruction.event].total += 1
                counters[instruction.event].lanes.add(v)
    runs: list[list[RunStart]] = [[] for _ in program.kernels]
    sequence: dict[int, None] = {}
    clocks: list[VectorClock] = [(0,) * len(lanes)] * len(lanes)
    at = [0] * len(lanes)
    runnable = list(range(len(lanes)))
    while runnable:
        v = runnable.pop()
        while at[v] < len(lanes[v]):
            i = lanes[v][at[v]]
            if isinstance(i, Run):
                sequence[i.operator] = None
                runs[i.operator].append(RunStart(v, at[v], i, clocks[v]))
            elif isinstance(i, Signal):
                counter = counters[i.event]
                counter.given.append((v, at[v], clocks[v]))
                runnable += [u for u, need in counter.parked if need <= len(counter.given)]
                counter.parked = [(u, need) for u, need in counter.parked if need > len(counter.given)]
            elif len(counters[i.event].given) < i.arrivals:
                counters[i.event].parked.append((v, i.arrivals))
                break
            else:
                clocks[v] = counters[i.event].after_wait(clocks[v], i.arrivals)
            at[v] += 1
    _check_deadlock(program, at, counters)
    return Execution(tuple(sequence), tuple(tuple(r) for r in runs))


def _check_deadlock(program: RProgram, at: Sequence[int], counters: Sequence[_Counter]) -> None:
    stuck = [v for v, lane in enumerate(program.lanes) if at[v] < len(lane)]
    if not stuck:
        return
    shown = []
    for v in stuck[:4]:
        wait = program.lanes[v][at[v]]
        assert isinstance(wait, Wait)
        following = next((i.operator for i in program.lanes[v][at[v] :] if isinstance(i, Run)), None)
        before = "the end" if following is None else repr(program.graph.operators[following].name)
        arrived = len(counters[wait.event].given)
        shown.append(f"lane {v} before {before} has {arrived} of {wait.arrivals} arrivals at event {wait.event}")
    more = f", and {len(stuck) - 4} more lanes" if len(stuck) > 4 else ""
    raise VerificationError(f"program {program.name!r}: deadlock: {'; '.join(shown)}{more}")
