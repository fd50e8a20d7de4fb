"""Nodes that do the same in all steps as slots of a step, and which of the slots make a recurrence."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .ahead import goes_ahead
from .steps import Graph
from .walk import Walk

MOST_CUTS = 8
"""Slots that are tried as the end of a step."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What does the same in one step after the other.

    Parameters
    ----------
    nodes : tuple of int
    first : int
        The step of the first one.
    """

    nodes: tuple[int, ...]
    first: int = 0

    def node(self, step: int) -> int:
        """The node of a step."""
        return self.nodes[step - self.first]

    @property
    def end(self) -> int:
        """The step behind the last one that it has a node for."""
        return self.first + len(self.nodes)


@dataclass(frozen=True, slots=True)
class Edge:
    """A slot reads what another one makes; `back` is by how many steps earlier."""

    reader: int
    maker: int
    back: int


def slots_of(walk: Walk, fewest: int) -> list[Slot]:
    """The rows of pairs that are long enough, in the order of their first nodes."""
    seconds = set(walk.after.values())
    found = []
    for first in sorted(walk.after):
        if first in seconds:
            continue
        row = [first]
        while row[-1] in walk.after:
            row.append(walk.after[row[-1]])
        if len(row) >= fewest:
            found.append(Slot(tuple(row)))
    return found


class Step:
    """The slots of a walk, and which of them make a recurrence.

    Parameters
    ----------
    graph : Graph
    slots : sequence of Slot
        How their steps are numbered does not matter.
    """

    def __init__(self, graph: Graph, slots: Sequence[Slot]) -> None:
        self._graph, self._slots = graph, slots
        self._at = {node: (number, at) for number, slot in enumerate(slots) for at, node in enumerate(slot.nodes)}
        self._reads = [list(self._edges(number)) for number in range(len(slots))]

    def _edges(self, number: int) -> Iterator[Edge]:
        """What a slot reads of slots: the node in the middle stands for all."""
        at = len(self._slots[number].nodes) // 2
        for name in self._graph.nodes[self._slots[number].nodes[at]].input:
            maker = self._graph.made.get(name)
            if maker is not None and maker[0] in self._at:
                slot, other = self._at[maker[0]]
                yield Edge(number, slot, at - other)

    def recurrence(self) -> tuple[list[Slot], list[Slot]] | None:
        """The recurrence that waits for no other one, and what computes what only it reads.

        Returns
        -------
        tuple of two lists of Slot, or None
            The slots of both, with their steps numbered alike. None where no recurrence reads weights, or where what
            it hands on is not of the step before.
        """
        waiting: set[int] = set()
        for group in self._cycles():
            waiting |= group
            if any(self._graph.has_weights(self._slots[slot].nodes[0]) for slot in group):
                shift = self._aligned(group)
                if shift is None:
                    return None
                own, above = sorted(group), sorted(self._add_above(shift, waiting))
                slots = {n: Slot(self._slots[n].nodes, first) for n, first in shift.items()}
                return [slots[n] for n in own], [slots[n] for n in above]
        return None

    def _add_above(self, shift: dict[int, int], waiting: set[int]) -> set[int]:
        """Number the steps of what is computed ahead of a recurrence, as late as can be; which slots these are."""
        above: set[int] = set()
        todo = sorted(shift)
        while todo:
            reader = todo.pop()
            for edge in self._reads[reader]:
                node = self._graph.nodes[self._slots[edge.maker].nodes[0]]
                if edge.maker in waiting or not goes_ahead(node):
                    continue
                step = shift[reader] + edge.back
                if step < shift.get(edge.maker, step + 1):
                    shift[edge.maker] = step
                    above.add(edge.maker)
                    todo.append(edge.maker)
        return above

    def _cycles(self) -> Iterator[set[int]]:
        """The slots that wait for themselves, in groups, each after those that it reads (Tarjan, 1972)."""
        index: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        inside: set[int] = set()
        for root in range(len(self._slots)):
            todo = [(root, iter(self._reads[root]))] if root not in index else []
            while todo:
                slot, edges = todo[-1]
                if slot not in index:
                    index[slot] = low[slot] = len(index)
                    stack.append(slot)
                    inside.add(slot)
                for edge in edges:
                    if edge.maker not in index:
                        todo.append((edge.maker, iter(self._reads[edge.maker])))
                        break
                    if edge.maker in inside:
                        low[slot] = min(low[slot], index[edge.maker])
                else:
                    todo.pop()
                    if todo:
                        low[todo[-1][0]] = min(low[todo[-1][0]], low[slot])
                    if low[slot] == index[slot]:
                        group = {stack.pop()}
                        while slot not in group:
                            group.add(stack.pop())
                        inside -= group
                        if len(group) > 1 or any(edge.maker == slot for edge in self._reads[slot]):
                            yield group

    def _aligned(self, group: set[int]) -> dict[int, int] | None:
        """Number the steps so that as little as possible is handed on: of each slot the step of its first node."""
        ends = sorted(
            (slot for slot in group if self._is_read_elsewhere(slot, group)), key=lambda s: -self._slots[s].nodes[-1]
        )
        found = [steps for end in ends[:MOST_CUTS] if (steps := self._steps_before(end, group)) is not None]
        return min(found, key=self._handed_on) if found else None

    def _is_read_elsewhere(self, slot: int, group: set[int]) -> bool:
        own = {node for member in group for node in self._slots[member].nodes}
        results = (name for node in self._slots[slot].nodes for name in self._graph.nodes[node].output if name)
        return any(reader not in own for name in results for reader in self._graph.readers.get(name, ()))

    def _steps_before(self, end: int, group: set[int]) -> dict[int, int] | None:
        """The step of each slot's first node, if a step ends with a slot: what that waits for is as late as can be.

        None where anything would read what is older than a step.
        """
        shift = {end: 0}
        todo = [end]
        while todo:
            reader = todo.pop(0)
            for edge in self._reads[reader]:
                if edge.maker in group and shift[reader] + edge.back < shift.get(edge.maker, 1 << 60):
                    shift[edge.maker] = shift[reader] + edge.back
                    todo.append(edge.maker)
        edges = (edge for slot in group for edge in self._reads[slot] if edge.maker in group)
        if any(edge.back + shift[edge.reader] - shift[edge.maker] > 1 for edge in edges):
            return None
        return shift

    def _handed_on(self, shift: dict[int, int]) -> int:
        """How many elements a step hands on to the next one."""
        edges = (edge for slot in shift for edge in self._reads[slot] if edge.maker in shift)
        carried = {e.maker for e in edges if e.back + shift[e.reader] - shift[e.maker] == 1}
        results = (self._graph.nodes[self._slots[slot].nodes[0]].output[0] for slot in carried)
        return sum(math.prod(self._graph.dims(name) or ()) for name in results)
