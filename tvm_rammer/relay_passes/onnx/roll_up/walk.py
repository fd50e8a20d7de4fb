"""Which node does in the next step what another one does in this: found operand by operand, from two nodes."""

from collections.abc import Iterator

from .steps import Graph


class Walk:
    """Pairs of nodes of which the second does in a step what the first does in the step before.

    Parameters
    ----------
    graph : Graph

    Attributes
    ----------
    after : dict of int to int
        The second node of each pair by the first one. None is in two pairs on the same side.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.after: dict[int, int] = {}
        self._before: dict[int, int] = {}

    def begin(self, first: int, second: int) -> None:
        """Find all pairs, if two nodes are one: those whose results these read, and those that read theirs.

        Upwards all pairs are followed. Downwards only to complete the last steps: what does not lead to the first two
        nodes is no part of the recurrence.
        """
        pairs, lasts = [(first, second)], list[int]()
        while pairs or lasts:
            if pairs:
                lasts += self._follow(pairs)
            elif (last := lasts.pop()) not in self.after and (pair := self._completed(last)):
                pairs.append(pair)

    def _follow(self, pairs: list[tuple[int, int]]) -> list[int]:
        """Take pairs, and all above them; the nodes of which it may be known now what does the same a step later."""
        lasts = []
        while pairs:
            first, second = pairs.pop()
            if first in self.after or second in self._before:
                continue
            self.after[first], self._before[second] = second, first
            pairs += self._operands(first, second)
            lasts += [second, *self._readers(first)]
        return lasts

    def _readers(self, number: int) -> list[int]:
        """Nodes that read a node's results, and are the second one of a pair."""
        results = (name for name in self._graph.nodes[number].output if name)
        return [reader for name in results for reader in self._graph.readers.get(name, ()) if reader in self._before]

    def _operands(self, first: int, second: int) -> Iterator[tuple[int, int]]:
        """The pairs that make what two nodes read in the same place."""
        graph = self._graph
        for one, other in zip(graph.nodes[first].input, graph.nodes[second].input, strict=True):
            makers = graph.made.get(one), graph.made.get(other)
            if one == other or graph.is_constant(one) or None in makers or self._are_parts(one, other):
                continue
            (a, at), (b, other_at) = (maker for maker in makers if maker is not None)
            if at == other_at and graph.kinds[a] is not None and graph.kinds[a] == graph.kinds[b]:
                yield a, b

    def _are_parts(self, one: str, other: str) -> bool:
        """Whether two values are parts of one array that lie side by side."""
        a, b = self._graph.parts.get(one), self._graph.parts.get(other)
        if a is None or b is None or abs(a.index - b.index) != 1:
            return False
        return (a.array, a.axis, a.kept) == (b.array, b.axis, b.kept)

    def _completed(self, last: int) -> tuple[int, int] | None:
        """A node and what does the same in the next step: the only one of its kind that reads the same there."""
        graph, read = self._graph, []
        for at, name in enumerate(graph.nodes[last].input):
            maker = graph.made.get(name)
            if maker is not None and maker[0] in self.after:
                read.append((at, graph.nodes[self.after[maker[0]]].output[maker[1]]))
        if not read:
            return None
        found = [
            number
            for number in graph.readers.get(read[0][1], ())
            if number >= 0
            and graph.kinds[number] == graph.kinds[last]
            and number not in self._before
            and all(graph.nodes[number].input[at] == name for at, name in read)
        ]
        return (last, found[0]) if len(found) == 1 else None
