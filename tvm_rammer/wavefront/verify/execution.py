"""Execute a plan abstractly: find deadlocks, and the happens-before order of rTasks as vector clocks.

Counters only grow: a wait that may end at one time may end at any later time. So if one execution terminates, all
do, and one is enough to find a deadlock. The vector clocks do not depend on that one execution either: a wait is for
all arrivals at its event, and adds what is known at all of them.
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
    given: list[tuple[int, int, VectorClock]] = field(default_factory=list)
    parked: list[int] = field(default_factory=list)
    merged: dict[int, tuple[VectorClock, VectorClock]] = field(default_factory=dict)
    guarantee: VectorClock | None = None

    def after_wait(self, clock: VectorClock) -> VectorClock:
        """The clock of a lane, so far `clock`, after a wait; all signals are there."""
        if self.guarantee is None:
            self.guarantee = _join(self.given)
        if id(clock) not in self.merged:
            merged = tuple(map(max, clock, self.guarantee))
            # The old tuple is kept as well, so that its id is not reused.
            self.merged[id(clock)] = (clock, self.guarantee if merged == self.guarantee else merged)
        return self.merged[id(clock)][1]


def _join(given: Sequence[tuple[int, int, VectorClock]]) -> VectorClock:
    distinct = list({id(clock): clock for _, _, clock in given}.values())
    joined = list(distinct[0]) if len(distinct) == 1 else [max(column) for column in zip(*distinct, strict=True)]
    for lane, instruction, _ in given:
        joined[lane] = max(joined[lane], instruction + 1)
    return tuple(joined)


def execute(program: RProgram) -> Execution:
    """Execute a program whose instructions are well-formed, and each of whose waits is for all arrivals.

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
    for lane in lanes:
        for instruction in lane:
            if isinstance(instruction, Signal):
                counters[instruction.event].total += 1
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
                if len(counter.given) == counter.total:
                    runnable += counter.parked
            elif len(counters[i.event].given) < counters[i.event].total:
                counters[i.event].parked.append(v)
                break
            else:
                clocks[v] = counters[i.event].after_wait(clocks[v])
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
