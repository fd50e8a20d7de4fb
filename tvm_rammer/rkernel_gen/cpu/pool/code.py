"""The code of a pool on a CPU: the rows of a window are combined first, then its columns.

So a window of k x k elements takes 2 k steps in place of k * k. The rows of a window are combined as vectors of the
image, to a line that stays in the first-level cache. It has the padding at its ends; at stride 2 its even and its odd
elements lie apart, at longer strides likewise, so that each column of a row of windows is a vector of the line, too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr

from ....ir import ITEM_BYTES
from ...analysis.work import shape_of
from ..loops import ending, loop, number, sequence, vectors
from ..window.fill import pixel_of
from ..window.problem import Window
from ..window.split import rtask_loop

LINES_BYTES = 8 << 10
"""Lines that are computed before their columns are combined: a vector that lies in two others which have only just
been stored must wait for the first-level cache."""


@dataclass(frozen=True, slots=True)
class PoolTile:
    """How a pool is split.

    Parameters
    ----------
    simd : int
        Elements of a vector.
    group_parts, row_parts : int
        Numbers of rTasks that channels and rows are split into.
    """

    simd: int
    group_parts: int
    row_parts: int

    @property
    def filter_parts(self) -> int:
        """A channel of a pool has one result."""
        return 1


def pool_code(func: tirx.PrimFunc, window: Window, tile: PoolTile) -> tirx.PrimFunc:
    """Generate the function of a tiling; its outermost loop is parallel."""
    body = _Writer(window, tile).rtasks()
    return tirx.PrimFunc(func.params, body).with_attr("tirx.noalias", True).with_attr("s_tir", True)


def rows_of(window: Window, tile: PoolTile) -> int:
    """Rows of results that an rTask computes for each of its channels."""
    return -(-window.rows // tile.row_parts)


def rows_of_image(window: Window) -> int:
    """Rows of the image; 1 for one that is a row."""
    return shape_of(window.data)[2] if window.rank == 2 else 1


def last_row_read(window: Window) -> int:
    """The last row of the padded image that a window reads, counted from the image's first."""
    return (window.rows - 1) * window.stride[0] + window.kernel[0] - 1 - window.padding[0]


def columns_read(window: Window) -> int:
    """Columns of the image that a row of windows reads."""
    last = (window.columns - 1) * window.stride[1] + window.kernel[1] - 1 - window.padding[1]
    return min(shape_of(window.data)[-1], last + 1)


def vector_size(extent: int, simd: int) -> int:
    """Elements of the vectors that a row is split into."""
    return min(simd, 1 << extent.bit_length() - 1)


def steps(extent: int, simd: int) -> int:
    """Vectors that a row is split into."""
    return -(-extent // vector_size(extent, simd))


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of results of a channel of an image, and its place among the lines in scratch."""

    lines: tirx.Buffer
    n: Expr
    c: Expr
    first: Expr
    place: Expr

    @property
    def y(self) -> Expr:
        """Which row it is."""
        return self.first + self.place


@dataclass(frozen=True, slots=True)
class _Writer:
    """Generates the loops of one tiling."""

    window: Window
    tile: PoolTile

    def rtasks(self) -> tirx.Stmt:
        """The parallel loop over rTasks."""
        window, rows = self.window, rows_of(self.window, self.tile)
        width = window.columns + (window.kernel[1] - 1) // window.stride[1]
        together = min(rows, max(1, LINES_BYTES // (window.stride[1] * width * ITEM_BYTES["float32"])))
        lines = tirx.decl_buffer((together, window.stride[1], width), "float32", "lines", scope="local")

        def channel(n: Expr, c: Expr, _: Expr, row_part: Expr) -> tirx.Stmt:
            band = ending(row_part, rows, window.rows)

            def some(i: Expr) -> tirx.Stmt:
                first = band + ending(i, together, rows)
                combined = loop(together, lambda y: sequence(self.line(_Line(lines, n, c, first, y))))
                return sequence([combined, loop(together, lambda y: self.row(_Line(lines, n, c, first, y)))])

            return sequence([*self.pad(lines), loop(-(-rows // together), some)])

        return rtask_loop(window, self.tile, 1, [lines], channel)

    def pad(self, lines: tirx.Buffer) -> Iterator[tirx.Stmt]:
        """Write the padding at the ends of lines, which is the same for all rows."""
        together, _, width = (int(extent) for extent in lines.shape)
        left, stride, fill = self.window.padding[1], self.window.stride[1], self.fill(1)
        if not self.window.maximum:
            fill = fill * self.window.kernel[0]

        def clear(phase: int, start: int, end: int) -> Iterator[tirx.Stmt]:
            def one(y: Expr) -> list[tirx.Stmt]:
                return vectors(
                    end - start, self.tile.simd, lambda x: tirx.BufferStore(lines, fill, [y, number(phase), start + x])
                )

            if start < end:
                yield loop(together, lambda y: sequence(one(y)))

        for phase in range(stride):
            yield from clear(phase, 0, -(-(left - phase) // stride))
            yield from clear(phase, -(-(left + columns_read(self.window) - phase) // stride), width)

    def line(self, line: _Line) -> list[tirx.Stmt]:
        """Combine the rows of the windows of a row of results."""
        extent, left = columns_read(self.window), self.window.padding[1]

        def store(phase: int, x: Expr, value: Expr, size: int) -> tirx.Stmt:
            return tirx.BufferStore(line.lines, value, [line.place, number(phase), _vector(x, size)])

        stride = self.window.stride[1]
        if stride == 1:
            return self.along(extent, lambda x, size: store(0, x + left, self.rows(line, x, size), size))

        def some(at: Expr, size: int) -> tirx.Stmt:
            """As many vectors of elements as the stride is long, put apart: each phase is one vector."""
            parts = [tirx.Var("part", f"float32x{size}" if size > 1 else "float32") for _ in range(stride)]
            values = [self.rows(line, at * stride + i * size, size) for i in range(stride)]
            apart = [_every(stride, parts, i, size) if size > 1 else parts[i] for i in range(stride)]
            stores = [store((left + i) % stride, at + (left + i) // stride, apart[i], size) for i in range(stride)]
            return sequence([*(tirx.Bind(*pair) for pair in zip(parts, values, strict=True)), *stores])

        statements = self.along(extent // stride, some) if extent >= stride else []
        for last in range(extent // stride * stride, extent):
            value, place = self.rows(line, number(last), 1), left + last
            statements.append(store(place % stride, number(place // stride), value, 1))
        return statements

    def row(self, line: _Line) -> tirx.Stmt:
        """Combine the columns of the windows, and store a row of results."""
        window = self.window

        def one(x: Expr) -> tirx.Stmt:
            value: Expr = tirx.FloatImm("float32", window.initial)
            for column in range(window.kernel[1]):
                at, phase = divmod(column, window.stride[1])
                value = self.combine(value, line.lines[line.place, phase, x + at])
            return window.store((line.n, line.c, line.y, x), value)

        def some(start: Expr, size: int) -> tirx.Stmt:
            return loop(size, lambda e: one(start + e), "VECTORIZED")

        return sequence(self.along(window.columns, some))

    def rows(self, line: _Line, x: Expr, size: int) -> Expr:
        """Elements of a line: the combined rows of the image from x on."""
        (kernel, _), (stride, _), (top, _) = self.window.kernel, self.window.stride, self.window.padding
        value = self.elements(line, line.y * stride - top, x, size)
        for row in range(1, kernel):
            value = self.combine(value, self.elements(line, line.y * stride + (row - top), x, size))
        return value

    def elements(self, line: _Line, y: Expr, x: Expr, size: int) -> Expr:
        """Elements of a row of the padded image."""
        window, height = self.window, rows_of_image(self.window)
        (kernel, _), (top, _), beyond = window.kernel, window.padding, last_row_read(window) - height + 1
        if top <= 0 and beyond <= 0:
            return pixel_of(window, line.n, line.c, y, _vector(x, size))
        nearest = pixel_of(
            window, line.n, line.c, tirx.max(number(0), tirx.min(y, number(height - 1))), _vector(x, size)
        )
        if window.maximum and window.fill <= window.initial and max(top, beyond) < kernel:
            # No window is padding alone, so the nearest row of the image is part of it, and may be so twice.
            return nearest
        return tirx.Select(tirx.all(y >= 0, y < height), nearest, self.fill(size))

    def fill(self, size: int) -> Expr:
        """What is around the image."""
        value = tirx.FloatImm("float32", self.window.fill)
        return value if size == 1 else tirx.Broadcast(value, size)

    def combine(self, a: Expr, b: Expr) -> Expr:
        """The maximum or the sum."""
        return tirx.max(a, b) if self.window.maximum else a + b

    def along(self, extent: int, body: Callable[[Expr, int], tirx.Stmt]) -> list[tirx.Stmt]:
        """Do `body(start, elements)` for all elements of a row: in vectors, of which the last one ends with the row."""
        size = vector_size(extent, self.tile.simd)
        return [loop(steps(extent, self.tile.simd), lambda i: body(ending(i, size, extent), size))]


def _vector(start: Expr, size: int) -> Expr:
    return start if size == 1 else tirx.Ramp(start, number(1), size)


def _every(stride: int, parts: list[tirx.Var], first: int, size: int) -> Expr:
    """Every second one of the elements of two vectors, or every third one of three, and so on."""
    return tirx.Shuffle(parts, [tirx.IntImm("int32", i) for i in range(first, stride * size, stride)])
