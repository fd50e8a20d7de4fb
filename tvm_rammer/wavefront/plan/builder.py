"""An rProgram under construction: Rammer's Append and Wait, with the time at which each vEU is free."""

from collections.abc import Iterable
from dataclasses import dataclass

from ...errors import ScheduleError
from ...ir import Instruction, Lane, RKernel, RProgram, Run, Signal, Wait
from ..problem import Problem
from .arrival import Arrival, arrival
from .clocks import Clock, ClockArithmetic, pack, veus_of
from .dependences import needs, union
from .events import Event, finish_events
from .overlaps import Needs
from .placement import Part, Placement


@dataclass(frozen=True, slots=True)
class Mark:
    """A state of a `ProgramBuilder` that it can go back to; costs O(vEUs), however long the plan is."""

    lengths: tuple[int, ...]
    ready_us: tuple[float, ...]
    clocks: tuple[Clock, ...]
    operators: int
    events: int
    barriers: int


MOST_SIGNALS = 8
"""Events that one vEU signals at most for parts of an operator, besides the event of all its rTasks."""

FEW = 2
"""Where so few vEUs are missing, a wait is for just these, as for the neighbours of a halo."""

NEARLY_ALL = 0.75
"""Where more than this part of an operator's vEUs is missing, a wait is for all of them."""


class ProgramBuilder:
    """Appends rTasks to vEUs and turns dependences into as few waits as possible.

    All rTasks of an operator are appended before anything that depends on it. So the order of appending is a legal
    order of execution, and a wait is left out exactly where the vEU's vector clock shows that program order
    or an earlier wait implies it.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    kernels : dict of int to RKernel
        The chosen kernel of each operator of this program (numbers of `problem.graph`), in appending order.
    ready_us : list of float
        When each vEU can do something new, counted from the start of the program.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.kernels: dict[int, RKernel] = {}
        self.ready_us = [0.0] * problem.veus
        self._lanes: list[list[Instruction]] = [[] for _ in range(problem.veus)]
        self._arithmetic = ClockArithmetic.of(problem.veus)
        self._clocks: list[Clock] = [0] * problem.veus
        self._placements: dict[int, Placement] = {}
        self._events: list[Event] = []
        self._barriers = 0
        self._needs_cache: dict[tuple[int, int], tuple[RKernel, RKernel, Needs | None]] = {}

    @property
    def time_us(self) -> float:
        """Predicted time of the program with its launch; 0 for an empty one, which is never launched."""
        return self.problem.cost.launch_us + max(self.ready_us) if self.kernels else 0.0

    def end_us(self, operator: int) -> float:
        """When the last rTask of an operator of this program ends."""
        return self._placements[operator].finish_us

    def arrivals(self, operator: int, kernel: RKernel) -> list[Arrival]:
        """When the data of each rTask of an operator arrives.

        Parameters
        ----------
        operator : int
            One that could be appended now.
        kernel : RKernel

        Returns
        -------
        list of Arrival
            For each rTask; all the same object where every rTask depends on all rTasks of the predecessors.
        """
        before = [o for o in self.problem.predecessors[operator] if o in self._placements]
        wanted = [(self._placements[o], self._needs(o, operator, kernel)) for o in before]
        if all(need is None for _, need in wanted):
            return [arrival([(placement, None) for placement, _ in wanted])] * kernel.num_rtasks
        by_needs: dict[tuple[int | None, ...], Arrival] = {}
        found = []
        for t in range(kernel.num_rtasks):
            key = tuple(None if need is None else need[t] for _, need in wanted)
            if key not in by_needs:
                by_needs[key] = arrival([(placement, bits) for (placement, _), bits in zip(wanted, key, strict=True)])
            found.append(by_needs[key])
        return found

    def wait(self, veu: int, on: Iterable[int], rtasks: Run | None = None, kernel: RKernel | None = None) -> None:
        """Make a vEU wait for some operators, or only for those of their rTasks whose output it reads next.

        Parameters
        ----------
        veu : int
        on : iterable of int
            Operators; those of other programs are ignored.
        rtasks : Run, optional
            What will be appended; without it, and its kernel, the wait is for all rTasks of the operators.
        kernel : RKernel, optional
        """
        numbered = [(self._placements[o].number, o) for o in on if o in self._placements]
        # Latest first: a wait implies only what was appended before its operator, so no later wait of this
        # loop can make an earlier one superfluous.
        for _, operator in sorted(numbered, reverse=True):
            target = self._placements[operator]
            need = None if rtasks is None or kernel is None else self._needs(operator, rtasks.operator, kernel)
            part = None if need is None or rtasks is None else target.veus_of(union(need, rtasks.indices()))
            missing = target.not_known_to_end(veu, self._clocks[veu], part)
            if missing:
                self._wait_for(veu, operator, self._awaited(veu, target, part, missing))

    def _needs(self, writer: int, reader: int, kernel: RKernel) -> Needs | None:
        writes = self.kernels[writer]
        found = self._needs_cache.get((writer, reader))
        if found is None or found[0] is not writes or found[1] is not kernel:
            found = writes, kernel, needs(self.problem.graph, writer, writes, reader, kernel)
            self._needs_cache[writer, reader] = found
        return found[2]

    def _awaited(self, veu: int, target: Placement, part: Part, missing: int) -> Part:
        """The vEUs to wait for: the few that are missing; else all, or a part that ends well before the rest."""
        count = missing.bit_count()
        if part is None or count > NEARLY_ALL * len(target.last):
            return None
        if count <= FEW:
            return veus_of(missing)
        # Where all end together a wait for all costs no more, needs fewer signals, and implies more.
        ready_us, cost = self.ready_us[veu], self.problem.cost
        gained_us = cost.wait_end_us(ready_us, target.finish_us) - cost.wait_end_us(ready_us, target.end_us(part))
        if gained_us <= cost.signal_us:
            return None
        return part if part in target.events or target.may_signal(part, MOST_SIGNALS) else None

    def _wait_for(self, veu: int, operator: int, part: Part) -> None:
        target = self._placements[operator]
        if part not in target.events:
            target.events[part] = len(self._events)
            self._events.append(Event(operator, part))
        self._lanes[veu].append(Wait(target.events[part], len(target.last if part is None else part)))
        self._clocks[veu] = target.after(self._clocks[veu], part)
        self.ready_us[veu] = self.problem.cost.wait_end_us(self.ready_us[veu], target.end_us(part))

    def append(self, rtasks: Run, veu: int, kernel: RKernel) -> None:
        """Append rTasks of an operator to the lane of a vEU.

        Parameters
        ----------
        rtasks : Run
            Numbered as in `problem.graph`.
        veu : int
        kernel : RKernel
            The operator's kernel, the same in each call.

        Raises
        ------
        ScheduleError
            A later operator depends on this one already, or it has another kernel: a bug of the policy.
        """
        operator = rtasks.operator
        placement = self._placements.setdefault(operator, Placement(len(self._placements), self._arithmetic))
        if placement.closed or self.kernels.setdefault(operator, kernel) != kernel:
            name = self.problem.graph.operators[operator].name
            raise ScheduleError(f"rTasks of {name!r} appended after a wait for them or with a second kernel")
        lane = self._lanes[veu]
        joined = join(lane[-1], rtasks) if lane else None
        if joined:
            lane[-1] = joined
        else:
            lane.append(rtasks)
        self.ready_us[veu] += self.problem.cost.run_us(kernel, rtasks)
        placement.add(veu, rtasks.indices(), len(lane) - 1, self._clocks[veu], self.ready_us[veu])

    def barrier(self) -> None:
        """Make every vEU wait for all vEUs; nothing to do in an empty program or on one vEU."""
        if not self.kernels or self.problem.veus == 1:
            return
        event = len(self._events)
        self._events.append(Event())
        self._barriers += 1
        last = max(self.ready_us)
        for veu, lane in enumerate(self._lanes):
            lane.append(Signal(event))
            self.ready_us[veu] = self.problem.cost.barrier_end_us(last)
        self._clocks = [pack({veu: len(lane) for veu, lane in enumerate(self._lanes)})] * self.problem.veus
        for lane in self._lanes:
            lane.append(Wait(event, self.problem.veus))

    def mark(self) -> Mark:
        """Remember this state for `rollback`."""
        lengths = tuple(len(lane) for lane in self._lanes)
        return Mark(
            lengths, tuple(self.ready_us), tuple(self._clocks), len(self._placements), len(self._events), self._barriers
        )

    def rollback(self, mark: Mark) -> None:
        """Go back to a marked state; at the mark each operator must have had all its rTasks or none."""
        for lane, length in zip(self._lanes, mark.lengths, strict=True):
            del lane[length:]
        self.ready_us = list(mark.ready_us)
        self._clocks = list(mark.clocks)
        for event in self._events[mark.events :]:
            if event.operator is not None:
                del self._placements[event.operator].events[event.part]
        del self._events[mark.events :]
        self._barriers = mark.barriers
        while len(self._placements) > mark.operators:
            operator, _ = self._placements.popitem()
            del self.kernels[operator]

    @property
    def barriers(self) -> int:
        """Number of barriers so far."""
        return self._barriers

    def finish(self) -> tuple[tuple[Lane, ...], int]:
        """Write the lanes with their signals.

        Returns
        -------
        lanes : tuple of Lane
            Operators are numbered in the order of `problem.graph`, among those of this program.
        num_events : int
            Events are numbered from 0.
        """
        return finish_events(self._lanes, self._events, list(self.kernels))

    def program(self, name: str) -> RProgram:
        """Make the program, without its memory plan and its makespan.

        Parameters
        ----------
        name : str
            Of the program and its graph.
        """
        lanes, num_events = self.finish()
        graph = self.problem.graph.subgraph(self.kernels, name)
        kernels = tuple(self.kernels[o] for o in sorted(self.kernels))
        return RProgram(name, graph, kernels, lanes, num_events, {}, 0, barriers=self._barriers)


def join(last: Instruction, new: Run) -> Run | None:
    """Return the two as one `Run`, if their indices form one arithmetic progression."""
    if not isinstance(last, Run) or last.operator != new.operator:
        return None
    step = new.start - last.start if last.count == 1 else last.step
    if step < 1 or new.start != last.start + last.count * step or (new.count > 1 and new.step != step):
        return None
    return Run(last.operator, last.start, last.count + new.count, step)
