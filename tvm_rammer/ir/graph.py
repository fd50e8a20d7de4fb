"""RGraphs: operators, and the buffers between them."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

BufferKind = Literal["input", "constant", "intermediate", "output", "view"]

ALIGNMENT = 128
"""Every buffer but views starts at a multiple of this many bytes: a cache line, and a memory transaction."""

VIEW_ALIGNMENT = 64
"""Every view starts at a multiple of this many bytes: a CPU's cache line, which two writers then never share, and more
than any vector or fragment that a kernel loads at once."""

OUTPUT_NAMES = "rammer.output_names"
"""An attribute of a Relax function "main": what its results are called, where the model says that."""

INTO = "main_into"
"""The function of a compiled model that takes its inputs, and then a tensor for each result that has a 1 in
`DESTINATIONS`: it writes them there. It returns what "main" does."""

DESTINATIONS = "main_destinations"
"""The function of a compiled model that returns, as a shape, 1 for each result that can be written where the caller
wants it, and 0 for the others."""

MOST_ELEMENTS = 2**31
"""Of one tensor, less than so many: indices are int32."""

ITEM_BYTES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
              "int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8}  # fmt: skip


def align(nbytes: int, to: int = ALIGNMENT) -> int:
    """Round `nbytes` up to a multiple of `to`."""
    return -(-nbytes // to) * to


@dataclass(frozen=True, slots=True)
class Place:
    """Where a view lies: so many bytes into another buffer, which is no view.

    In a graph of several steps a view may move: the buffer is then made of slots, and each step has the next one.

    Parameters
    ----------
    base : int
        Position in `RGraph.buffers`.
    offset : int
        Of slot 0.
    stride : int
        Bytes from a slot to the next one; 0 for a view that stays where it is.
    ahead : int
        The slot of step 0. Step k has slot k + ahead.
    phases : int
        So many slots are used in turn; 0 where each step has its own.
    from_end : bool
        Whether slots are counted from the last step of a run. A run of n steps, of the `RGraph.steps` that there may
        be, begins so many slots later then: its last step has the slot that it has in the longest run.
    """

    base: int
    offset: int
    stride: int = 0
    ahead: int = 0
    phases: int = 0
    from_end: bool = False

    def at(self, step: int, missing: int = 0) -> int:
        """The first byte in a step; `missing` is how many steps the run has less than the longest one."""
        slot = step + self.ahead + (missing if self.from_end else 0)
        return self.offset + (slot % self.phases if self.phases else slot) * self.stride


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of a buffer with memory of its own: from `start` to `end` (exclusive)."""

    base: int
    start: int
    end: int

    def overlaps(self, other: "Extent") -> bool:
        """Whether they share a byte."""
        return self.base == other.base and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor that operators read or write.

    Parameters
    ----------
    name : str
        Unique in its graph.
    shape : tuple of int
        Static extents; empty for a scalar.
    dtype : str
        A key of `ITEM_BYTES`.
    kind : {"input", "constant", "intermediate", "output", "view"}
        Who owns the memory; a view is a part of another buffer, or all of it in another shape. An output may also be
        read inside the graph.
    place : Place or None
        Of a view; None for all others.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: BufferKind
    place: Place | None = None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class ROperator:
    """One call of a fused function: a set of independent, equal rTasks (Rammer, 3.1).

    Parameters
    ----------
    name : str
        Unique in its graph.
    function : str
        The function it calls. Operators that compute the same thing share one.
    inputs, outputs : tuple of int
        Positions in `RGraph.buffers`, in the order of the function's parameters.
    first : tuple of int
        What it reads in step 0 in the place of `inputs`; empty where it reads the same in all steps.
    """

    name: str
    function: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    first: tuple[int, ...] = ()

    def touched(self) -> frozenset[int]:
        """All buffers that it reads or writes in some step."""
        return frozenset((*self.inputs, *self.outputs, *self.first))

    def renumbered(self, position: Mapping[int, int] | Sequence[int]) -> "ROperator":
        """The same call in a graph whose buffers have other positions."""
        return replace(
            self,
            inputs=tuple(position[b] for b in self.inputs),
            outputs=tuple(position[b] for b in self.outputs),
            first=tuple(position[b] for b in self.first),
        )


@dataclass(frozen=True, slots=True)
class Move:
    """What a function copies in one piece: bytes of an input, as they are, to bytes of an output.

    Parameters
    ----------
    source, target : int
        Which input, and which output, of the function.
    source_start, target_start : int
        The first byte there.
    nbytes : int
    """

    source: int
    source_start: int
    target: int
    target_start: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class TripCount:
    """Where a graph of several steps finds how many steps a run has: a number that is an input of it.

    Parameters
    ----------
    buffer : int
        Position in `RGraph.buffers` of an input, one number of int32.
    rows : int
        How many of what the number counts are done in a step; the last step may be beyond it in part.
    """

    buffer: int
    rows: int = 1

    def steps(self, number: int) -> int:
        """How many steps a run has."""
        return -(-number // self.rows)


Copies = Mapping[str, tuple[Move, ...]]
"""For each function that is proven to do nothing but copy, its moves: together they write each output once."""


@dataclass(frozen=True, slots=True)
class RGraph:
    """A data-flow graph of rOperators, in topological order.

    Its meaning is that of calling all operators one after another, once for each step. So what an operator reads was
    written by an earlier operator of the same step, or by any operator in an earlier step.

    Parameters
    ----------
    name : str
        Names the region of the model, and the rPrograms made from it.
    buffers : tuple of Buffer
    operators : tuple of ROperator
    steps : int
        How often; more than once for the body of a loop.
    trip_count : TripCount or None
        Where it is known only at run time how often: from once to `steps` times.
    condition : int or None
        Where each step decides whether there is another one, up to `steps`: a buffer of one truth value, which has a
        slot for each step.
    """

    name: str
    buffers: tuple[Buffer, ...]
    operators: tuple[ROperator, ...]
    steps: int = 1
    trip_count: TripCount | None = None
    condition: int | None = None

    def extent(self, buffer: int, step: int = 0, missing: int = 0) -> Extent:
        """The bytes of a buffer in a step, in the buffer that owns the memory.

        They lie before its first byte where the step has no slot yet. `missing` is how many steps the run has less than
        `steps`.
        """
        place, nbytes = self.buffers[buffer].place, self.buffers[buffer].nbytes
        if place is None:
            return Extent(buffer, 0, nbytes)
        start = place.at(step, missing)
        return Extent(place.base, start, start + nbytes)

    def deciders(self) -> list[int]:
        """The operators that write the condition, under any name of its bytes; a valid graph has one."""
        if self.condition is None:
            return []
        slot = self.extent(self.condition)
        return [o for o, op in enumerate(self.operators) if any(self.extent(b) == slot for b in op.outputs)]

    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each operator, those that write a byte of what it reads in the same step: sorted, without repeats."""
        writers: dict[int, list[tuple[int, int, int]]] = {}
        for o, op in enumerate(self.operators):
            for e in map(self.extent, op.outputs):
                writers.setdefault(e.base, []).append((e.start, e.end, o))
        for written in writers.values():
            written.sort()

        def before(op: ROperator) -> Iterator[int]:
            for e in map(self.extent, op.inputs):
                written = writers.get(e.base, [])
                for start, end, o in written[max(0, bisect_right(written, (e.start,)) - 1) :]:
                    if start >= e.end:
                        break
                    if end > e.start:
                        yield o

        return tuple(tuple(sorted(set(before(op)))) for op in self.operators)

    def subgraph(self, operators: Iterable[int], name: str) -> "RGraph":
        """Cut out some operators; what crosses the cut becomes an input or an output.

        Parameters
        ----------
        operators : iterable of int
            Positions in `operators`.
        name : str
            Name of the new graph.

        Returns
        -------
        RGraph
            Its operators in the same order; its buffers are those that they touch.
        """
        chosen = set(operators)
        inside = [self.operators[o] for o in sorted(chosen)]
        made = {self.extent(b).base for op in inside for b in op.outputs}
        outside = (op for o, op in enumerate(self.operators) if o not in chosen)
        read_outside = {self.extent(b).base for op in outside for b in (*op.inputs, *op.first)}
        touched = {b for op in inside for b in op.touched()}
        if self.trip_count is not None:
            touched.add(self.trip_count.buffer)
        if self.condition is not None:
            touched.add(self.condition)
        used = sorted(touched | {self.extent(b).base for b in touched})
        position = {b: i for i, b in enumerate(used)}

        def cut(b: int) -> Buffer:
            old = self.buffers[b]
            if old.place is not None:
                return replace(old, place=replace(old.place, base=position[old.place.base]))
            if b in made:
                return replace(old, kind="output" if b in read_outside or old.kind == "output" else "intermediate")
            return replace(old, kind="constant" if old.kind == "constant" else "input")

        count = self.trip_count and replace(self.trip_count, buffer=position[self.trip_count.buffer])
        condition = None if self.condition is None else position[self.condition]
        renumbered = tuple(op.renumbered(position) for op in inside)
        return RGraph(name, tuple(map(cut, used)), renumbered, self.steps, count, condition)
