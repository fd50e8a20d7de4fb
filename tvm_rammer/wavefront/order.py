"""How far all lanes surely are when an operator begins, in every legal execution."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir import Lane, Run, Signal
from .clocks import Clock, merge, merge_all


@dataclass(frozen=True, slots=True)
class OperatorOrder:
    """The order of operators in a plan; how far a lane is counts its instructions that are done.

    Parameters
    ----------
    sequence : tuple of int
        Operators as they begin in one legal execution.
    begin : tuple of tuple of int
        For each operator how far each lane surely is before any rTask of it begins.
    end : tuple of dict of int to int
        For each operator how far each of its lanes is once all rTasks of it have ended there.
    """

    sequence: tuple[int, ...]
    begin: tuple[tuple[int, ...], ...]
    end: tuple[dict[int, int], ...]


@dataclass(slots=True)
class _Event:
    """An event on its way to its last signal."""

    missing: int = 0
    known: dict[int, Clock] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    learnt: dict[Clock, Clock] = field(default_factory=dict)
    proof: Clock | None = None

    def after(self, clock: Clock) -> Clock:
        """What a lane that knows `clock` knows after it has waited for all signals."""
        if self.proof is None:
            seen = list(merge_all(self.known.values()).seen)
            for lane, position in self.positions.items():
                seen[lane] = max(seen[lane], position)
            self.proof = Clock(tuple(seen))
        if clock not in self.learnt:
            self.learnt[clock] = merge(clock, self.proof)
        return self.learnt[clock]


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
        self.events = [_Event() for _ in range(num_events)]
        for lane in lanes:
            for instruction in lane:
                if isinstance(instruction, Signal):
                    self.events[instruction.event].missing += 1
        self.known = [Clock((0,) * len(lanes))] * len(lanes)
        self.at = [0] * len(lanes)
        self.begin: list[dict[int, tuple[int, Clock]]] = [{} for _ in range(num_operators)]
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
        return OperatorOrder(tuple(sequence), tuple(map(self._earliest, self.begin)), tuple(self.end))

    def _passes(self, v: int, ready: list[int]) -> bool:
        """Do the next instruction of a lane, if it need not wait."""
        instruction, position = self.lanes[v][self.at[v]], self.at[v]
        if isinstance(instruction, Run):
            self.begin[instruction.operator].setdefault(v, (position, self.known[v]))
            return True
        event = self.events[instruction.event]
        if isinstance(instruction, Signal):
            event.missing -= 1
            event.known[v], event.positions[v] = self.known[v], position + 1
            if not event.missing:
                ready += event.waiting
            return True
        if event.missing:
            event.waiting.append(v)
            return False
        self.known[v] = event.after(self.known[v])
        return True

    def _earliest(self, begins: dict[int, tuple[int, Clock]]) -> tuple[int, ...]:
        """What all lanes that begin an operator know; what a lane did itself, it knows better than its clock."""
        seen = []
        for clock in dict.fromkeys(clock for _, clock in begins.values()):
            mine = list(clock.seen)
            beginners = [v for v, (_, c) in begins.items() if c is clock]
            if len(beginners) == 1:
                mine[beginners[0]] = max(mine[beginners[0]], begins[beginners[0]][0])
            seen.append(mine)
        return tuple(map(min, *seen)) if len(seen) > 1 else tuple(seen[0]) if seen else ()
