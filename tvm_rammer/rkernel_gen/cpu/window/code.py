"""The code of a sliding window on a CPU: pixels in vectors, filters in registers.

The image's rows lie one behind the other in a scratch array, padded, and for a stride s cut into s x s phases:
then every tap of the window reads contiguous pixels, whatever the width of a row. The results of the few
pixels between two rows are computed too and never stored. A 1x1 window needs no scratch at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr

from ..loops import loop, number, sequence, vectors
from .form import Window
from .layout import Layout, Tile, pack_of

MOST_UNROLLED = 500
"""Multiply-adds of vectors that may be written out one after the other."""


def window_code(func: tirx.PrimFunc, window: Window, tile: Tile, writer: "type[Writer] | None" = None) -> tirx.PrimFunc:
    """Write the function of a tiling; its outermost loop is parallel."""
    layout = Layout.of(window, tile)
    weight = None
    if window.weight is not None:
        weight = tirx.decl_buffer(pack_of(window, tile, layout).shape, "float32", window.weight.name)
    body = (writer or Writer)(window, tile, layout, weight).rtasks()
    params = [weight if weight is not None and p.same_as(window.weight) else p for p in func.params]
    return tirx.PrimFunc(params, body).with_attr("tirx.noalias", True).with_attr("s_tir", True)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the loops of one tiling."""

    window: Window
    tile: Tile
    layout: Layout
    weight: tirx.Buffer | None

    def rtasks(self) -> tirx.Stmt:
        """The parallel loop."""
        window, tile, layout = self.window, self.tile, self.layout
        acc = tirx.decl_buffer((tile.filters, tile.vectors, tile.lanes), "float32", "acc", scope="local")
        image = tirx.decl_buffer((layout.scratch(window, tile),), "float32", "image", scope="local")
        across = window.phases.stride[1] if window.phases else 1
        pixels = layout.steps * tile.pixels
        result = tirx.decl_buffer((across, tile.filters, pixels), "float32", "result", scope="local")
        arrays = [acc] if window.flat else [acc, image, result]

        def rtask(t: Expr) -> tirx.Stmt:
            row_part, t = t % tile.row_parts, t // tile.row_parts
            filter_part, t = t % tile.filter_parts, t // tile.filter_parts
            group_part, n = t % tile.group_parts, t // tile.group_parts
            groups, blocks = window.groups // tile.group_parts, layout.blocks // tile.filter_parts

            def group(i: Expr) -> tirx.Stmt:
                g = group_part * groups + i
                if window.flat:
                    return self.flat_tiles(acc, n, g, filter_part * blocks, row_part)
                fill = self.fill(image, n, g, row_part * layout.rows)
                work = loop(blocks, lambda b: self.block(acc, image, result, n, g, filter_part * blocks + b, row_part))
                return sequence([fill, work])

            return tirx.SeqStmt([*(tirx.AllocBuffer(a) for a in arrays), loop(groups, group)])

        count = window.batch * tile.group_parts * tile.filter_parts * tile.row_parts
        return loop(count, rtask, "PARALLEL")

    def fill(self, image: tirx.Buffer, n: Expr, g: Expr, first_row: Expr) -> tirx.Stmt:
        """Copy the rows of a group that an rTask needs, in phases."""
        window, layout, lanes = self.window, self.layout, self.tile.lanes
        shape = [int(s) for s in window.data.shape]
        height, width = shape[2] if window.rank == 2 else 1, shape[-1]
        (sy, sx), (top, left), (py_count, px_count) = window.stride, window.padding, layout.phases
        blank = tirx.FloatImm("float32", window.fill)

        def row(c: Expr, py: int, px: int, h: Expr) -> tirx.Stmt:
            y = (first_row + h) * sy + (py - top)
            at = ((c * py_count + py) * px_count + px) * layout.phase + h * layout.width
            low = min(layout.width, max(0, -(-(left - px) // sx)))
            high = max(low, min(layout.width, (width - 1 + left - px) // sx + 1))

            def copy(w: Expr) -> tirx.Stmt:
                value = self.pixel_of(n, g * window.channels + c, y, (w + low) * sx + (px - left))
                return tirx.BufferStore(image, value, [at + low + w])

            def clear(start: int, end: int) -> list[tirx.Stmt]:
                return vectors(end - start, lanes, lambda w: tirx.BufferStore(image, blank, [at + start + w]))

            copied = vectors(high - low, lanes, copy) if sx == 1 else [loop(high - low, copy)]
            if high == low:
                copied = []
            inside = sequence([*clear(0, low), *copied, *clear(high, layout.width)])
            return tirx.IfThenElse(tirx.all(y >= 0, y < height), inside, sequence(clear(0, layout.width)))

        def channel(c: Expr) -> tirx.Stmt:
            phases = [(py, px) for py in range(py_count) for px in range(px_count)]
            return sequence([loop(layout.height, lambda h, p=p: row(c, *p, h)) for p in phases])

        return loop(window.channels, channel)

    def flat_tiles(self, acc: tirx.Buffer, n: Expr, g: Expr, first_block: Expr, row_part: Expr) -> tirx.Stmt:
        """All pixels of an rTask, for all its blocks of filters, where the image is read as it lies."""
        window, tile, layout = self.window, self.tile, self.layout
        total, blocks = window.rows * window.columns, layout.blocks // tile.filter_parts

        def one(b: Expr, i: Expr) -> tirx.Stmt:
            start = (row_part * layout.steps + i) * tile.pixels
            q = tirx.min(start, number(total - tile.pixels))
            first = g * window.filters + b * tile.filters
            pixels = self.reduce(
                acc,
                lambda c, ry, rx, p: self.pixel_of(n, g * window.channels + c, number(0), q + p),
                g * layout.blocks + b,
            )
            done = sequence([*pixels, self.store_flat(acc, n, first, q)])
            return tirx.IfThenElse(start < total, done, None)

        # The pixels of a tile stay in the first-level cache while all filters pass over them: a filter's weights
        # are fewer than the pixels.
        return loop(layout.steps, lambda i: loop(blocks, lambda b: one(first_block + b, i)))

    def block(
        self, acc: tirx.Buffer, image: tirx.Buffer, result: tirx.Buffer, n: Expr, g: Expr, b: Expr, row_part: Expr
    ) -> tirx.Stmt:
        """All pixels of an rTask, for one block of filters."""
        window, tile, layout = self.window, self.tile, self.layout
        first = g * window.filters + b * tile.filters

        def phase(py: int, px: int) -> tirx.Stmt:
            def step(i: Expr) -> tirx.Stmt:
                pixels = self.reduce(
                    acc, lambda c, ry, rx, p: image[self.place(c, ry, rx, py, px) + i * tile.pixels + p],
                    g * layout.blocks + b, self.taps_of(py, px),
                )  # fmt: skip
                keep = self.tiles(
                    lambda f, p, v, lane: tirx.BufferStore(result, acc[f, v, lane], [px, f, i * tile.pixels + p])
                )
                return sequence([*pixels, keep])

            return loop(layout.steps, step)

        down, across = window.phases.stride if window.phases else (1, 1)
        first_row = row_part * layout.rows
        return sequence(
            [
                part
                for py in range(down)
                for part in (*(phase(py, px) for px in range(across)), self.store_rows(result, n, first, first_row, py))
            ]
        )

    def pixel_of(self, n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
        """An element of the image."""
        return self.window.data[n, c, y, x] if self.window.rank == 2 else self.window.data[n, c, x]

    def taps_of(self, py: int, px: int) -> list[Expr]:
        """Which taps a phase of a transposed convolution has: the first indices of its weights."""
        phases = self.window.phases
        if phases is None:
            return []
        return [number(phases.first_tap(0, py)), number(phases.first_tap(1, px))][-self.window.rank :]

    def place(self, c: Expr, ry: Expr, rx: Expr, py: int, px: int) -> Expr:
        """Where in scratch the first pixel of a tap lies."""
        window, layout = self.window, self.layout
        (sy, sx), (dy, dx) = window.stride, window.dilation
        if window.phases:
            kernel, phases = window.kernel, window.phases
            # The taps of a transposed convolution go backwards.
            ry, rx = kernel[0] - 1 + phases.offset(0, py) - ry, kernel[1] - 1 + phases.offset(1, px) - rx
        plane = (c * layout.phases[0] + ry * dy % sy) * layout.phases[1] + rx * dx % sx
        return plane * layout.phase + ry * dy // sy * layout.width + rx * dx // sx

    def tiles(self, body: Callable[[Expr, Expr, Expr, Expr], tirx.Stmt]) -> tirx.Stmt:
        """Do `body(filter, pixel, vector, lane)` for the register tile."""
        lanes = self.tile.lanes

        def vector(f: Expr, v: Expr) -> tirx.Stmt:
            return loop(lanes, lambda lane: body(f, v * lanes + lane, v, lane), "VECTORIZED")

        return loop(
            self.tile.filters, lambda f: loop(self.tile.vectors, lambda v: vector(f, v), "UNROLLED"), "UNROLLED"
        )

    def reduce(
        self, acc: tirx.Buffer, pixel: Callable[[Expr, Expr, Expr, Expr], Expr], block: Expr, phase: Sequence[Expr] = ()
    ) -> list[tirx.Stmt]:
        """Start the register tile, and go through all channels and taps."""
        window, layout = self.window, self.layout
        start = tirx.FloatImm("float32", window.fill if window.maximum else 0.0)

        def term(outer: Expr, ry: Expr, rx: Expr, c: Expr) -> tirx.Stmt:
            def update(f: Expr, p: Expr, v: Expr, lane: Expr) -> tirx.Stmt:
                value = pixel(outer * layout.inner + c, ry, rx, p)
                if self.weight is not None:
                    taps = (ry, rx)[-window.rank :]
                    value = value * self.weight[(*phase, block, outer, *taps, c, f)]
                old = acc[f, v, lane]
                return tirx.BufferStore(acc, tirx.max(old, value) if window.maximum else old + value, [f, v, lane])

            return self.tiles(update)

        code = window.kernel[1] * self.tile.filters * self.tile.vectors
        columns = "UNROLLED" if layout.inner == 1 and code <= MOST_UNROLLED else "SERIAL"
        rows = "UNROLLED" if layout.inner == 1 and code * window.kernel[0] <= MOST_UNROLLED else "SERIAL"
        return [
            self.tiles(lambda f, p, v, lane: tirx.BufferStore(acc, start, [f, v, lane])),
            loop(window.channels // layout.inner, lambda outer: loop(window.kernel[0], lambda ry: loop(
                window.kernel[1], lambda rx: loop(layout.inner, lambda c: term(outer, ry, rx, c)), columns,
            ), rows)),
        ]  # fmt: skip

    def store_flat(self, acc: tirx.Buffer, n: Expr, first: Expr, q: Expr) -> tirx.Stmt:
        """Store the register tile, which is contiguous in the output too."""

        def one(f: Expr, p: Expr, v: Expr, lane: Expr) -> tirx.Stmt:
            return self.store((n, first + f, number(0), q + p), acc[f, v, lane])

        if self.window.filters % self.tile.filters == 0:
            return self.tiles(one)
        last = self.window.filters * self.window.groups

        def filt(f: int) -> tirx.Stmt:
            lanes, vectors = self.tile.lanes, self.tile.vectors
            row = loop(vectors, lambda v: loop(
                lanes, lambda lane: one(number(f), v * lanes + lane, v, lane), "VECTORIZED"), "UNROLLED")  # fmt: skip
            return tirx.IfThenElse(first + f < last, row, None)

        return sequence([filt(f) for f in range(self.tile.filters)])

    def store_rows(self, result: tirx.Buffer, n: Expr, first: Expr, first_row: Expr, py: int) -> tirx.Stmt:
        """Store what lies within the rows."""
        window, tile, layout = self.window, self.tile, self.layout
        down = window.phases.stride[0] if window.phases else 1
        rows = window.phases.rows if window.phases else window.rows

        def row(f: Expr, y: Expr) -> tirx.Stmt:
            at = (n, first + f, (first_row + y) * down + py)
            stored = self.one_row(at, lambda px, x: result[px, f, y * layout.width + x])
            inside = []
            if layout.rows * tile.row_parts * down != rows:
                inside.append(at[2] < rows)
            if window.filters % tile.filters:
                inside.append(first + f < window.filters * window.groups)
            return tirx.IfThenElse(tirx.all(*inside), sequence(stored), None) if inside else sequence(stored)

        return loop(tile.filters, lambda f: loop(layout.rows, lambda y: row(f, y)))

    def one_row(self, at: tuple[Expr, Expr, Expr], value: Callable[[int, Expr], Expr]) -> list[tirx.Stmt]:
        """Store a row of the output; its phases take turns."""
        window = self.window
        if window.phases is None:
            return vectors(window.columns, self.tile.lanes, lambda x: self.store((*at, x), value(0, x)))
        across, columns = window.phases.stride[1], window.phases.columns

        def turn(x: Expr, count: int) -> tirx.Stmt:
            return sequence([self.store((*at, x * across + px), value(px, x)) for px in range(count)])

        whole, rest = divmod(columns, across)
        stored = [loop(whole, lambda x: turn(x, across))] if whole else []
        return [*stored, turn(number(whole), rest)] if rest else stored

    def store(self, index: tuple[Expr, Expr, Expr, Expr], value: Expr) -> tirx.Stmt:
        """Store one result, after the epilogue."""
        epilogue = self.window.epilogue
        place = [number(i) if isinstance(i, int) else i for i in index]
        if self.window.rank == 1:
            del place[2]
        return tirx.BufferStore(self.window.out, epilogue.at(place, value) if epilogue else value, place)
