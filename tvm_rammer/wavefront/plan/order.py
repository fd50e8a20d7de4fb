"""How far all lanes surely are when an operator begins, in every legal execution."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

from ...ir import Lane, Run, Signal
from .clocks import Clock, Clocks, pack


@dataclass(frozen=True, slots=True)
class OperatorOrder:
    """The order of operators in a plan.

    Parameters
    ----------
    sequence : tuple of int
        Operators as they begin in one legal execution.
    begin : tuple of Clock
        For each operator how far the lanes surely are before any rTask of it begins.
    end : tuple of Clock
        For each operator how far the lanes are that run it once all its rTasks have ended.
    """

    sequence: tuple[int, ...]
    begin: tuple[Clock, ...]
    end: tuple[Clock, ...]


@dataclass(slots=True)
class _Event:
    """An event on its way to its last signal."""

    missing: int = 0
    known: Clock = 0
    waiting: list[int] = field(default_factory=list)


def operator_order(lanes: Sequence[Lane], num_operators: int, num_events: int) -> OperatorOrder:
    """Walk through the lanes in one legal order and carry along what each lane knows.

    Parameters
    ----------
    lanes : sequence of Lane
        Of a plan without deadlock, in which each wait is for all signals of its event.
    num_operators, num_events : int

    Returns
    -------
    OperatorOrder
    """
    return _Walk(lanes, num_operators, num_events).order()


class _Walk:
    def __init__(self, lanes: Sequence[Lane], num_operators: int, num_events: int) -> None:
        self.lanes = lanes
        self.clocks = Clocks.of(len(lanes))
        self.events = [_Event() for _ in range(num_events)]
        for lane in lanes:
            for instruction in lane:
                if isinstance(instruction, Signal):
                    self.events[instruction.event].missing += 1
        self.known: list[Clock] = [0] * len(lanes)
        self.at = [0] * len(lanes)
        self.begin: list[dict[int, Clock]] = [{} for _ in range(num_operators)]
        self.end: list[dict[int, int]] = [{} for _ in range(num_operators)]

    def order(self) -> OperatorOrder:
        sequence: dict[int, None] = {}
        ready = list(range(len(self.lanes)))
        while ready:
            v = ready.pop()
            while self.at[v] < len(self.lanes[v]) and self._passes(v, ready):
                instruction = self.lanes[v][self.at[v]]
                self.at[v] += 1
                if isinstance(instruction, Run):
                    sequence[instruction.operator] = None
                    self.end[instruction.operator][v] = self.at[v]
        begin = tuple(reduce(self.clocks.common, begins.values()) if begins else 0 for begins in self.begin)
        return OperatorOrder(tuple(sequence), begin, tuple(map(pack, self.end)))

    def _passes(self, v: int, ready: list[int]) -> bool:
        """Do the next instruction of a lane, if it need not wait."""
        instruction = self.lanes[v][self.at[v]]
        if isinstance(instruction, Run):
            if v not in self.begin[instruction.operator]:
                self.begin[instruction.operator][v] = self._mine(v, self.at[v])
            return True
        event = self.events[instruction.event]
        if isinstance(instruction, Signal):
            event.missing -= 1
            event.known = self.clocks.merge(event.known, self._mine(v, self.at[v] + 1))
            if not event.missing:
                ready += event.waiting
            return True
        if event.missing:
            event.waiting.append(v)
            return False
        self.known[v] = self.clocks.merge(self.known[v], event.known)
        return True

    def _mine(self, v: int, done: int) -> Clock:
        """What a lane knows that has done so many of its own instructions."""
        return self.clocks.merge(self.known[v], pack({v: done}))
