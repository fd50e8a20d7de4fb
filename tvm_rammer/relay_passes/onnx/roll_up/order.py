"""The nodes of a graph and the Scans that take the place of some, each after those that it reads."""

from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from ..open_length.axes import read_within
from .steps import Graph


@dataclass(frozen=True, slots=True)
class Group:
    """A Scan, and what goes before and after it.

    Parameters
    ----------
    removed : frozenset of int
        The nodes whose place it takes.
    nodes : tuple of onnx.NodeProto
    tensors : tuple of onnx.TensorProto
        Constants that they read besides those of the graph.
    """

    removed: frozenset[int]
    nodes: tuple[onnx.NodeProto, ...]
    tensors: tuple[onnx.TensorProto, ...]

    @property
    def given(self) -> set[str]:
        """What the nodes read of the graph."""
        return {name for node in self.nodes for name in _read(node)} - self.made

    @property
    def made(self) -> set[str]:
        """What they make."""
        return {name for node in self.nodes for name in node.output if name}


class Order:
    """The graph with some groups in it.

    Parameters
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.groups: list[Group] = []
        self._given: list[set[str]] = []
        self._made: dict[str, int] = {}
        self._first = len(graph.nodes)

    def add(self, group: Group) -> bool:
        """Put a group into the graph; False where it would wait for itself, since then it cannot be there."""
        first, given = min(self._first, *group.removed), group.given
        todo, seen = list(given), set(given)
        while todo:
            name = todo.pop()
            number = self._graph.made.get(name, (-1, 0))[0]
            if number in group.removed:
                return False
            read: set[str] = set()
            if name in self._made:
                read = self._given[self._made[name]]
            elif number >= first:  # what comes before reads nothing of any group
                read = set(_read(self._graph.nodes[number]))
            todo += read - seen
            seen |= read
        self._first = first
        self._made |= dict.fromkeys(group.made, len(self.groups))
        self._given.append(given)
        self.groups.append(group)
        self._graph.take(group.removed, group.nodes, group.tensors)
        return True

    def nodes(self) -> list[onnx.NodeProto]:
        """All nodes that are left, in their order, and those of the groups where they are needed first."""
        count = len(self._graph.nodes)
        removed = {number for group in self.groups for number in group.removed}
        placed: set[int] = set(removed)
        ordered: list[onnx.NodeProto] = []
        for number in (*range(count), *range(count, count + len(self.groups))):
            todo = [number]
            while todo:
                missing = [] if todo[-1] in placed else [n for n in self._makers(todo[-1]) if n not in placed]
                if missing:
                    todo += missing
                elif (last := todo.pop()) not in placed:
                    placed.add(last)
                    ordered += self.groups[last - count].nodes if last >= count else [self._graph.nodes[last]]
        return ordered

    def _makers(self, number: int) -> Iterator[int]:
        """The numbers of the nodes, or behind these of the groups, that make what one reads."""
        count = len(self._graph.nodes)
        read = self._given[number - count] if number >= count else _read(self._graph.nodes[number])
        for name in read:
            if name in self._made:
                yield count + self._made[name]
            elif name in self._graph.made:
                yield self._graph.made[name][0]


def _read(node: onnx.NodeProto) -> Iterator[str]:
    yield from (name for name in node.input if name)
    yield from read_within(node)
