"""No copy that placement can avoid: an operator that only copies goes, and its buffers become parts of a larger one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..ir import VIEW_ALIGNMENT, Copies, Place, RGraph, ROperator

OWNED_ELSEWHERE = ("input", "constant", "output")
"""Kinds of buffers that have tensors of their own: none of them can lie within another buffer."""


def place_views(graph: RGraph, copies: Copies, kept: Collection[str] = ()) -> RGraph:
    """Leave out the operators that copy, where the data can be made, or read, where the copy would put it.

    Operators are tried by how much they copy, the largest first. One stays where its buffers cannot lie as it asks for:
    where a part would be in two places, two parts in one, or a part not at a multiple of `VIEW_ALIGNMENT`; where an
    input, a constant or an output would lie within another buffer; or where no buffer holds all others.

    Parameters
    ----------
    graph : RGraph
        Without views, but for the slots of a loop.
    copies : Copies
        What the functions move that only copy.
    kept : collection of str
        Operators that are to stay; none in a loop.

    Returns
    -------
    RGraph
        With the other operators; buffers that none of them touches are left out, but for those that hold views.
    """
    if graph.steps > 1:
        return _without_reshapes(graph, copies)
    copying = [o for o, op in enumerate(graph.operators) if op.function in copies and op.name not in kept]
    if not copying:
        return graph
    views = _Views(graph, copies)
    gone: list[int] = []
    for together in views.components(copying):
        gone += views.most([], sorted(together, key=views.copied_bytes, reverse=True))
    return views.without(gone)


def _without_reshapes(graph: RGraph, copies: Copies) -> RGraph:
    """Leave out what copies a buffer of a loop to another as it is: one is a view of the other, or of its slot."""
    places = {b: buffer.place for b, buffer in enumerate(graph.buffers) if buffer.place is not None}
    reshapes = [o for o, op in enumerate(graph.operators) if _is_reshape(graph, op, copies)]
    gone = set()
    for o in reversed(reshapes):  # what becomes a result is made there
        (source,), (target,) = graph.operators[o].inputs, graph.operators[o].outputs
        free = graph.buffers[source].kind == "intermediate" and source not in places
        if free and target in places and not _reads_old_value(graph, o):
            places[source] = places[target]
            gone.add(o)
    for o in reshapes:
        (source,), (target,) = graph.operators[o].inputs, graph.operators[o].outputs
        free = o not in gone and graph.buffers[target].kind == "intermediate" and target not in places
        if free and (source in places or graph.buffers[source].kind == "intermediate"):
            places[target] = places.get(source, Place(source, 0))
            gone.add(o)
    if not gone:
        return graph
    buffers = [
        replace(buffer, kind="view", place=places[b]) if b in places else buffer
        for b, buffer in enumerate(graph.buffers)
    ]
    left = tuple(op for o, op in enumerate(graph.operators) if o not in gone)
    return replace(graph, buffers=tuple(buffers), operators=left).subgraph(range(len(left)), graph.name)


def _is_reshape(graph: RGraph, op: ROperator, copies: Copies) -> bool:
    """Whether an operator copies all of one buffer, in all steps the same, to all of another."""
    if op.first or len(op.inputs) != 1 or len(op.outputs) != 1 or len(moves := copies.get(op.function, ())) != 1:
        return False
    source, target = (graph.buffers[b] for b in (*op.inputs, *op.outputs))
    return moves[0].nbytes == source.nbytes == target.nbytes and source.dtype == target.dtype


def _reads_old_value(graph: RGraph, copy: int) -> bool:
    """Whether an operator before a copy reads, in the slot that the copy writes, what was there before."""
    target = graph.buffers[graph.operators[copy].outputs[0]].place
    read = (graph.buffers[b].place for op in graph.operators[:copy] for b in op.inputs)
    return any(
        target is not None
        and target.phases > 0
        and place is not None
        and place.base == target.base
        and (place.ahead - target.ahead) % target.phases == 0
        for place in read
    )


def torn_apart(graph: RGraph, program_of: Mapping[str, int]) -> set[str]:
    """Find the operators that must copy after all, since different programs write what they would put together.

    Parameters
    ----------
    graph : RGraph
        Without views.
    program_of : mapping of str to int
        In which program each operator is that was not left out.

    Returns
    -------
    set of str
        Names; of operators that depend on each other the first.
    """
    writers: list[frozenset[int]] = [frozenset()] * len(graph.buffers)
    torn = set()
    for op in graph.operators:
        programs = frozenset[int]().union(*(writers[b] for b in op.inputs))
        if op.name in program_of:
            programs = frozenset({program_of[op.name]})
        elif len(programs) > 1:
            torn.add(op.name)
            programs = frozenset()
        for b in op.outputs:
            writers[b] = programs
    return torn


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Buffers that lie together: one that holds all others, and where each begins in it."""

    base: int
    starts: Mapping[int, int]


class _Views:
    """Finds out which operators of a graph need not copy."""

    def __init__(self, graph: RGraph, copies: Copies) -> None:
        self._graph = graph
        self._touching: list[list[int]] = [[] for _ in graph.buffers]
        self._writer: dict[int, int] = {}
        self._pairs: dict[int, list[tuple[int, int, int]]] = {}
        for o, op in enumerate(graph.operators):
            for b in (*op.inputs, *op.outputs):
                self._touching[b].append(o)
            self._writer.update(dict.fromkeys(op.outputs, o))
            self._pairs[o] = [
                (op.inputs[m.source], op.outputs[m.target], m.source_start - m.target_start)
                for m in copies.get(op.function, ())
            ]

    def copied_bytes(self, operator: int) -> int:
        """How much an operator copies."""
        return sum(self._graph.buffers[b].nbytes for b in self._graph.operators[operator].outputs)

    def components(self, operators: Sequence[int]) -> Iterator[list[int]]:
        """Sort operators by which of them have buffers in common, directly or through others."""
        left = set(operators)
        while left:
            found, pending = [], [min(left)]
            left.discard(pending[0])
            while pending:
                found.append(pending.pop())
                near = {o for a, b, _ in self._pairs[found[-1]] for o in (*self._touching[a], *self._touching[b])}
                pending += sorted(near & left)
                left -= near
            yield found

    def most(self, gone: list[int], more: Sequence[int]) -> list[int]:
        """Those that are `gone`, and as many of `more` as can be left out beside them: halves are tried in turn."""
        if self._clusters([*gone, *more]) is not None:
            return [*gone, *more]
        if len(more) == 1:
            return gone
        middle = len(more) // 2
        return self.most(self.most(gone, more[:middle]), more[middle:])

    def without(self, gone: Sequence[int]) -> RGraph:
        """The graph without operators that can be left out."""
        buffers = list(self._graph.buffers)
        for cluster in self._clusters(gone) or ():
            for b, start in cluster.starts.items():
                if b != cluster.base:
                    buffers[b] = replace(buffers[b], kind="view", place=Place(cluster.base, start))
        absent = set(gone)
        left = tuple(op for o, op in enumerate(self._graph.operators) if o not in absent)
        return RGraph(self._graph.name, tuple(buffers), left).subgraph(range(len(left)), self._graph.name)

    def _clusters(self, gone: Sequence[int]) -> list[_Cluster] | None:
        """How buffers lie if some operators are left out; None where they cannot."""
        distances: dict[int, list[tuple[int, int]]] = {}
        for o in gone:
            for a, b, distance in self._pairs[o]:
                distances.setdefault(a, []).append((b, distance))
                distances.setdefault(b, []).append((a, -distance))
        clusters, seen, absent = [], set[int](), set(gone)
        for first in distances:
            if first in seen:
                continue
            starts = _starts(first, distances)
            cluster = None if starts is None else self._cluster(starts, absent)
            if cluster is None:
                return None
            seen |= cluster.starts.keys()
            clusters.append(cluster)
        return clusters

    def _cluster(self, starts: Mapping[int, int], gone: Collection[int]) -> _Cluster | None:
        """Find the buffer that holds all others, and check that they may lie so."""
        sizes = {b: self._graph.buffers[b].nbytes for b in starts}
        end = max(start + sizes[b] for b, start in starts.items())
        owned = [b for b in starts if self._graph.buffers[b].kind in OWNED_ELSEWHERE]
        base = next((b for b in owned or sorted(starts) if sizes[b] == end), None)
        if base is None or len(owned) > 1 or len({self._graph.buffers[b].dtype for b in starts}) > 1:
            return None
        touched = [b for b in starts if any(o not in gone for o in self._touching[b])]
        if any(starts[b] % VIEW_ALIGNMENT for b in touched):
            return None
        # Written by an operator that stays, or from outside: no other data may lie there.
        own = sorted((starts[b], starts[b] + sizes[b]) for b in starts if self._writer.get(b) not in gone)
        return _Cluster(base, starts) if all(a[1] <= b[0] for a, b in pairwise(own)) else None


def _starts(first: int, distances: Mapping[int, Sequence[tuple[int, int]]]) -> dict[int, int] | None:
    """Where all buffers lie that have a distance to the first one, from the least on; None if one is in two places."""
    starts, pending = {first: 0}, [first]
    while pending:
        a = pending.pop()
        for b, distance in distances[a]:
            if b not in starts:
                starts[b] = starts[a] + distance
                pending.append(b)
            elif starts[b] != starts[a] + distance:
                return None
    least = min(starts.values())
    return {b: start - least for b, start in starts.items()}
