"""Several graphs as one, so that several models can be planned together; Rammer plans one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import ScheduleError
from ..ir import Buffer, RGraph, ROperator


@dataclass(frozen=True, slots=True)
class MergedGraph:
    """A graph of several graphs.

    Parameters
    ----------
    graph : RGraph
        The operators of the first graph, then those of the second, and so on.
    buffers : tuple of tuple of int
        For each graph the position of each of its buffers in `graph.buffers`.
    first_operator : tuple of int
        For each graph the position of its first operator in `graph.operators`.
    """

    graph: RGraph
    buffers: tuple[tuple[int, ...], ...]
    first_operator: tuple[int, ...]


def merge_graphs(graphs: Sequence[RGraph], name: str) -> MergedGraph:
    """Unite graphs that do not depend on each other.

    Parameters
    ----------
    graphs : sequence of RGraph
        Operators of one name are not allowed; buffers of one name must be one input or constant that both read.
    name : str
        Of the new graph.

    Returns
    -------
    MergedGraph

    Raises
    ------
    ScheduleError
        Two operators, or two different buffers, have one name.
    """
    buffers: dict[str, Buffer] = {}
    operators: dict[str, ROperator] = {}
    positions: list[tuple[int, ...]] = []
    first: list[int] = []
    number: dict[str, int] = {}
    for graph in graphs:
        known = set(number)
        for b in graph.buffers:
            number.setdefault(b.name, len(number))
        position = tuple(number[b.name] for b in graph.buffers)
        for old in graph.buffers:
            place = old.place and replace(old.place, base=position[old.place.base])
            buffer = replace(old, place=place)
            if buffers.setdefault(buffer.name, buffer) != buffer or (buffer.name in known and not _shared(buffer)):
                raise _collision("buffers", buffer.name)
        first.append(len(operators))
        for op in graph.operators:
            if op.name in operators:
                raise _collision("operators", op.name)
            operators[op.name] = op.renumbered(position)
        positions.append(position)
    return MergedGraph(RGraph(name, tuple(buffers.values()), tuple(operators.values())), tuple(positions), tuple(first))


def with_prefix(graph: RGraph, prefix: str) -> RGraph:
    """The same graph, with `prefix` before the name of each buffer and operator.

    Functions keep their names: operators of several graphs that call one function use the same rKernels.
    """
    return replace(
        graph,
        buffers=tuple(replace(b, name=prefix + b.name) for b in graph.buffers),
        operators=tuple(replace(op, name=prefix + op.name) for op in graph.operators),
    )


def _shared(buffer: Buffer) -> bool:
    return buffer.kind in ("input", "constant")


def _collision(what: str, name: str) -> ScheduleError:
    return ScheduleError(f"two {what} are called {name!r}; make the names of each graph its own by with_prefix")
