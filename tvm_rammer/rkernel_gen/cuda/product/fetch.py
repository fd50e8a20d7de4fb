"""How a tile of an operand comes to shared memory: all threads load it to registers, and store it from there.

Loads do not depend on each other, and none is behind a branch, so that all of a step are under way at once. Where pixels
or filters are past the last one, that is loaded again: nobody stores what becomes of it. Where channels are, zero.
"""

from dataclasses import dataclass
from functools import cached_property

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad

from ..threads import number, unrolled, vector
from .parts import Axes, Operand, Values, substituted
from .steps import Steps

VECTOR = 4
"""Elements of a vector load."""

RUN = 8
"""Neighbours along K that consecutive threads load, where these are contiguous: a memory transaction of 32 bytes."""


@dataclass(frozen=True, slots=True)
class Part:
    """A tile of an operand in shared memory: rows of K, of `extent` elements along I or J.

    Parameters
    ----------
    operand : Operand
    axes : Axes
        I or J.
    packed : Var or None
        The packed weights that are read in the place of the operand, with rows of K.
    extent, depth : int
        Of the tile along I or J, and along K.
    first : Expr
        Where it begins along I or J.
    batch : mapping of Var to Expr
        Where it is along S.
    shared : Var
    base, row : int
        Where it is in shared memory, and from one row to the next.
    """

    operand: Operand
    axes: Axes
    packed: tirx.Var | None
    extent: int
    depth: int
    first: Expr
    batch: Values
    shared: tirx.Var
    base: int
    row: int

    @property
    def along_k(self) -> bool:
        """Whether neighbours in memory are neighbours along K."""
        return self.packed is None and not self.operand.spatial_fast


@dataclass(frozen=True)
class Fetch:
    """A thread's share of the copy.

    Parameters
    ----------
    part : Part
    steps : Steps
    threads : int
    thread : Expr
    width : int
        Elements of a load.
    """

    part: Part
    steps: Steps
    threads: int
    thread: Expr
    width: int

    @property
    def vectors(self) -> int:
        """Loads of a thread."""
        return self.part.extent * self.part.depth // self.width // self.threads

    @cached_property
    def registers(self) -> tirx.Var:
        """What a thread has loaded."""
        return tirx.decl_buffer((self.vectors * self.width,), self.part.operand.dtype, "next", scope="local")

    def load(self, step: Expr) -> tirx.Stmt:
        """Load a thread's share of a step."""
        width, registers = self.width, self.registers

        def one(n: Expr) -> tirx.Stmt:
            return vector(width, lambda e: tirx.BufferStore(registers, self._value(step, n, e), [n * width + e]))

        return unrolled(self.vectors, one)

    def stage(self) -> tirx.Stmt:
        """Store it to shared memory: along I or J in vectors, from a row of K to the next element by element."""
        part, width = self.part, self.width

        def one(n: Expr, e: Expr) -> tirx.Stmt:
            x, k = self._place(n)
            at = (k + e) * part.row + x if part.along_k else k * part.row + x + e
            return tirx.BufferStore(part.shared, cast(self.registers[n * width + e], part.shared), [part.base + at])

        elements = unrolled if part.along_k else vector
        return unrolled(self.vectors, lambda n: elements(width, lambda e: one(n, e)))

    def _place(self, n: Expr) -> tuple[Expr, Expr]:
        """Where the first element of a thread's load is in the tile, along I or J and along K."""
        at, extent, width = n * self.threads + self.thread, self.part.extent, self.width
        if not self.part.along_k:
            row = number(extent // width)
            return tirx.floormod(at, row) * width, tirx.floordiv(at, row)
        run = number(RUN // width)
        rest = tirx.floordiv(at, run)
        k = tirx.floordiv(rest, number(extent)) * RUN + tirx.floormod(at, run) * width
        return tirx.floormod(rest, number(extent)), k

    def _value(self, step: Expr, n: Expr, element: Expr) -> Expr:
        part = self.part
        x, k = self._place(n)
        if part.packed is not None:
            return self.steps.packed_element(part.packed, step, k, part.first + x + element)
        summed, inside = self.steps.at(step, k)
        values = {**part.batch, **part.axes.at(self._within(x)), **summed}
        if self.width > 1:
            value = _loaded(part.operand.value, values, _vector_axes(part, self.steps), element)
        else:
            value = substituted(part.operand.value, values)
        return value if inside is None else tirx.if_then_else(inside, value, tirx.const(0, part.operand.dtype))

    def _within(self, x: Expr) -> Expr:
        """The place of a pixel or filter; past the last one, that of the last, or of the last whole vector."""
        part, extent = self.part, self.part.axes.extent
        if extent % part.extent == 0:
            return part.first + x
        return tirx.min(part.first + x, number(extent - (1 if part.along_k else self.width)))


def fetch_of(part: Part, steps: Steps, threads: int, thread: Expr) -> Fetch:
    """The copy of a tile by all threads: in vectors where it can be.

    Raises
    ------
    ValueError
        The threads do not divide the tile.
    """
    elements = part.extent * part.depth
    if elements % threads:
        raise ValueError(f"{threads} threads cannot share a tile of {elements} elements")
    wide = elements % (VECTOR * threads) == 0 and _is_contiguous(part, steps)
    return Fetch(part, steps, threads, thread, VECTOR if wide else 1)


def cast(value: Expr, buffer: tirx.Var) -> Expr:
    """A value as an element of a buffer."""
    dtype = str(buffer.dtype)
    return value if str(value.ty.dtype) == dtype else value.astype(dtype)


def _is_contiguous(part: Part, steps: Steps) -> bool:
    """Whether the elements of each vector are neighbours in memory, and the first is aligned."""
    if part.operand.dtype != "float32":
        return False
    if part.packed is not None:
        return True
    axes = _vector_axes(part, steps)
    whole = axes.extent % VECTOR == 0 and not (part.along_k and steps.fused)
    return whole and _moves_by_one(part.operand.value, axes)


def _vector_axes(part: Part, steps: Steps) -> Axes:
    return steps.product.channels if part.along_k else part.axes


def _moves_by_one(value: Expr, axes: Axes) -> bool:
    """Whether all loads of an expression move by one element, or not at all, along each aligned vector of some axes."""
    loads: list[TensorLoad] = []
    calls: list[Call] = []
    tvm_ffi.structural_walk(value, [(TensorLoad, loads.append), (Call, calls.append)], order="pre")
    rest = tvm_ffi.structural_map(value, (TensorLoad, lambda n: tirx.const(0, str(n.ty.dtype))), order="post")
    varies = set(tirx.analysis.undefined_vars(rest)) & set(axes.variables)
    return not calls and not varies and all(_step_of(load, axes) is not None for load in loads)


def _step_of(load: TensorLoad, axes: Axes) -> int | None:
    """By how many elements a load moves along each aligned vector: 0 or 1; None where it is something else."""
    analyzer = tvm.sym.Analyzer()
    block, element = tirx.Var("block", "int64"), tirx.Var("element", "int64")
    analyzer.bind(block, tvm.ir.Range(0, axes.extent // VECTOR))
    analyzer.bind(element, tvm.ir.Range(0, VECTOR))

    def flat(at: Expr) -> Expr:
        place: Expr = number(0)
        for index, size in zip(load.indices, load.source.shape, strict=True):
            place = place * size + substituted(index, axes.at(at))
        return place

    first = flat(block * VECTOR)
    change = analyzer.simplify(flat(block * VECTOR + element) - first)
    if analyzer.can_prove_equal(change, 0):
        return 0
    aligned = analyzer.can_prove_equal(tirx.floormod(first, number(VECTOR)), 0)
    return 1 if aligned and analyzer.can_prove_equal(change, element) else None


def _loaded(value: Expr, values: Values, axes: Axes, element: Expr) -> Expr:
    """An operand's value at an element of a vector along some axes, which begins at the values of the axes."""

    def load(node: TensorLoad) -> Expr:
        *outer, last = [substituted(index, values) for index in node.indices]
        return node.source[(*outer, last + element if _step_of(node, axes) else last)]

    return tvm_ffi.structural_map(value, (TensorLoad, load), order="post")
