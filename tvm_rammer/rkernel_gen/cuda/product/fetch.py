"""How a tile of an operand comes to shared memory: all threads load it to registers, and store it from there.

Loads do not depend on each other, and none is behind a branch, so that all of a step are under way at once. What is
computed of them (padding, an activation) is computed only when they are stored to shared memory, a step later. Where
pixels or filters are past the last one, that is loaded again: nobody stores what becomes of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from tvm import tirx
from tvm.ir import Expr, TensorLoad

from ....ir import ITEM_BYTES
from ...analysis.variables import substituted
from ..threads import number, sequence, unrolled, vector
from .elements import has_calls, is_vector, loads_of, replaced, step_of
from .parts import Axes, Operand, Values
from .steps import Steps
from .warp_matrix import KINDS, ROW_BYTES, rounded

VECTOR = 4
"""Elements of a vector load."""

ZERO = number(0)
"""An index."""

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
    shared : Var
    base, padding : int
        Where it is in shared memory, and the elements between its rows if these are not along K.
    fragments : bool
        Whether matrix instructions read it, to which it is the same which neighbours lie side by side.
    first : Expr
        Where it begins along I or J.
    batch : mapping of Var to Expr
        Where it is along S.
    """

    operand: Operand
    axes: Axes
    packed: tirx.Var | None
    extent: int
    depth: int
    shared: tirx.Var
    base: int
    padding: int
    fragments: bool = False
    first: Expr = ZERO
    batch: Values = field(default_factory=dict)

    @property
    def along_k(self) -> bool:
        """Whether neighbours in memory are neighbours along K."""
        return self.packed is None and not self.operand.spatial_fast

    @property
    def k_fast(self) -> bool:
        """Whether neighbours in shared memory are neighbours along K."""
        return self.fragments and self.along_k

    @property
    def row(self) -> int:
        """Elements from one row in shared memory to the next."""
        return self.depth + ROW_BYTES // ITEM_BYTES[self.operand.dtype] if self.k_fast else self.extent + self.padding

    @property
    def elements(self) -> int:
        """Elements that it takes in shared memory."""
        return self.row * (self.extent if self.k_fast else self.depth)

    def place(self, x: Expr, k: Expr) -> Expr:
        """Where in shared memory an element is, by its place along I or J and along K."""
        return self.base + (x * self.row + k if self.k_fast else k * self.row + x)


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
    def loads(self) -> tuple[TensorLoad, ...]:
        """What is loaded for an element: of packed weights one number, else all that the operand is computed from."""
        return () if self.part.packed is not None else tuple(loads_of(self.part.operand.value))

    @cached_property
    def registers(self) -> tuple[tirx.Var, ...]:
        """What a thread has loaded."""
        dtypes = [str(load.ty.dtype) for load in self.loads] or [self.part.operand.dtype]
        size = self.vectors * self.width
        return tuple(tirx.decl_buffer((size,), dtype, "next", scope="local") for dtype in dtypes)

    def load(self, step: Expr) -> tirx.Stmt:
        """Load a thread's share of a step. Nothing is computed of it, so that nobody waits for it here."""
        width = self.width

        def one(n: Expr, which: int) -> tirx.Stmt:
            def element(e: Expr) -> tirx.Stmt:
                return tirx.BufferStore(self.registers[which], self._loaded(which, step, n, e), [n * width + e])

            return vector(width, element)

        return unrolled(self.vectors, lambda n: sequence([one(n, which) for which in range(len(self.registers))]))

    def stage(self, step: Expr, buffer: Expr) -> tirx.Stmt:
        """Store it to shared memory, to a buffer that begins at an element: along I or J in vectors, from a row of K to
        the next element by element.
        """
        part, width = self.part, self.width
        elements = vector if part.along_k == part.k_fast else unrolled

        def store(n: Expr, value: Callable[[Expr], Expr]) -> tirx.Stmt:
            x, k = self._place(n)

            def element(e: Expr) -> tirx.Stmt:
                at = part.place(x, k + e) if part.along_k else part.place(x + e, k)
                return tirx.BufferStore(part.shared, cast(value(e), part.shared), [buffer + at])

            return elements(width, element)

        def one(n: Expr) -> tirx.Stmt:
            if not (part.fragments and part.operand.dtype == "float32"):
                return store(n, lambda e: self._staged(step, n, e))
            # A call within a store would keep it from being one of a vector.
            near = tirx.decl_buffer((width,), "float32", "near", scope="local")
            numbers = unrolled(width, lambda e: tirx.BufferStore(near, rounded(self._staged(step, n, e)), [e]))
            return sequence([tirx.AllocBuffer(near), numbers, store(n, lambda e: near[e])])

        return unrolled(self.vectors, one)

    def _place(self, n: Expr) -> tuple[Expr, Expr]:
        """Where the first element of a thread's load is in the tile, along I or J and along K."""
        at, extent, width = n * self.threads + self.thread, self.part.extent, self.width
        if not self.part.along_k:
            row = number(extent // width)
            return tirx.floormod(at, row) * width, tirx.floordiv(at, row)
        neighbours = self.part.depth if self.part.k_fast else RUN
        run = number(neighbours // width)
        rest = tirx.floordiv(at, run)
        k = tirx.floordiv(rest, number(extent)) * neighbours + tirx.floormod(at, run) * width
        return tirx.floormod(rest, number(extent)), k

    def _values(self, step: Expr, n: Expr) -> tuple[Values, Expr | None]:
        """The product's axes at a load's first element; and whether there are such channels, None where always."""
        x, k = self._place(n)
        summed, inside = self.steps.at(step, k)
        return {**self.part.batch, **self.part.axes.at(self._within(x)), **summed}, inside

    def _loaded(self, which: int, step: Expr, n: Expr, element: Expr) -> Expr:
        """An element of a load; of a padded image, or past the last channel, the nearest element that there is."""
        part = self.part
        if part.packed is not None:
            x, k = self._place(n)
            return self.steps.packed_element(part.packed, part.batch, step, k, part.first + x + element)
        load, values = self.loads[which], self._values(step, n)[0]
        moves = self.width > 1 and step_of(load, self._vector_axes, self.width)
        indices = []
        for d, (index, extent) in enumerate(zip(load.indices, load.source.shape, strict=True)):
            place = substituted(index, values)
            if self._may_leave(index):
                last = int(extent) - (self.width if moves and d == len(load.indices) - 1 else 1)
                place = tirx.max(tirx.min(place, number(last)), number(0))
            indices.append(place)
        if moves:
            indices[-1] = indices[-1] + element
        return load.source[tuple(indices)] if len(indices) > 1 else load.source[indices[0]]

    def _may_leave(self, index: Expr) -> bool:
        """Whether an index may be outside of its dimension: that of a padded image, or of a channel past the last."""
        if has_calls(self.part.operand.value):
            return True
        product, depth = self.steps.product, self.part.depth
        terms = product.channels.extent * (product.taps.extent if self.steps.fused else 1)
        summed = {*product.channels.variables, *product.taps.variables}
        past = terms % depth != 0 and not self.steps.missing
        return past and bool(summed & set(tirx.analysis.undefined_vars(index)))

    def _staged(self, step: Expr, n: Expr, element: Expr) -> Expr:
        """The operand's value, of what was loaded for it."""
        at = n * self.width + element
        values, inside = self._values(step, n)
        if self.part.packed is not None:
            value, inside = self.registers[0][at], inside if self.steps.fused else None  # else padded with zeros
        else:
            known = {load: registers[at] for load, registers in zip(self.loads, self.registers, strict=True)}
            value = substituted(replaced(self.part.operand.value, known), values)
        return value if inside is None else tirx.if_then_else(inside, value, tirx.const(0, self.part.operand.dtype))

    @property
    def _vector_axes(self) -> Axes:
        return self.steps.product.channels if self.part.along_k else self.part.axes

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
    if part.operand.dtype != "float32" and not (part.fragments and part.operand.dtype in KINDS):
        return False
    if part.packed is not None:
        return True
    axes = steps.product.channels if part.along_k else part.axes
    whole = axes.extent % VECTOR == 0 and not (part.along_k and steps.fused)
    return whole and is_vector(part.operand.value, axes, VECTOR)
