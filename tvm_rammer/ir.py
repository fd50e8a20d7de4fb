"""The values that pass from stage to stage: frozen, hashable, and free of TVM.

    RGraph   = Buffers + ROperators in topological order      (relay_passes makes it)
    RKernel  = one way to run an operator's function           (rkernel_gen makes it)
    RProgram = RGraph + one RKernel an operator + lanes        (wavefront makes it)

An rProgram is a list of instructions for each vEU. There are three: `Run`, `Signal` and `Wait`.
The terms are those of Rammer (OSDI 2020), sections 3.1 to 3.4.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

BufferKind = Literal["input", "constant", "intermediate", "output"]

ALIGNMENT = 128
"""Every buffer starts at a multiple of this many bytes: a cache line, and a memory transaction."""

OUTPUT_NAMES = "rammer.output_names"
"""An attribute of a Relax function "main": what its results are called, where the model says that."""

ITEM_BYTES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
              "int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8}  # fmt: skip


def align(nbytes: int, to: int = ALIGNMENT) -> int:
    """Round `nbytes` up to a multiple of `to`."""
    return -(-nbytes // to) * to


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
    kind : {"input", "constant", "intermediate", "output"}
        Who owns the memory. An output may also be read inside the graph.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: BufferKind

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
    """

    name: str
    function: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RGraph:
    """A data-flow graph of rOperators, in topological order.

    Parameters
    ----------
    name : str
        Names the region of the model, and the rPrograms made from it.
    buffers : tuple of Buffer
    operators : tuple of ROperator
    """

    name: str
    buffers: tuple[Buffer, ...]
    operators: tuple[ROperator, ...]

    def producers(self) -> dict[int, int]:
        """Map each written buffer to the operator that writes it."""
        return {b: o for o, op in enumerate(self.operators) for b in op.outputs}

    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each operator, the operators whose output it reads: sorted, without repeats."""
        producer = self.producers()
        return tuple(tuple(sorted({producer[b] for b in op.inputs if b in producer})) for op in self.operators)

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
        inside = sorted(chosen)
        made = {b for o in inside for b in self.operators[o].outputs}
        read_outside = {b for o, op in enumerate(self.operators) if o not in chosen for b in op.inputs}
        used = sorted({b for o in inside for b in (*self.operators[o].inputs, *self.operators[o].outputs)})
        position = {b: i for i, b in enumerate(used)}

        def kind(b: int) -> BufferKind:
            old = self.buffers[b].kind
            if b in made:
                return "output" if b in read_outside or old == "output" else "intermediate"
            return "constant" if old == "constant" else "input"

        return RGraph(
            name,
            tuple(replace(self.buffers[b], kind=kind(b)) for b in used),
            tuple(
                replace(
                    self.operators[o],
                    inputs=tuple(position[b] for b in self.operators[o].inputs),
                    outputs=tuple(position[b] for b in self.operators[o].outputs),
                )
                for o in inside
            ),
        )


@dataclass(frozen=True, slots=True)
class Footprint:
    """Which box of a buffer each rTask of a kernel touches: affine in the digits of the rTask's index.

    The index is written in mixed radix, most significant digit first. In dimension `d` of the buffer the box of an
    rTask with the digits `x` covers, as far as the buffer goes,

        start = offsets[d] + sum(coefficients[d][i] * x[i])    to    start + extents[d]   (exclusive).

    Some rTasks touch what is a box only where neighbouring dimensions are seen as one, as a number of pixels of
    an image is: then `view` says how the buffer is seen.

    Parameters
    ----------
    radices : tuple of int
        Their product is the number of rTasks.
    offsets : tuple of int
    coefficients : tuple of tuple of int
        For each dimension one for each digit.
    extents : tuple of int
    view : tuple of int
        A shape of the buffer's size whose dimensions the boxes have; empty for the buffer's own.
    """

    radices: tuple[int, ...]
    offsets: tuple[int, ...]
    coefficients: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]
    view: tuple[int, ...] = ()

    def box(self, rtask: int) -> tuple[tuple[int, int], ...]:
        """For each dimension the first index that an rTask touches and the one past the last, not clipped."""
        digits = []
        for radix in reversed(self.radices):
            rtask, digit = divmod(rtask, radix)
            digits.append(digit)
        digits.reverse()
        starts = (
            offset + sum(c * x for c, x in zip(row, digits, strict=True))
            for offset, row in zip(self.offsets, self.coefficients, strict=True)
        )
        return tuple((start, start + extent) for start, extent in zip(starts, self.extents, strict=True))


@dataclass(frozen=True, slots=True)
class RKernel:
    """One implementation of an operator's function: a tiling (Rammer, 3.3).

    Parameters
    ----------
    name : str
        Unique; also the name of the rTask's device function.
    function : str
        The function that it implements (`ROperator.function`).
    num_rtasks : int
        How many independent rTasks the tiling has.
    rtask_us : float
        Time of one rTask alone on a vEU, in microseconds.
    threads : int
        Threads of one rTask (1 on a CPU).
    shared_bytes : int
        Scratch of one rTask: shared memory on a GPU, private memory of a worker on a CPU.
    registers : int or None
        Registers of one thread; None before it is compiled.
    measured : bool
        Whether `rtask_us` was measured; otherwise the cost model predicts it.
    footprints : tuple of (Footprint or None)
        What an rTask touches of each buffer, in the order of the function's parameters; None for all of it.
        Empty where nothing is known.
    bytes_per_rtask : float
        Bytes that one rTask moves from or to beyond its unit; 0 where they are not known.
    """

    name: str
    function: str
    num_rtasks: int
    rtask_us: float
    threads: int = 1
    shared_bytes: int = 0
    registers: int | None = None
    measured: bool = False
    footprints: tuple[Footprint | None, ...] = field(default=(), compare=False, repr=False)
    bytes_per_rtask: float = 0.0

    @property
    def work_us(self) -> float:
        """Time x number of rTasks: what the resource-efficient choice keeps small (Rammer, 4)."""
        return self.rtask_us * self.num_rtasks


@dataclass(frozen=True, slots=True)
class Run:
    """Run rTasks `start, start + step, ...` (`count` of them) of an operator, one after another.

    An rTask is the smallest unit of scheduling: one tile of an operator, known by its index (Rammer, 3.1).
    """

    operator: int
    start: int
    count: int
    step: int = 1

    def indices(self) -> range:
        """The indices of its rTasks, in order."""
        return range(self.start, self.start + self.count * self.step, self.step)


@dataclass(frozen=True, slots=True)
class Signal:
    """Add one to the counter of `event`, and release: what this vEU wrote before is visible after a wait for it."""

    event: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until the counter of `event` has reached `arrivals` in this run, and acquire."""

    event: int
    arrivals: int


Instruction = Run | Signal | Wait
Lane = tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class RProgram:
    """The static plan of a graph: what each vEU does, in order (Rammer, 3.4).

    Parameters
    ----------
    name : str
        Also the name of the generated function.
    graph : RGraph
    kernels : tuple of RKernel
        The kernel chosen for each operator of the graph.
    lanes : tuple of tuple of Instruction
        One a vEU.
    num_events : int
        Events are numbered from 0; each has a counter that starts at 0 in every run.
    offsets : dict of int to int
        Byte offset in the workspace of each intermediate buffer (`RGraph.buffers` position). Buffers
        that overlap there must not be alive at the same time: the verifier proves it.
    workspace_bytes : int
        Size of the workspace that holds them.
    makespan_us : float
        Predicted time of the program, in microseconds, its launch included.
    barriers : int
        So many events, the last ones, are barriers: each lane that takes part signals and at once waits for all
        of them. Only their cost differs from that of other events.
    """

    name: str
    graph: RGraph
    kernels: tuple[RKernel, ...]
    lanes: tuple[Lane, ...]
    num_events: int
    offsets: dict[int, int]
    workspace_bytes: int
    makespan_us: float = 0.0
    barriers: int = 0

    def instructions(self) -> Iterator[tuple[int, int, Instruction]]:
        """Yield each instruction as (lane, position in it, instruction), lane after lane."""
        for v, lane in enumerate(self.lanes):
            for n, instruction in enumerate(lane):
                yield v, n, instruction

    def waits(self) -> int:
        """Number of `Wait` instructions over all vEUs."""
        return sum(isinstance(instruction, Wait) for _, _, instruction in self.instructions())

    def is_barrier(self, event: int) -> bool:
        """Whether an event is one of the barriers."""
        return event >= self.num_events - self.barriers
