"""From which step to which all slots do the same, proven node by node, and what each of them reads there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .cycle import Slot
from .steps import Graph


@dataclass(frozen=True, slots=True)
class Inner:
    """What a slot makes in the same step, or in the one before (`back` is 1)."""

    slot: int
    output: int
    back: int


@dataclass(frozen=True, slots=True)
class Read:
    """A slice of an array: of step t that at `base + direction * t` along an axis, which stays if `kept`."""

    array: str
    axis: int
    base: int
    direction: int
    kept: bool


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that is the same in all steps; empty for an input that is left out."""

    name: str


@dataclass(frozen=True, slots=True)
class Others:
    """A value of its own for each step, by its place in what a slot's nodes read."""

    at: int


Operand = Inner | Read | Fixed | Others


@dataclass(frozen=True, slots=True)
class EqualSteps:
    """Steps that do the same.

    Parameters
    ----------
    slots : tuple of Slot
        The recurrence, and then what only it reads.
    own : int
        How many of them are the recurrence.
    first, end : int
        The first step, and the one behind the last.
    operands : tuple of tuple of Operand
        Of each slot.
    """

    slots: tuple[Slot, ...]
    own: int
    first: int
    end: int
    operands: tuple[tuple[Operand, ...], ...]

    def back(self) -> Iterator[tuple[Slot, int, Inner]]:
        """What is read of the step before: by which slot, and at which place."""
        for slot, operands in zip(self.slots, self.operands, strict=True):
            for at, operand in enumerate(operands):
                if isinstance(operand, Inner) and operand.back:
                    yield slot, at, operand


def equal_steps(graph: Graph, own: Sequence[Slot], above: Sequence[Slot], fewest: int) -> EqualSteps | None:
    """Find the most steps around the middle one that do the same.

    Parameters
    ----------
    graph : Graph
    own, above : sequence of Slot
        The recurrence, and what computes what it reads; their steps are numbered alike.
    fewest : int
        At least 3.

    Returns
    -------
    EqualSteps or None
        None for fewer steps, or where a shape that is needed is not known.
    """
    return _Check(graph, (*own, *above), len(own), fewest).steps()


class _Check:
    def __init__(self, graph: Graph, slots: tuple[Slot, ...], own: int, fewest: int) -> None:
        self._graph, self._slots, self._own, self._fewest = graph, slots, own, fewest
        self._first, self._end = max(s.first for s in slots), min(s.end for s in slots)
        self._at = {node: (n, slot.first + i) for n, slot in enumerate(slots) for i, node in enumerate(slot.nodes)}

    def steps(self) -> EqualSteps | None:
        if self._end - self._first < self._fewest:
            return None
        middle = (self._first + self._end) // 2
        found = []
        for slot in self._slots:
            places = range(len(self._graph.nodes[slot.node(middle)].input))
            operands = [self._operand(slot, at, middle) for at in places]
            for at, operand in zip(places, operands, strict=True):
                self._narrow(slot, at, operand, middle)
            found.append(tuple(operands))
        steps = EqualSteps(self._slots, self._own, self._first, self._end, tuple(found))
        if not self._begins(steps):
            self._first += 1
        if self._end - self._first < self._fewest or not all(map(self._is_known, self._slots)):
            return None
        return EqualSteps(self._slots, self._own, self._first, self._end, tuple(found))

    def _is_known(self, slot: Slot) -> bool:
        """Whether the types of a slot's results are known."""
        node = self._graph.nodes[slot.node(self._end - 1)]
        return all(self._type(name) is not None for name in node.output if name)

    def _name(self, slot: Slot, at: int, step: int) -> str:
        return str(self._graph.nodes[slot.node(step)].input[at])

    def _operand(self, slot: Slot, at: int, step: int) -> Operand:
        """What a slot reads, as it is in one step and the next."""
        graph = self._graph
        name, following = self._name(slot, at, step), self._name(slot, at, step + 1)
        if name == following or graph.is_constant(name):
            return Fixed(name)
        maker = graph.made.get(name)
        if maker is not None and maker[0] in self._at:
            number, made = self._at[maker[0]]
            return Inner(number, maker[1], step - made)
        part, after = graph.parts.get(name), graph.parts.get(following)
        if part is not None and after is not None and abs(direction := after.index - part.index) == 1:
            return Read(part.array, part.axis, part.index - direction * step, direction, part.kept)
        return Others(at)

    def _narrow(self, slot: Slot, at: int, operand: Operand, middle: int) -> None:
        """Leave out the steps in which a slot reads something else."""
        begins = isinstance(operand, Inner) and operand.back == 1
        for step in range(self._first, self._end):
            if self._holds(slot, at, operand, step, middle):
                continue
            if step <= middle:
                self._first = max(self._first, step if begins else step + 1)
            else:
                self._end = min(self._end, step)

    def _holds(self, slot: Slot, at: int, operand: Operand, step: int, middle: int) -> bool:
        graph, name = self._graph, self._name(slot, at, step)
        match operand:
            case Fixed(same):
                return name == same or (graph.is_constant(name) and graph.is_constant(same))
            case Inner(number, output, back):
                return back in (0, 1) and graph.made.get(name) in [
                    (self._slots[number].nodes[made], output)
                    for made in [step - back - self._slots[number].first]
                    if 0 <= made < len(self._slots[number].nodes)
                ]
            case Read(array, axis, base, direction, kept):
                part = graph.parts.get(name)
                return part is not None and (part.array, part.axis, part.index, part.kept) == (
                    array, axis, base + direction * step, kept,
                )  # fmt: skip
            case Others():
                return self._type(name) is not None and self._type(name) == self._type(self._name(slot, at, middle))

    def _begins(self, steps: EqualSteps) -> bool:
        """Whether all that read one value of the step before read the same in the first step, of the same type."""
        given: dict[Inner, str] = {}
        for slot, at, operand in steps.back():
            name = self._name(slot, at, steps.first)
            node = self._graph.nodes[self._slots[operand.slot].node(steps.end - 1)]
            if given.setdefault(operand, name) != name or self._type(name) is None:
                return False
            if self._type(name) != self._type(node.output[operand.output]):
                return False
        return True

    def _type(self, name: str) -> tuple[tuple[int, ...], int] | None:
        dims = self._graph.dims(name)
        return None if dims is None else (dims, self._graph.elem_type(name))
