"""Which operators are wholly done before an operator begins, in every legal execution."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir import Lane, Run, Signal, Wait


@dataclass(slots=True)
class _Event:
    """An event on its way to its last signal."""

    missing: int = 0
    known: int = 0
    unfinished: int = 0
    signallers: set[int] = field(default_factory=set)
    waiting: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OperatorOrder:
    """The order of operators in a plan; sets of operators are bits of an int.

    Parameters
    ----------
    sequence : tuple of int
        Operators as they begin in one legal execution.
    before : tuple of int
        For each operator the set of those that have ended before any rTask of it begins.
    """

    sequence: tuple[int, ...]
    before: tuple[int, ...]


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
        It may lack an order that holds (what two waits prove only together), but never claims one that does not.
    """
    return _Walk(lanes, num_operators, num_events).order()


class _Walk:
    def __init__(self, lanes: Sequence[Lane], num_operators: int, num_events: int) -> None:
        self.lanes = lanes
        self.events = [_Event() for _ in range(num_events)]
        runs_left = [0] * num_operators
        self.left = [0] * len(lanes)
        self.left_runs: list[dict[int, int]] = [{} for _ in lanes]
        for v, lane in enumerate(lanes):
            for instruction in lane:
                if isinstance(instruction, Run):
                    self.left_runs[v][instruction.operator] = self.left_runs[v].get(instruction.operator, 0) + 1
                elif isinstance(instruction, Signal):
                    self.events[instruction.event].missing += 1
            for operator in self.left_runs[v]:
                runs_left[operator] += 1
                self.left[v] |= 1 << operator
        self.alone = [n == 1 for n in runs_left]
        self.has = tuple(self.left)
        self.known = [0] * len(lanes)
        self.before = [-1] * num_operators
        self.everything = (1 << num_operators) - 1

    def order(self) -> OperatorOrder:
        sequence: dict[int, None] = {}
        at = [0] * len(self.lanes)
        ready = deque(range(len(self.lanes)))
        while ready:
            v = ready.popleft()
            lane = self.lanes[v]
            while at[v] < len(lane):
                instruction = lane[at[v]]
                if isinstance(instruction, Run):
                    sequence[instruction.operator] = None
                    self._run(v, instruction.operator)
                elif isinstance(instruction, Signal):
                    ready.extend(self._signal(v, instruction.event))
                elif not self._passes(v, instruction):
                    break
                at[v] += 1
        return OperatorOrder(tuple(sequence), tuple(max(b, 0) for b in self.before))

    def _run(self, v: int, operator: int) -> None:
        self.before[operator] &= self.known[v]
        self.left_runs[v][operator] -= 1
        if not self.left_runs[v][operator]:
            self.left[v] &= ~(1 << operator)
            if self.alone[operator]:
                self.known[v] |= 1 << operator

    def _signal(self, v: int, number: int) -> list[int]:
        event = self.events[number]
        event.missing -= 1
        event.known |= self.known[v]
        event.unfinished |= self.left[v]
        event.signallers.add(v)
        if event.missing:
            return []
        # An operator is also done if it runs on signalling lanes only and has ended on each of them.
        elsewhere = 0
        for u, has in enumerate(self.has):
            if u not in event.signallers:
                elsewhere |= has
        event.known |= self.everything & ~event.unfinished & ~elsewhere
        return event.waiting

    def _passes(self, v: int, wait: Wait) -> bool:
        event = self.events[wait.event]
        if event.missing:
            event.waiting.append(v)
            return False
        self.known[v] |= event.known
        return True
