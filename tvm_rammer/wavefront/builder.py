"""An rProgram in the making: Rammer's Append and Wait, with the clock of each vEU."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import ScheduleError
from ..ir import Instruction, Lane, RKernel, Run, Signal, Wait
from .clocks import Clock
from .events import finish_events
from .placement import Placement
from .problem import Problem


@dataclass(frozen=True, slots=True)
class Mark:
    """A state of a `ProgramBuilder` that it can go back to; costs O(vEUs), however long the plan is."""

    lengths: tuple[int, ...]
    ready_us: tuple[float, ...]
    known: tuple[Clock, ...]
    operators: int
    barriers: int


class ProgramBuilder:
    """Appends rTasks to vEUs and turns dependences into as few waits as possible.

    An operator is appended wholly before anything that depends on it. So the order of appending is a legal
    order of execution, and a wait is left out exactly where the lane's vector clock shows that program order
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
        nothing = Clock((0,) * problem.veus)
        self._lanes: list[list[Instruction]] = [[] for _ in range(problem.veus)]
        self._known = [nothing] * problem.veus
        self._placed: dict[int, Placement] = {}
        self._barriers = 0

    @property
    def time_us(self) -> float:
        """Predicted time of the program with its launch; 0 for an empty one, which is never launched."""
        return self.problem.cost.launch_us + max(self.ready_us) if self.kernels else 0.0

    def earliest_starts(self, on: Iterable[int]) -> list[float]:
        """When each vEU could start an rTask that depends on operators.

        Parameters
        ----------
        on : iterable of int
            The operators; those of other programs are done before this one starts.

        Returns
        -------
        list of float
            In microseconds. A vEU that ran an operator alone sees its result without a signal.
        """
        arrival: dict[int | None, float] = {}
        for operator in on:
            if placed := self._placed.get(operator):
                seen_us = placed.finish_us + self.problem.cost.signal_us
                arrival[placed.home] = max(arrival.get(placed.home, 0.0), seen_us)
        if not arrival:
            return list(self.ready_us)
        latest = max(arrival, key=lambda home: arrival[home])
        bound = arrival.pop(latest)
        starts = [r if r > bound else bound for r in self.ready_us]
        if latest is not None:
            starts[latest] = max(self.ready_us[latest], max(arrival.values(), default=0.0))
        return starts

    def wait(self, veu: int, on: Iterable[int]) -> None:
        """Make what is appended next to a vEU wait for all rTasks of some operators.

        Parameters
        ----------
        veu : int
        on : iterable of int
            Operators; those of other programs are ignored.
        """
        placed = [(self._placed[o].rank, o) for o in on if o in self._placed]
        # Latest first: a wait teaches only what was appended before its operator, so no later wait of this
        # loop can make an earlier one superfluous.
        for _, operator in sorted(placed, reverse=True):
            target = self._placed[operator]
            if not target.known_to(veu, self._known[veu]):
                self._lanes[veu].append(Wait(operator, len(target.last)))
                self._known[veu] = target.after(self._known[veu])
                self.ready_us[veu] = self.problem.cost.passed_us(self.ready_us[veu], target.finish_us)

    def append(self, rtasks: Run, veu: int, kernel: RKernel) -> None:
        """Put rTasks of an operator at the end of a vEU.

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
            Someone depends on the operator already, or it has another kernel: a bug of the policy.
        """
        operator = rtasks.operator
        placed = self._placed.setdefault(operator, Placement(len(self._placed)))
        if placed.closed or self.kernels.setdefault(operator, kernel) != kernel:
            name = self.problem.graph.operators[operator].name
            raise ScheduleError(f"rTasks of {name!r} appended after a wait for them or with a second kernel")
        lane = self._lanes[veu]
        joined = _join(lane[-1], rtasks) if lane else None
        if joined:
            lane[-1] = joined
        else:
            lane.append(rtasks)
        self.ready_us[veu] += self.problem.cost.run_us(kernel, rtasks)
        placed.add(veu, len(lane) - 1, self._known[veu], self.ready_us[veu])

    def barrier(self) -> None:
        """Make every vEU wait for all vEUs; nothing to do in an empty program or on one vEU."""
        if not self.kernels or self.problem.veus == 1:
            return
        event = len(self.problem.graph.operators) + self._barriers
        self._barriers += 1
        last = max(self.ready_us)
        for veu, lane in enumerate(self._lanes):
            lane.append(Signal(event))
            self.ready_us[veu] = self.problem.cost.released_us(last)
        self._known = [Clock(tuple(len(lane) for lane in self._lanes))] * self.problem.veus
        for lane in self._lanes:
            lane.append(Wait(event, self.problem.veus))

    def mark(self) -> Mark:
        """Remember this state for `rollback`."""
        lengths = tuple(len(lane) for lane in self._lanes)
        return Mark(lengths, tuple(self.ready_us), tuple(self._known), len(self._placed), self._barriers)

    def rollback(self, mark: Mark) -> None:
        """Go back to a marked state; operators must not have been half appended at the mark."""
        for lane, length in zip(self._lanes, mark.lengths, strict=True):
            del lane[length:]
        self.ready_us = list(mark.ready_us)
        self._known = list(mark.known)
        self._barriers = mark.barriers
        while len(self._placed) > mark.operators:
            operator, _ = self._placed.popitem()
            del self.kernels[operator]

    def finish(self) -> tuple[tuple[Lane, ...], int]:
        """Write the lanes with their signals.

        Returns
        -------
        lanes : tuple of Lane
            Operators are numbered in the order of `problem.graph`, among those of this program.
        num_events : int
            Events are numbered from 0 in appending order.
        """
        return finish_events(self._lanes, list(self.kernels))


def _join(last: Instruction, new: Run) -> Run | None:
    """The two as one `Run`, if their indices form one arithmetic progression."""
    if not isinstance(last, Run) or last.operator != new.operator:
        return None
    step = new.start - last.start if last.count == 1 else last.step
    if step < 1 or new.start != last.start + last.count * step or (new.count > 1 and new.step != step):
        return None
    return Run(last.operator, last.start, last.count + new.count, step)
