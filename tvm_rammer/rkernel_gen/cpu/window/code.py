"""The code of a sliding window on a CPU: vectors of pixels, registers of filters.

The rows of the image are copied to a contiguous scratch array, with padding, and for a stride s in s x s phases. Then
each tap of the window reads contiguous pixels, whatever the width of a row. The results of the few pixels between two
rows are computed and not stored. A 1x1 window needs no scratch.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tvm import tirx
from tvm.ir import Expr

from ..loops import innermost, loop, number, sequence
from .ahead import block_after, fetch_ahead, fetch_weights
from .fill import Planes, fill_rows, pixel_of
from .layout import Layout, WindowTile, pack_of
from .problem import Window
from .split import rtask_loop
from .store import store_rows

MAX_UNROLLED = 250
"""Multiply-adds of vectors that are unrolled, at most. Of more, LLVM may compute one accumulator after the other, each
of which waits for itself: with AVX2 the 343 of a depthwise 7x7 took 2.2 times as long as those of row after row."""


def window_code(
    func: tirx.PrimFunc,
    window: Window,
    tile: WindowTile,
    *,
    packed: bool = True,
    copies: bool = True,
) -> tirx.PrimFunc:
    """Generate the function of a tiling; its outermost loop is parallel.

    Parameters
    ----------
    packed : bool
        Whether the weights are a constant, which is packed; else they are read where they lie.
    copies : bool
        Whether the image is copied to scratch. Without it results are wrong: it tells what the copy takes.
    """
    layout = Layout.of(window, tile)
    weight = window.weight
    if window.weight is not None and packed:
        weight = tirx.decl_buffer(pack_of(window, tile, layout).shape, "float32", window.weight.name)
    body = _Writer(window, tile, layout, weight, copies).rtasks()
    params = [weight if weight is not None and p.same_as(window.weight) else p for p in func.params]
    return tirx.PrimFunc(params, body).with_attr("tirx.noalias", True).with_attr("s_tir", True)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Generates the loops of one tiling."""

    window: Window
    tile: WindowTile
    layout: Layout
    weight: tirx.Buffer | None
    copies: bool

    def rtasks(self) -> tirx.Stmt:
        """The parallel loop over rTasks."""
        window, tile, layout = self.window, self.tile, self.layout
        acc = tirx.decl_buffer((tile.filters, tile.vectors, tile.simd), "float32", "acc", scope="local")
        image = tirx.decl_buffer((layout.scratch(window, tile),), "float32", "image", scope="local")
        column_phases = window.phases.stride[1] if window.phases else 1
        pixels = layout.steps * tile.pixels
        result = tirx.decl_buffer((column_phases, tile.filters, pixels), "float32", "result", scope="local")
        arrays = [acc] if window.flat else [acc, image, result]
        planes = Planes(layout.phases, layout.height, layout.width, layout.phase)
        blocks = layout.blocks // tile.filter_parts

        def group(n: Expr, g: Expr, first_block: Expr, row_part: Expr) -> tirx.Stmt:
            if window.flat:
                return self.flat_tiles(acc, n, g, first_block, row_part)
            copy = fill_rows(window, planes, tile.simd, image, n, g, row_part * layout.rows)
            work = loop(blocks, lambda b: self.block(
                acc, image, result, n, g, first_block + b, first_block + block_after(b, blocks), row_part))  # fmt: skip
            return sequence([copy, work] if self.copies else [work])

        return rtask_loop(window, tile, layout.blocks, arrays, group)

    def flat_tiles(self, acc: tirx.Buffer, n: Expr, g: Expr, first_block: Expr, row_part: Expr) -> tirx.Stmt:
        """All pixels of an rTask, for all its blocks of filters, where the image is read in place."""
        window, tile, layout = self.window, self.tile, self.layout
        total, blocks = window.rows * window.columns, layout.blocks // tile.filter_parts

        def one(b: Expr, following: Expr, i: Expr) -> tirx.Stmt:
            start = (row_part * layout.steps + i) * tile.pixels
            q = tirx.min(start, number(total - tile.pixels))
            first = g * window.filters + b * tile.filters
            pixels = self.reduce(
                acc,
                lambda c, ry, rx, p: pixel_of(window, n, g * window.channels + c, number(0), q + p),
                g * layout.blocks + b,
                first,
                partial(self.next_weights, g * layout.blocks + following, number(0), 1),
            )
            last = number(window.filters * window.groups - 1)
            lines = itertools.product(range(tile.filters), range(tile.vectors))
            ahead = fetch_ahead(
                window, ([n, tirx.min(first + f, last), number(0), q + v * tile.simd] for f, v in lines), stores=True
            )
            done = sequence([*ahead, *pixels, self.store_flat(acc, n, first, q)])
            return tirx.IfThenElse(start < total, done, None)

        # Filters are the inner loop: the pixels of a tile stay in the first-level cache, and are more than a filter's
        # weights.
        return loop(layout.steps, lambda i: loop(
            blocks, lambda b: one(first_block + b, first_block + block_after(b, blocks), i)))  # fmt: skip

    def block(
        self,
        acc: tirx.Buffer,
        image: tirx.Buffer,
        result: tirx.Buffer,
        n: Expr,
        g: Expr,
        b: Expr,
        following: Expr,
        row_part: Expr,
    ) -> tirx.Stmt:
        """All pixels of an rTask, for one block of filters; `following` is the next one."""
        window, tile, layout = self.window, self.tile, self.layout
        first = g * window.filters + b * tile.filters

        def phase(py: int, px: int) -> tirx.Stmt:
            def step(i: Expr) -> tirx.Stmt:
                pixels = self.reduce(
                    acc, lambda c, ry, rx, p: image[self.offset_of(c, ry, rx, py, px) + i * tile.pixels + p],
                    g * layout.blocks + b, first,
                    partial(self.next_weights, g * layout.blocks + following, i, layout.steps), (py, px),
                )  # fmt: skip
                keep = self.tiles(
                    lambda f, p, v, e: tirx.BufferStore(result, acc[f, v, e], [px, f, i * tile.pixels + p])
                )
                return sequence([*pixels, keep])

            return loop(layout.steps, step)

        row_phases, column_phases = window.phases.stride if window.phases else (1, 1)
        first_row = row_part * layout.rows
        return sequence(
            [
                part
                for py in range(row_phases)
                for part in (
                    *(phase(py, px) for px in range(column_phases)),
                    store_rows(window, tile, layout, result, n, first, first_row, py),
                )
            ]
        )

    def taps_of(self, py: int, px: int) -> list[Expr]:
        """The taps of a phase of a transposed convolution: the first indices of its weights; empty for others."""
        phases = self.window.phases
        if phases is None:
            return []
        return [number(phases.first_tap(0, py)), number(phases.first_tap(1, px))][-self.window.rank :]

    def offset_of(self, c: Expr, ry: Expr, rx: Expr, py: int, px: int) -> Expr:
        """Offset in scratch of a tap's first pixel."""
        window, layout = self.window, self.layout
        (sy, sx), (dy, dx) = window.stride, window.dilation
        if window.phases:
            kernel, phases = window.kernel, window.phases
            # The taps of a transposed convolution are reversed.
            ry, rx = kernel[0] - 1 + phases.offset(0, py) - ry, kernel[1] - 1 + phases.offset(1, px) - rx
        plane = (c * layout.phases[0] + ry * dy % sy) * layout.phases[1] + rx * dx % sx
        return plane * layout.phase + ry * dy // sy * layout.width + rx * dx // sx

    def tiles(self, body: Callable[[Expr, Expr, Expr, Expr], tirx.Stmt], *, vectors_outside: bool = False) -> tirx.Stmt:
        """Do `body(filter, pixel, vector, element of the vector)` for the register tile, filter by filter or not."""
        filters, count, simd = self.tile.filters, self.tile.vectors, self.tile.simd

        def vector(f: Expr, v: Expr) -> tirx.Stmt:
            return loop(simd, lambda e: body(f, v * simd + e, v, e), "VECTORIZED")

        if vectors_outside:
            return loop(count, lambda v: loop(filters, lambda f: vector(f, v), "UNROLLED"), "UNROLLED")
        return loop(filters, lambda f: loop(count, lambda v: vector(f, v), "UNROLLED"), "UNROLLED")

    def weight_of(
        self, phase: Sequence[Expr], block: Expr, first: Expr, outer: Expr, taps: Sequence[Expr], c: Expr, f: Expr
    ) -> Expr:
        """A weight: of a packed array by its block of filters, else by its filter."""
        window, weight = self.window, self.weight
        assert weight is not None
        if not weight.same_as(window.weight):
            blocks = self.layout.blocks
            place = (block // blocks, block % blocks) if window.phases and window.groups > 1 else (block,)
            return weight[(*phase, *place, outer, *taps, c, f)]
        filt = first + f
        if window.filters % self.tile.filters:
            filt = tirx.min(filt, number(window.filters * window.groups - 1))
        return weight[(filt, outer * self.layout.inner + c, *taps)]

    def reduce(
        self,
        acc: tirx.Buffer,
        pixel: Callable[[Expr, Expr, Expr, Expr], Expr],
        block: Expr,
        first: Expr,
        hints: Callable[[Sequence[Expr]], list[tirx.Stmt]],
        phase: tuple[int, int] = (0, 0),
    ) -> list[tirx.Stmt]:
        """Initialise the register tile, and accumulate all channels, and the taps that the phase has.

        Others would be weights of zero, which make NaN of an infinity.
        """
        window, layout = self.window, self.layout
        phases, place = window.phases, self.taps_of(*phase)
        kernel = (phases.count(0, phase[0]), phases.count(1, phase[1])) if phases else window.kernel
        initial = tirx.FloatImm("float32", window.initial)

        def term(outer: Expr, ry: Expr, rx: Expr, c: Expr) -> tirx.Stmt:
            def update(f: Expr, p: Expr, v: Expr, e: Expr) -> tirx.Stmt:
                value = pixel(outer * layout.inner + c, ry, rx, p)
                if self.weight is not None:
                    taps = (ry, rx)[-window.rank :]
                    value = value * self.weight_of(place, block, first, outer, taps, c, f)
                old = acc[f, v, e]
                return tirx.BufferStore(acc, tirx.max(old, value) if window.maximum else old + value, [f, v, e])

            # LLVM keeps this order, and what the inner loop reads: of the longer one, an accumulator would be spilt.
            return self.tiles(update, vectors_outside=self.tile.filters < self.tile.vectors)

        def inner(outer: Expr, ry: Expr, rx: Expr) -> tirx.Stmt:
            chunk = (outer, *(ry, rx)[-window.rank :])
            tile = self.tile
            steps = innermost(layout.inner, tile.vectors, tile.filters, lambda c: term(outer, ry, rx, c))
            return sequence([*hints(chunk), steps])

        code = kernel[1] * self.tile.filters * self.tile.vectors
        columns = "UNROLLED" if layout.inner == 1 and code <= MAX_UNROLLED else "SERIAL"
        rows = "UNROLLED" if layout.inner == 1 and code * kernel[0] <= MAX_UNROLLED else "SERIAL"
        begin = self.tiles(lambda f, p, v, e: tirx.BufferStore(acc, initial, [f, v, e]))
        if 0 in kernel:
            return [begin]
        return [
            begin,
            loop(window.channels // layout.inner, lambda outer: loop(kernel[0], lambda ry: loop(
                kernel[1], lambda rx: inner(outer, ry, rx), columns,
            ), rows)),
        ]  # fmt: skip

    def next_weights(self, block: Expr, part: Expr, parts: int, chunk: Sequence[Expr]) -> list[tirx.Stmt]:
        """Ask for a part of a chunk of the weights of an rTask's next block; of packed ones alone."""
        weight, window, layout = self.weight, self.window, self.layout
        if weight is None or weight.same_as(window.weight) or window.phases:
            return []
        if layout.inner == 1 or layout.blocks == self.tile.filter_parts:
            return []
        start = (block, *chunk, number(0), number(0))
        return fetch_weights(weight, start, layout.inner * self.tile.filters, part, parts)

    def store_flat(self, acc: tirx.Buffer, n: Expr, first: Expr, q: Expr) -> tirx.Stmt:
        """Store the register tile, which is contiguous in the output."""

        def one(f: Expr, p: Expr, v: Expr, e: Expr) -> tirx.Stmt:
            return self.window.store((n, first + f, number(0), q + p), acc[f, v, e])

        if self.window.filters % self.tile.filters == 0:
            return self.tiles(one)
        last = self.window.filters * self.window.groups

        def filt(f: int) -> tirx.Stmt:
            simd, vectors = self.tile.simd, self.tile.vectors
            row = loop(vectors, lambda v: loop(
                simd, lambda e: one(number(f), v * simd + e, v, e), "VECTORIZED"), "UNROLLED")  # fmt: skip
            return tirx.IfThenElse(first + f < last, row, None)

        return sequence([filt(f) for f in range(self.tile.filters)])
