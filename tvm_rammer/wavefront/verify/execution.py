"""Run a plan abstractly, and learn what each lane is sure of when it begins rTasks.

A counter only grows, and a wait that may pass may pass ever after. So if one execution ends, every one does,
and one is enough to find a deadlock. What a lane knows is not read off that one execution: a wait teaches only
what its event guarantees, and that is the same in all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...errors import VerificationError
from ...ir import RProgram, Run, Signal, Wait

Knowledge = tuple[int, ...]
"""For each lane how many of its instructions are surely done. Many lanes share one tuple."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A lane begins some rTasks.

    Parameters
    ----------
    lane, instruction : int
    rtasks : Run
    knows : Knowledge
        What it is sure of then about other lanes.
    """

    lane: int
    instruction: int
    rtasks: Run
    knows: Knowledge


@dataclass(frozen=True, slots=True)
class Execution:
    """What the abstract execution found.

    Parameters
    ----------
    sequence : tuple of int
        Operators, as they begin in it.
    runs : tuple of tuple of Begun
        For each operator, as they begin in it.
    """

    sequence: tuple[int, ...]
    runs: tuple[tuple[Begun, ...], ...]


@dataclass(slots=True)
class _Counter:
    """An event: its signals as (lane, instruction, what the lane knew)."""

    total: int = 0
    lanes: set[int] = field(default_factory=set)
    given: list[tuple[int, int, Knowledge]] = field(default_factory=list)
    parked: list[tuple[int, int]] = field(default_factory=list)
    learnt: dict[tuple[int, int], tuple[Knowledge, Knowledge]] = field(default_factory=dict)
    proofs: dict[int, Knowledge | None] = field(default_factory=dict)

    def proof(self, arrivals: int) -> Knowledge | None:
        """What holds in every execution once so many signals have come; None for nothing."""
        if arrivals not in self.proofs:
            if arrivals == self.total:
                self.proofs[arrivals] = _join(self.given)
            elif len(self.lanes) == 1:
                self.proofs[arrivals] = _join(self.given[arrivals - 1 : arrivals])
            else:
                # Which of the lanes came first differs from execution to execution.
                self.proofs[arrivals] = None
        return self.proofs[arrivals]

    def learn(self, knows: Knowledge, arrivals: int) -> Knowledge:
        key = (id(knows), arrivals)
        if key not in self.learnt:
            proof = self.proof(arrivals)
            merged = knows if proof is None else tuple(map(max, knows, proof))
            # The old tuple is kept as well: its id must not be given to another.
            self.learnt[key] = (knows, proof if proof is not None and merged == proof else merged)
        return self.learnt[key][1]


def _join(given: Sequence[tuple[int, int, Knowledge]]) -> Knowledge:
    distinct = list({id(knows): knows for _, _, knows in given}.values())
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
        Some lanes wait for ever.
    """
    lanes = program.lanes
    counters = [_Counter() for _ in range(program.num_events)]
    for v, lane in enumerate(lanes):
        for instruction in lane:
            if isinstance(instruction, Signal):
                counters[instruction.event].total += 1
                counters[instruction.event].lanes.add(v)
    runs: list[list[Begun]] = [[] for _ in program.kernels]
    sequence: dict[int, None] = {}
    knows: list[Knowledge] = [(0,) * len(lanes)] * len(lanes)
    at = [0] * len(lanes)
    runnable = list(range(len(lanes)))
    while runnable:
        v = runnable.pop()
        while at[v] < len(lanes[v]):
            i = lanes[v][at[v]]
            if isinstance(i, Run):
                sequence[i.operator] = None
                runs[i.operator].append(Begun(v, at[v], i, knows[v]))
            elif isinstance(i, Signal):
                counter = counters[i.event]
                counter.given.append((v, at[v], knows[v]))
                runnable += [u for u, need in counter.parked if need <= len(counter.given)]
                counter.parked = [(u, need) for u, need in counter.parked if need > len(counter.given)]
            elif len(counters[i.event].given) < i.arrivals:
                counters[i.event].parked.append((v, i.arrivals))
                break
            else:
                knows[v] = counters[i.event].learn(knows[v], i.arrivals)
            at[v] += 1
    _check_all_done(program, at, counters)
    return Execution(tuple(sequence), tuple(tuple(r) for r in runs))


def _check_all_done(program: RProgram, at: Sequence[int], counters: Sequence[_Counter]) -> None:
    stuck = [v for v, lane in enumerate(program.lanes) if at[v] < len(lane)]
    if not stuck:
        return
    shown = []
    for v in stuck[:4]:
        wait = program.lanes[v][at[v]]
        assert isinstance(wait, Wait)
        then = next((i.operator for i in program.lanes[v][at[v] :] if isinstance(i, Run)), None)
        before = "the end" if then is None else repr(program.graph.operators[then].name)
        come = len(counters[wait.event].given)
        shown.append(f"lane {v} before {before} has {come} of {wait.arrivals} arrivals at event {wait.event}")
    more = f", and {len(stuck) - 4} more lanes" if len(stuck) > 4 else ""
    raise VerificationError(f"program {program.name!r}: deadlock: {'; '.join(shown)}{more}")
