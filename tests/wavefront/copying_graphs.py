"""Graphs in the making, some of whose operators only copy."""

from collections.abc import Mapping, Sequence

from tvm_rammer.ir import Buffer, Move, RGraph, RKernel, ROperator
from tvm_rammer.wavefront import place_views, schedule

from .graphs import DEVICE

SIZE = 256
"""Bytes of a part, if nothing else is said."""


class Made:
    """A graph in the making: operators that compute, and operators that copy."""

    def __init__(self, **inputs: int) -> None:
        self.buffers = {name: Buffer(name, (size,), "int8", "input") for name, size in inputs.items()}
        self.operators: list[ROperator] = []
        self.copies: dict[str, tuple[Move, ...]] = {}

    def op(self, name: str, reads: str, size: int = SIZE, kind: str = "intermediate") -> None:
        """An operator that computes `name` of all that it reads."""
        self._add(name, reads, {name: size}, kind)

    def concat(self, name: str, reads: str, kind: str = "intermediate") -> None:
        """Put buffers one after another."""
        moves, at = [], 0
        for i, part in enumerate(reads.split()):
            moves.append(Move(i, 0, 0, at, self.buffers[part].nbytes))
            at += self.buffers[part].nbytes
        self._add(name, reads, {name: at}, kind, tuple(moves))

    def split(self, names: Mapping[str, int], read: str, kind: str = "intermediate") -> None:
        """Cut a buffer into parts of so many bytes."""
        moves, at = [], 0
        for n, size in enumerate(names.values()):
            moves.append(Move(0, at, n, 0, size))
            at += size
        self._add("_".join(names), read, names, kind, tuple(moves))

    def slice(self, name: str, read: str, start: int, size: int) -> None:
        """Cut out some bytes."""
        self._add(name, read, {name: size}, "intermediate", (Move(0, start, 0, 0, size),))

    def _add(
        self, name: str, reads: str, writes: Mapping[str, int], kind: str, moves: Sequence[Move] | None = None
    ) -> None:
        self.buffers |= {n: Buffer(n, (size,), "int8", kind) for n, size in writes.items()}
        position = {n: i for i, n in enumerate(self.buffers)}
        inputs, outputs = (tuple(position[n] for n in names) for names in (reads.split(), writes))
        self.operators.append(ROperator(name, f"f_{name}", inputs, outputs))
        if moves:
            self.copies[f"f_{name}"] = tuple(moves)

    def graph(self) -> RGraph:
        return RGraph("g", tuple(self.buffers.values()), tuple(self.operators))

    def kernels(self) -> dict[str, list[RKernel]]:
        return {op.function: [RKernel(f"k_{op.name}", op.function, 2, 1.0)] for op in self.operators}

    def placed(self, kept: Sequence[str] = ()) -> RGraph:
        """The graph with views, and planned: so it is proven, too."""
        graph = self.graph()
        schedule(graph, self.kernels(), DEVICE, veus=3, copies=self.copies)
        return place_views(graph, self.copies, kept)


def names(graph: RGraph) -> str:
    return " ".join(op.name for op in graph.operators)


def places(graph: RGraph) -> dict[str, tuple[str, int]]:
    return {b.name: (graph.buffers[b.place.base].name, b.place.offset) for b in graph.buffers if b.place}


def joined(kind: str = "intermediate") -> Made:
    """Two parts, and what they are joined to, which is read if it is no output."""
    made = Made(x=64)
    made.op("a", "x")
    made.op("b", "x")
    made.concat("c", "a b", kind)
    if kind == "intermediate":
        made.op("y", "c", kind="output")
    return made
