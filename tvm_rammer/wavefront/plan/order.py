"""How far every lane has got when an operator begins, in every legal execution."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

from ...ir import Lane, Run, Signal
from .clocks import Clock, ClockArithmetic, pack


@dataclass(frozen=True, slots=True)
class OperatorOrder:
    """The order of operators in a plan.

    Parameters
    ----------
    sequence : tuple of int
        Operators as they begin in one legal execution.
    begin : tuple of Clock
        For each operator how far the lanes have got, at least, before any rTask of it begins.
    end : tuple of Clock
        For each operator how far the lanes that run it have got once all its rTasks have ended.
    """

    sequence: tuple[int, ...]
    begin: tuple[Clock, ...]
    end: tuple[Clock, ...]


@dataclass(slots=True)
class _Event:
    """An event: how many signals it still lacks, the merged clocks of those given, and the vEUs that wait."""

    missing: int = 0
    clock: Clock = 0
    waiting: list[int] = field(default_factory=list)


def operator_order(lanes: Sequence[Lane], num_operators: int, num_events: int) -> OperatorOrder:
    """Execute the lanes abstractly in one legal order, with a vector clock for each vEU.

    Parameters
    ----------
    lanes : sequence of Lane
        Of a plan without deadlock, in which each wait is for all signals of its event.
    num_operators, num_events : int

    Returns
    -------
    OperatorOrder
    """
    return _Execution(lanes, num_operators, num_events).order()


class _Execution:
    def __init__(self, lanes: Sequence[Lane], num_operators: int, num_events: int) -> None:
        self.lanes = lanes
        self.arithmetic = ClockArithmetic.of(len(lanes))
        self.events = [_Event() for _ in range(num_events)]
        for lane in lanes:
            for instruction in lane:
                if isinstance(instruction, Signal):
                    self.events[instruction.event].missing += 1
        self.clocks: list[Clock] = [0] * len(lanes)
        self.at = [0] * len(lanes)
        self.begin: list[dict[int, Clock]] = [{} for _ in range(num_operators)]
        self.end: list[dict[int, int]] = [{} for _ in range(num_operators)]

    def order(self) -> OperatorOrder:
        sequence: dict[int, None] = {}
        ready = list(range(len(self.lanes)))
        while ready:
            v = ready.pop()
            while self.at[v] < len(self.lanes[v]) and self._execute(v, ready):
                instruction = self.lanes[v][self.at[v]]
                self.at[v] += 1
                if isinstance(instruction, Run):
                    sequence[instruction.operator] = None
                    self.end[instruction.operator][v] = self.at[v]
        begin = tuple(reduce(self.arithmetic.common, begins.values()) if begins else 0 for begins in self.begin)
        return OperatorOrder(tuple(sequence), begin, tuple(map(pack, self.end)))

    def _execute(self, v: int, ready: list[int]) -> bool:
        """Execute the next instruction of a lane; False if it has to wait."""
        instruction = self.lanes[v][self.at[v]]
        if isinstance(instruction, Run):
            if v not in self.begin[instruction.operator]:
                self.begin[instruction.operator][v] = self._clock(v, self.at[v])
            return True
        event = self.events[instruction.event]
        if isinstance(instruction, Signal):
            event.missing -= 1
            event.clock = self.arithmetic.merge(event.clock, self._clock(v, self.at[v] + 1))
            if not event.missing:
                ready += event.waiting
            return True
        if event.missing:
            event.waiting.append(v)
            return False
        self.clocks[v] = self.arithmetic.merge(self.clocks[v], event.clock)
        return True

    def _clock(self, v: int, done: int) -> Clock:
        """The clock of a vEU that has executed so many instructions of its lane."""
        return self.arithmetic.merge(self.clocks[v], pack({v: done}))
