"""The code of a convolution with filters in vectors.

A step of the innermost loop loads the weights of some vectors of filters for one channel and tap, and multiplies them
with some pixels, each of which is broadcast. So any pixels can be in a register tile, whatever the row's length,
stride and padding. At the end the tile is transposed in registers, since the output's rows are pixels.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tvm import tirx
from tvm.ir import Expr

from ..in_registers import transpose
from ..loops import ending, innermost, loop, number, sequence, vectors
from ..window.ahead import LINE, block_after, fetch_ahead, fetch_weights
from ..window.fill import Planes, fill_rows, pixel_of
from ..window.problem import Window
from ..window.split import rtask_loop
from .layout import FilterLayout, FilterTile, pack_of


def filters_code(func: tirx.PrimFunc, window: Window, tile: FilterTile, *, copies: bool = True) -> tirx.PrimFunc:
    """Generate the function of a tiling; its outermost loop is parallel.

    Parameters
    ----------
    copies : bool
        Whether the image is copied to scratch. Without it results are wrong: it tells what the copy takes.
    """
    layout = FilterLayout.of(window, tile)
    assert window.weight is not None
    weight = tirx.decl_buffer(pack_of(window, tile, layout).shape, "float32", window.weight.name)
    body = _Writer(window, tile, layout, weight, copies).rtasks()
    params = [weight if p.same_as(window.weight) else p for p in func.params]
    return tirx.PrimFunc(params, body).with_attr("tirx.noalias", True).with_attr("s_tir", True)


@dataclass(frozen=True, slots=True)
class _Arrays:
    """Scratch of an rTask: accumulators, the transposed tile, the padded image, and sums that are not complete."""

    acc: tirx.Buffer
    result: tirx.Buffer
    image: tirx.Buffer | None
    sums: tirx.Buffer | None


@dataclass(frozen=True, slots=True)
class _Tile:
    """Where a register tile lies.

    Parameters
    ----------
    n, group : Expr
    part : Expr
        The block of the sum.
    first_block, block : Expr
        Of the filters: the first one of the rTask, and which of the rTask's it is.
    number : Expr
        Which of the rTask's tiles of this block of filters it is.
    band, row, column : Expr
        The first row of the rTask, the row within it, and the column. In a flat image `row` is the number of the tile
        in scratch.
    """

    n: Expr
    group: Expr
    part: Expr
    first_block: Expr
    block: Expr
    number: Expr
    band: Expr
    row: Expr
    column: Expr


@dataclass(frozen=True, slots=True)
class _Writer:
    """Generates the loops of one tiling."""

    window: Window
    tile: FilterTile
    layout: FilterLayout
    weight: tirx.Buffer
    copies: bool

    def rtasks(self) -> tirx.Stmt:
        """The parallel loop over rTasks."""
        arrays = self.arrays()
        allocated = [a for a in (arrays.acc, arrays.result, arrays.image, arrays.sums) if a is not None]
        return rtask_loop(self.window, self.tile, self.layout.blocks, allocated, partial(self.group, arrays))

    @property
    def blocks(self) -> int:
        """Blocks of filters of an rTask."""
        return self.layout.blocks // self.tile.filter_parts

    def arrays(self) -> _Arrays:
        """Declare the scratch arrays."""
        tile, layout, parted = self.tile, self.layout, self.tile.sum_parts > 1
        image = tirx.decl_buffer((layout.scratch,), "float32", "image", scope="local")
        accumulators = (tile.pixels, tile.vectors, tile.simd)
        sums = tirx.decl_buffer((self.blocks * layout.tiles, *accumulators), "float32", "sums", scope="local")
        return _Arrays(
            tirx.decl_buffer(accumulators, "float32", "acc", scope="local"),
            tirx.decl_buffer((tile.filters, tile.pixels), "float32", "result", scope="local"),
            image if layout.copied else None,
            sums if parted else None,
        )

    def group(self, arrays: _Arrays, n: Expr, g: Expr, first_block: Expr, row_part: Expr) -> tirx.Stmt:
        """All filters of a group, for the rows or pixels of an rTask: one block of the sum after the other."""
        part = self.flat_part if self.window.one_row else self.part
        return loop(self.tile.sum_parts, lambda k: part(arrays, n, g, k, first_block, row_part))

    def part(self, arrays: _Arrays, n: Expr, g: Expr, k: Expr, first_block: Expr, row_part: Expr) -> tirx.Stmt:
        """A block of the sum."""
        window, tile, layout = self.window, self.tile, self.layout
        band = tirx.min(row_part * layout.rows, number(window.rows - layout.rows)) if tile.row_parts > 1 else number(0)

        def at(b: Expr, i: Expr, j: Expr) -> tirx.Stmt:
            row = ending(i, tile.rows, layout.rows) if tile.rows else number(0)
            column = ending(j, tile.columns, layout.columns)
            return self.one(arrays, _Tile(n, g, k, first_block, b, i * layout.column_tiles + j, band, row, column))

        work = loop(
            self.blocks,
            lambda b: loop(layout.row_tiles, lambda i: loop(layout.column_tiles, lambda j: at(b, i, j))),
        )
        if arrays.image is None or not self.copies:
            return work
        others = (layout.channels - 1) * layout.width
        planes, block = Planes((1, 1), layout.height, layout.width, layout.width, others), g * tile.sum_parts + k
        whole = replace(window.without_stride(), channels=layout.channels)
        return sequence([fill_rows(whole, planes, tile.simd, arrays.image, n, block, band * window.stride[0]), work])

    def flat_part(self, arrays: _Arrays, n: Expr, g: Expr, k: Expr, first_block: Expr, row_part: Expr) -> tirx.Stmt:
        """The same where the image is one long row."""
        tile, layout = self.tile, self.layout
        blocks, tiles = self.blocks, layout.column_tiles
        zero, whole = number(0), tiles * tile.row_parts * tile.columns < layout.columns + tile.columns

        def each(first: Expr, count: int, body: Callable[[Expr, Expr], tirx.Stmt]) -> tirx.Stmt:
            """Do `body(i, first pixel)` for some tiles of the rTask; one past the end of the image is left out."""

            def one(i: Expr) -> tirx.Stmt:
                start = (row_part * tiles + first + i) * tile.columns
                done = body(i, tirx.min(start, number(layout.columns - tile.columns)))
                return done if whole else tirx.IfThenElse(start < layout.columns, done, None)

            return loop(count, one)

        def work(b: Expr, first: Expr, i: Expr, column: Expr) -> tirx.Stmt:
            return self.one(arrays, _Tile(n, g, k, first_block, b, first + i, zero, i, column))

        image, together = arrays.image, layout.together
        if image is None:
            return loop(blocks, lambda b: each(zero, tiles, lambda i, column: work(b, zero, i, column)))

        def some(part: Expr) -> tirx.Stmt:
            first, block = ending(part, together, tiles), g * tile.sum_parts + k
            # Tiles are the inner loop: a channel's pixels are read as a stream, not as a part of a page each.
            panels = loop(layout.channels, lambda c: each(
                first, together, lambda i, column: self.panel(image, n, block, c, i, column)))  # fmt: skip
            work_on = loop(blocks, lambda b: each(first, together, lambda i, column: work(b, first, i, column)))
            return sequence([panels, work_on] if self.copies else [work_on])

        return loop(-(-tiles // together), some)

    def panel(self, image: tirx.Buffer, n: Expr, block: Expr, c: Expr, i: Expr, column: Expr) -> tirx.Stmt:
        """Copy a register tile's pixels of a channel to scratch, where those of all channels are contiguous."""
        window, tile, channels, (sy, sx) = self.window, self.tile, self.layout.channels, self.window.stride

        def copy(p: Expr) -> tirx.Stmt:
            at = column + p
            y, x = (number(0), at) if window.flat else (at // window.columns * sy, at % window.columns * sx)
            value = pixel_of(window, n, block * channels + c, y, x)
            return tirx.BufferStore(image, value, [(i * channels + c) * tile.columns + p])

        return sequence(vectors(tile.columns, tile.simd, copy))

    def one(self, arrays: _Arrays, at: _Tile) -> tirx.Stmt:
        """A register tile: accumulate, transpose, store; or keep the sums, where they are not complete."""
        done = [self.turn(arrays), self.store(arrays.result, at)]
        sums, last = arrays.sums, self.tile.sum_parts - 1
        if sums is None:
            return sequence([*self.ahead(at), *self.reduce(arrays, at), *done])
        kept, acc = self.kept(at), arrays.acc
        keep = self.each(lambda p, v, e: tirx.BufferStore(sums, acc[p, v, e], [kept, p, v, e]))
        hints = self.ahead(at)
        asked = [tirx.IfThenElse(at.part == last, sequence(hints), None)] if hints else []
        finished = tirx.IfThenElse(at.part == last, sequence(done), keep)
        return sequence([*asked, *self.reduce(arrays, at), finished])

    def kept(self, at: _Tile) -> Expr:
        """Which of the rTask's register tiles this is."""
        return at.block * self.layout.tiles + at.number

    def ahead(self, at: _Tile) -> list[tirx.Stmt]:
        """Ask for what the epilogue will read of other images."""
        first, last = self.first_filter(at), number(self.window.filters * self.window.groups - 1)
        lines = itertools.product(range(self.tile.filters), range(0, self.tile.pixels, LINE))
        return fetch_ahead(self.window, (self.index_of(at, tirx.min(first + f, last), x) for f, x in lines))

    def first_filter(self, at: _Tile) -> Expr:
        """The first filter of a register tile."""
        return at.group * self.window.filters + (at.first_block + at.block) * self.tile.filters

    def index_of(self, at: _Tile, f: Expr, x: Expr | int) -> tuple[Expr, Expr, Expr, Expr]:
        """Where the x-th pixel of a register tile lies in the output, for a filter."""
        return at.n, f, number(0) if self.window.one_row else at.band + at.row, at.column + x

    def each(self, body: Callable[[int, int, Expr], tirx.Stmt]) -> tirx.Stmt:
        """Do `body(pixel, vector, element)` for all accumulators."""

        def vector(p: int, v: int) -> tirx.Stmt:
            return loop(self.tile.simd, lambda e: body(p, v, e), "VECTORIZED")

        return sequence([vector(p, v) for p in range(self.tile.pixels) for v in range(self.tile.vectors)])

    def reduce(self, arrays: _Arrays, at: _Tile) -> list[tirx.Stmt]:
        """Initialise the accumulators, and add the channels of a block of the sum with all taps."""
        window, tile, layout, acc = self.window, self.tile, self.layout, arrays.acc
        block = at.group * layout.blocks + at.first_block + at.block

        def term(outer: Expr, ry: Expr, rx: Expr, c: Expr) -> tirx.Stmt:
            taps = (ry, rx)[-window.rank :]

            def update(p: int, v: int, e: Expr) -> tirx.Stmt:
                weight = self.weight[(at.part, block, outer, *taps, c, v * tile.simd + e)]
                value = self.pixel(arrays.image, at, outer * layout.inner + c, ry, rx, p)
                return tirx.BufferStore(acc, acc[p, v, e] + value * weight, [p, v, e])

            return self.each(update)

        def inner(outer: Expr, ry: Expr, rx: Expr) -> tirx.Stmt:
            hints = self.next_weights(at, (outer, *(ry, rx)[-window.rank :]))
            steps = innermost(layout.inner, tile.vectors, tile.pixels, lambda c: term(outer, ry, rx, c))
            return sequence([*hints, steps])

        kh, kw = window.kernel
        return [
            self.start(arrays, at),
            loop(layout.channels // layout.inner, lambda outer: loop(
                kh, lambda ry: loop(kw, lambda rx: inner(outer, ry, rx)))),
        ]  # fmt: skip

    def next_weights(self, at: _Tile, chunk: Sequence[Expr]) -> list[tirx.Stmt]:
        """Ask for this register tile's part of the weights of the next block of filters, or of the sum's next block."""
        tile, layout = self.tile, self.layout
        if self.blocks * tile.sum_parts == 1:
            return []
        part, block = at.part, at.group * layout.blocks + at.first_block + block_after(at.block, self.blocks)
        if tile.sum_parts > 1:
            following = tirx.min(part + 1, number(tile.sum_parts - 1))
            part = tirx.Select(at.block == self.blocks - 1, following, part)
        place = at.row if self.window.one_row else at.number
        start = (part, block, *chunk, number(0), number(0))
        return fetch_weights(self.weight, start, layout.inner * tile.filters, place, layout.together)

    def start(self, arrays: _Arrays, at: _Tile) -> tirx.Stmt:
        """Initialise the accumulators: with what was added before, after the first block of the sum."""
        sums, acc, initial = arrays.sums, arrays.acc, tirx.FloatImm("float32", self.window.initial)
        first = self.each(lambda p, v, e: tirx.BufferStore(acc, initial, [p, v, e]))
        if sums is None:
            return first
        kept = self.kept(at)
        more = self.each(lambda p, v, e: tirx.BufferStore(acc, sums[kept, p, v, e], [p, v, e]))
        return tirx.IfThenElse(at.part == 0, first, more)

    def pixel(self, image: tirx.Buffer | None, at: _Tile, c: Expr, ry: Expr, rx: Expr, p: int) -> Expr:
        """The pixel that a tap of the tile's p-th result reads."""
        window, layout = self.window, self.layout
        (sy, sx), (dy, dx) = window.stride, window.dilation
        if image is not None and window.one_row:
            return image[(at.row * layout.channels + c) * self.tile.columns + p]
        if self.tile.rows:
            row, column = divmod(p, self.tile.columns)
            y, x = at.row * sy + ry * dy + row * sy, at.column * sx + rx * dx + column * sx
        else:
            y, x = (at.column + p) // window.columns * sy + ry * dy, (at.column + p) % window.columns * sx + rx * dx
        if image is not None:
            return image[(y * layout.channels + c) * layout.width + x]
        row_of_image = number(0) if window.one_row else at.band * sy + y
        channel = (at.group * self.tile.sum_parts + at.part) * layout.channels + c
        return pixel_of(window, at.n, channel, row_of_image, x)

    def turn(self, arrays: _Arrays) -> tirx.Stmt:
        """Transpose the tile: from pixels of filters to filters of pixels.

        Each part goes through memory, in a loop: all accumulators at once would be spilt.
        """
        tile, size = self.tile, self.tile.turned

        def part(v: Expr, start: Expr) -> tirx.Stmt:
            along = tirx.Ramp(number(0), number(1), tile.simd)
            rows = [arrays.acc[start + i, v, along] for i in range(size)]

            def store(e: int, vector: Expr) -> tirx.Stmt:
                columns = tirx.Ramp(start, number(1), size) if size > 1 else start
                return tirx.BufferStore(arrays.result, vector, [v * tile.simd + e, columns])

            return sequence(transpose(rows, tile.simd, store))

        return loop(tile.vectors, lambda v: self.parts(lambda start: part(v, start)))

    def parts(self, body: Callable[[Expr], tirx.Stmt]) -> tirx.Stmt:
        """Do `body` for each part of the tile's pixels that is transposed at once; the last one ends with them."""
        pixels, size = self.tile.pixels, self.tile.turned
        return loop(-(-pixels // size), lambda k: body(ending(k, size, pixels)))

    def store(self, result: tirx.Buffer, at: _Tile) -> tirx.Stmt:
        """Store the tile, after the epilogue: its pixels are contiguous in the output."""
        window, tile = self.window, self.tile
        first = self.first_filter(at)

        def one(f: Expr, x: Expr) -> tirx.Stmt:
            return window.store(self.index_of(at, first + f, x), result[f, x])

        def row(f: Expr) -> tirx.Stmt:
            stored = self.parts(lambda start: loop(tile.turned, lambda x: one(f, start + x), "VECTORIZED"))
            if window.filters % tile.filters == 0:
                return stored
            return tirx.IfThenElse(first + f < window.filters * window.groups, stored, None)

        return loop(tile.filters, row)
