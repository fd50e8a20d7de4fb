"""The code of a convolution by Winograd's algorithm, with tiles in vectors.

Of some rows of tiles the pixels of all channels are transformed. Then for each block of filters and each of the
products of a tile, the channels are summed up in a register tile of filters and vectors of tiles; and the products are
transformed into results. The image is copied in phases, channel by channel, so that the same pixel of neighbouring
tiles is contiguous.

A pixel that is infinite or NaN would make all results of its tiles NaN, not only those that it belongs to. So the
largest exponent of all results is kept, and a block in which one is not finite is computed again, as sums.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

from tvm import tirx
from tvm.ir import Expr

from ...analysis.work import shape_of
from ..loops import ending, leave_registers, loop, number, sequence, vectors
from ..window.ahead import block_after, fetch_weights
from ..window.fill import Planes, fill_rows
from ..window.layout import channels_inside
from ..window.problem import Window
from ..window.split import rtask_loop
from .layout import WinogradLayout, WinogradTile, pack_of
from .sums import Block, Sums
from .vectors import Vectors


def winograd_code(func: tirx.PrimFunc, window: Window, tile: WinogradTile) -> tirx.PrimFunc:
    """Generate the function of a tiling; its outermost loop is parallel."""
    layout = WinogradLayout.of(window, tile)
    assert window.weight is not None
    weight = tirx.decl_buffer(pack_of(window, tile, layout).shape, "float32", window.weight.name)
    body = _Writer(window, tile, layout, weight).rtasks()
    params = [weight if p.same_as(window.weight) else p for p in func.params]
    return tirx.PrimFunc(params, body).with_attr("tirx.noalias", True).with_attr("s_tir", True)


@dataclass(frozen=True, slots=True)
class _Arrays:
    """Scratch of an rTask.

    A channel of the image, its transformed pixels, accumulators, products, rows of results; and in each element of a
    vector the largest magnitude of results, as bits.
    """

    image: tirx.Buffer
    pixels: tirx.Buffer
    acc: tirx.Buffer
    products: tirx.Buffer
    result: tirx.Buffer
    largest: tirx.Buffer

    def all(self) -> list[tirx.Buffer]:
        """All of them."""
        return [self.image, self.pixels, self.acc, self.products, self.result, self.largest]


_INFINITE = tirx.IntImm("int32", 0x7F800000)
"""The bits of infinity."""


@dataclass(frozen=True, slots=True)
class _Writer:
    """Generates the loops of one tiling."""

    window: Window
    tile: WinogradTile
    layout: WinogradLayout
    weight: tirx.Buffer

    def rtasks(self) -> tirx.Stmt:
        """The parallel loop over rTasks."""
        arrays, layout = self.arrays(), self.layout

        def group(n: Expr, g: Expr, first_block: Expr, row_part: Expr) -> tirx.Stmt:
            band = ending(row_part, layout.rows, layout.tile_rows)
            steps = loop(layout.steps, lambda s: self.step(
                arrays, n, g, first_block, band + ending(s, layout.step, layout.rows)))  # fmt: skip
            return sequence([*self.clear_ends(arrays), steps])

        return rtask_loop(self.window, self.tile, layout.blocks, arrays.all(), group)

    def clear_ends(self, arrays: _Arrays) -> list[tirx.Stmt]:
        """Clear what lies past the last tile of scratch arrays: it goes into lanes of no result, but into `largest`."""
        tile, layout = self.tile, self.layout
        used = layout.step * layout.tile_columns

        def clear(array: tirx.Buffer, start: int, *index: Expr) -> tirx.Stmt:
            length, zero = shape_of(array)[-1], tirx.FloatImm("float32", 0.0)
            stores = vectors(length - start, tile.simd, lambda w: tirx.BufferStore(array, zero, [*index, start + w]))
            return sequence(stores)

        def each_row(array: tirx.Buffer) -> tirx.Stmt:
            products, rows, _ = shape_of(array)
            # One loop: LLVM would unroll two, up to thousands of stores, and take a second for them.
            return loop(products * rows, lambda i: clear(array, used, i // rows, i % rows))

        image = clear(arrays.image, tile.size**2 * self.planes().size)
        return [image] if used == layout.line else [image, each_row(arrays.pixels), each_row(arrays.products)]

    def arrays(self) -> _Arrays:
        """Declare the scratch arrays."""
        tile, layout, planes = self.tile, self.layout, self.planes()

        def array(name: str, *shape: int, dtype: str = "float32") -> tirx.Buffer:
            return tirx.decl_buffer(shape, dtype, name, scope="local")

        return _Arrays(
            array("image", tile.size**2 * planes.size + layout.row_vectors * tile.simd),  # vectors go past its end
            array("pixels", tile.by.products, self.window.channels | 1, layout.line),
            array("acc", tile.filters, tile.vectors, tile.simd),
            array("products", tile.by.products, tile.filters, layout.line),
            array("result", tile.size, layout.row_vectors * tile.simd * tile.size),
            array("largest", tile.simd, dtype="int32"),
        )

    def planes(self) -> Planes:
        """The phases of a channel's image."""
        more = (self.tile.by.points - 1) // self.tile.size
        height, width = self.layout.step + more, self.layout.tile_columns + more
        return Planes((self.tile.size,) * 2, height, width, height * width)

    def step(self, arrays: _Arrays, n: Expr, g: Expr, first_block: Expr, row: Expr) -> tirx.Stmt:
        """Some rows of tiles of a group, for the filters of an rTask."""
        window, layout = self.window, self.layout
        blocks = layout.blocks // self.tile.filter_parts
        one = replace(window, channels=1, stride=(self.tile.size,) * 2, fill=0.0)

        def channel(c: Expr) -> tirx.Stmt:
            plane = g * window.channels + c
            filled = fill_rows(one, self.planes(), self.tile.simd, arrays.image, n, plane, row)
            return sequence([filled, self.transform(arrays, c)])

        def block(i: Expr) -> tirx.Stmt:
            b, following = first_block + i, g * layout.blocks + first_block + block_after(i, blocks)
            at = Block(n, g, g * window.filters + b * self.tile.filters, g * layout.blocks + b, row)
            return sequence([
                loop(self.tile.simd, lambda e: tirx.BufferStore(arrays.largest, tirx.IntImm("int32", 0), [e])),
                self.multiply(arrays, at.block, following),
                leave_registers(),
                self.store(arrays, at),
                *self.again(arrays, at),
            ])  # fmt: skip

        return sequence([loop(window.channels, channel), loop(blocks, block)])

    def each_vector(self, body: Callable[[Expr, Expr], tirx.Stmt]) -> tirx.Stmt:
        """Do `body(row of tiles, first tile of the row)` for each vector of tiles of a step, row after row.

        What a row's last vector has too many is written again by the next row.
        """
        layout = self.layout
        return loop(layout.step, lambda i: loop(layout.row_vectors, lambda j: body(i, j * self.tile.simd)))

    def transform(self, arrays: _Arrays, c: Expr) -> tirx.Stmt:
        """Transform the pixels of a channel."""
        tile, planes = self.tile, self.planes()

        def pixel(i: Expr, j: Expr, y: int, x: int) -> Expr:
            phase = y % tile.size * tile.size + x % tile.size
            at = (i + y // tile.size) * planes.width + j + (phase * planes.size + x // tile.size)
            return arrays.image[tirx.Ramp(at, number(1), tile.simd)]

        def one(i: Expr, j: Expr) -> tirx.Stmt:
            points = tile.by.points
            taken = Vectors(tile.simd)
            pixels = [[taken.define(pixel(i, j, y, x)) for x in range(points)] for y in range(points)]
            values = taken.two_sided(tile.by.image, pixels)
            along = tirx.Ramp(i * self.layout.tile_columns + j, number(1), tile.simd)
            stores = [
                tirx.BufferStore(arrays.pixels, value, [y * points + x, c, along])
                for y, row in enumerate(values)
                for x, value in enumerate(row)
            ]
            return sequence([*taken.statements, *stores])

        return self.each_vector(one)

    def multiply(self, arrays: _Arrays, block: Expr, following: Expr) -> tirx.Stmt:
        """All products of a block of filters, summed up over the channels; `following` is the next block."""
        window, tile, layout, acc = self.window, self.tile, self.layout, arrays.acc

        def each(body: Callable[[Expr, Expr, Expr], tirx.Stmt]) -> tirx.Stmt:
            def vector(f: Expr, v: Expr) -> tirx.Stmt:
                return loop(tile.simd, lambda e: body(f, v, e), "VECTORIZED")

            return loop(tile.filters, lambda f: loop(tile.vectors, lambda v: vector(f, v), "UNROLLED"), "UNROLLED")

        inner, products = channels_inside(window.channels), tile.by.products

        def hints(product: Expr, i: Expr, channel: Expr) -> list[tirx.Stmt]:
            place = tirx.Select(product == products - 1, following, block), block_after(product, products)
            return fetch_weights(self.weight, (*place, channel, number(0)), inner * tile.filters, i, layout.tiles)

        def one(product: Expr, i: Expr) -> tirx.Stmt:
            first = i * (tile.vectors * tile.simd)

            def add(c: Expr) -> tirx.Stmt:
                def update(f: Expr, v: Expr, e: Expr) -> tirx.Stmt:
                    value = arrays.pixels[product, c, first + v * tile.simd + e] * self.weight[block, product, c, f]
                    return tirx.BufferStore(acc, acc[f, v, e] + value, [f, v, e])

                return each(update)

            zero = tirx.FloatImm("float32", 0.0)
            return sequence([
                each(lambda f, v, e: tirx.BufferStore(acc, zero, [f, v, e])),
                loop(window.channels // inner, lambda outer: sequence([
                    *hints(product, i, outer * inner), loop(inner, lambda c: add(outer * inner + c))])),
                each(lambda f, v, e: tirx.BufferStore(
                    arrays.products, acc[f, v, e], [product, f, first + v * tile.simd + e])),
            ])  # fmt: skip

        return loop(tile.by.products, lambda product: loop(layout.tiles, lambda i: one(product, i)))

    def store(self, arrays: _Arrays, at: Block) -> tirx.Stmt:
        """Transform the products of a block of filters, and store the results."""

        def filt(f: Expr) -> tirx.Stmt:
            return loop(self.layout.step, lambda i: sequence(
                [self.results(arrays, f, i), *self.store_rows(arrays, at.n, at.first + f, at.row + i)]))  # fmt: skip

        return self.each_filter(at, filt)

    def each_filter(self, at: Block, body: Callable[[Expr], tirx.Stmt]) -> tirx.Stmt:
        """Do `body(number of a filter in the block)` for those that there are."""
        window, tile = self.window, self.tile
        if window.filters % tile.filters == 0:
            return loop(tile.filters, body)
        last = window.filters * window.groups
        return loop(tile.filters, lambda f: tirx.IfThenElse(at.first + f < last, body(f), None))

    def again(self, arrays: _Arrays, at: Block) -> list[tirx.Stmt]:
        """Compute the results of a block as sums, if any of them is not finite."""
        window, tile, largest = self.window, self.tile, arrays.largest

        def both(e: Expr) -> tirx.Stmt:
            return tirx.BufferStore(largest, tirx.Max(largest[0], largest[e]), [0])

        sums = Sums(window, tile, self.weight, arrays.result)

        def row(f: Expr, i: Expr) -> tirx.Stmt:
            y = at.row * tile.size + i
            return tirx.IfThenElse(y < window.rows, sums.row(at, f, y), None)

        rows = self.each_filter(at, lambda f: loop(self.layout.step * tile.size, lambda i: row(f, i)))
        return [loop(tile.simd, both), tirx.IfThenElse(largest[0] >= _INFINITE, rows, None)]

    def results(self, arrays: _Arrays, f: Expr, i: Expr) -> tirx.Stmt:
        """The results of a row of tiles, in scratch: the columns of neighbouring tiles interleaved."""
        tile, layout, points = self.tile, self.layout, self.tile.by.points

        def one(j: Expr) -> tirx.Stmt:
            taken, along = Vectors(tile.simd), tirx.Ramp(i * layout.tile_columns + j, number(1), tile.simd)
            products = [
                [taken.define(arrays.products[y * points + x, f, along]) for x in range(points)] for y in range(points)
            ]
            values = taken.two_sided(tile.by.result, products)
            along = tirx.Ramp(j * tile.size, number(1), tile.simd * tile.size)
            order = [tirx.IntImm("int32", x * tile.simd + e) for e in range(tile.simd) for x in range(tile.size)]
            stores = [
                tirx.BufferStore(arrays.result, tirx.Shuffle(list(columns), order), [y, along])
                for y, columns in enumerate(values)
            ]
            total = functools.reduce(lambda a, b: a + b, [value for row in values for value in row])
            return sequence([*taken.statements, *stores, self.keep_largest(arrays, total)])

        return loop(layout.row_vectors, lambda v: one(v * tile.simd))

    def keep_largest(self, arrays: _Arrays, value: Expr) -> tirx.Stmt:
        """Keep the larger magnitudes: as bits the larger integers, and NaN the largest."""
        simd, every = self.tile.simd, tirx.Ramp(number(0), number(1), self.tile.simd)
        bits = tirx.reinterpret(f"int32x{simd}", value) & tirx.Broadcast(tirx.IntImm("int32", 0x7FFFFFFF), simd)
        return tirx.BufferStore(arrays.largest, tirx.Max(arrays.largest[every], bits), [every])

    def store_rows(self, arrays: _Arrays, n: Expr, f: Expr, row: Expr) -> list[tirx.Stmt]:
        """Store the results of a row of tiles that are within the output, after the epilogue."""
        window, tile = self.window, self.tile

        def one(y: int) -> tirx.Stmt:
            at = row * tile.size + y

            def element(x: Expr) -> tirx.Stmt:
                return window.store((n, f, at, x), arrays.result[y, x])

            stored = sequence(vectors(window.columns, tile.simd, element))
            outside = window.rows % tile.size and y >= window.rows % tile.size
            return tirx.IfThenElse(at < window.rows, stored, None) if outside else stored

        return [one(y) for y in range(tile.size)]
