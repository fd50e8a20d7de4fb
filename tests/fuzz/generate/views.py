"""Random views of views: reversed, repeated, mirrored, re-split, rolled and padded axes, in blocks in a row."""

import math
import random
from dataclasses import replace

from .functions import composed, mirrored
from .products import ProductWriter
from .recipe import Buffer, Expr, Function, Stage, plus, span, times

_MOST = 4_096
"""Elements of a buffer."""


def split_again(rng: random.Random, size: int) -> tuple[int, ...]:
    """Other extents of as many elements."""
    extents: list[int] = []
    for _ in range(rng.randint(0, 2)):
        extents.append(rng.choice([d for d in range(1, size + 1) if size % d == 0]))
        size //= extents[-1]
    extents.append(size)
    rng.shuffle(extents)
    return tuple(extents)


class ViewWriter(ProductWriter):
    """Writes blocks each of which reads the one before it elsewhere; at the end perhaps a sum of what they leave."""

    def function(self) -> Function:
        rng = self.rng
        self.dtype = rng.choice(["float32"] * 5 + ["int32", "float16", "float64"])
        shape = tuple(rng.choice((1, 2, 3, 4, 5, 6, 8, 12, 16)) for _ in range(rng.choice([1, 2, 2, 3])))
        source = self.new_input(shape)
        for _ in range(rng.choice([1, 2, 2, 3, 3, 4])):
            extents, body = self.view(source)
            if rng.random() < 0.25:
                body = ("bin", rng.choice(["+", "*", "max"]), body, self.elsewhere_read(extents))
            source = self.new_result(extents)
            self.stages.append(Stage(source.name, extents, (), "", 0, body))
        if rng.random() < 0.5:
            last = self.stages.pop()
            return self.finished(last, source)
        return self.finished(*self.total(source))

    def view(self, of: Buffer) -> tuple[tuple[int, ...], Expr]:
        """The extents of a view of a buffer, and its elements."""
        rng, shape = self.rng, of.shape
        axes: list[Expr] = [("var", a) for a in range(len(shape))]
        d = rng.randrange(len(shape))
        axis, extent, n = axes[d], shape[d], rng.choice([2, 3, 4])
        room = math.prod(shape) * n <= _MOST
        lowest: Expr = ("lit", self.dtype, rng.choice([0, 0, 3]))

        def along(size: int, index: Expr, guard: Expr = ()) -> tuple[tuple[int, ...], Expr]:
            load: Expr = ("load", of.name, *axes[:d], index, *axes[d + 1 :])
            return (*shape[:d], size, *shape[d + 1 :]), (("if", guard, load, lowest) if guard else load)

        pad = rng.randint(0, 3)
        moved = plus(axis, -pad)
        whole = ("and", ("cmp", ">=", axis, ("num", pad)), ("cmp", "<", axis, ("num", extent + pad)))
        kind = rng.choice([
            "reversed", "reversed", "repeated", "tiled", "split", "split", "transposed", "rolled", "padded", "mirrored",
            "edges", "zeros", "strided", "any", "any", "joined",
        ])  # fmt: skip
        if kind == "reversed":
            step = rng.choice([1, 1, 1, 2])
            skipped = rng.randint(0, min(1, extent - 1))
            return along(-(-(extent - skipped) // step), plus(times(axis, -step), extent - 1 - skipped))
        if kind in ("repeated", "tiled") and room:
            cut = rng.choice([0, 0, 1])
            return along(extent * n - cut, ("div", axis, n) if kind == "repeated" else ("mod", axis, extent))
        if kind == "transposed":
            order = rng.sample(range(len(shape)), len(shape))
            return tuple(shape[o] for o in order), ("load", of.name, *(axes[order.index(a)] for a in range(len(shape))))
        if kind == "rolled":
            return along(extent, ("mod", plus(axis, rng.randint(-extent, extent)), extent))
        if kind == "padded" and room:
            return along(extent + 2 * pad, moved, whole if pad else ())
        if kind == "mirrored" and room and extent > pad:
            return along(extent + 2 * pad, mirrored(axis, pad, extent))
        if kind == "edges" and room:
            return along(extent + 2 * pad, ("max", ("min", moved, extent - 1), 0))
        if kind == "zeros" and room:
            return along(extent * n - n + 1, ("div", axis, n), ("cmp", "==", ("mod", axis, n), ("num", 0)))
        if kind == "strided":
            step, first = rng.choice([2, 3]), rng.randint(-3, extent - 1)
            size = max(1, -(-(extent - first) // step))
            line = plus(times(axis, step), first)
            return along(size, line, ("cmp", ">=", line, ("num", 0)) if first < 0 else ())
        if kind == "joined" and room:
            other = self.new_input((*shape[:d], n, *shape[d + 1 :]))
            size, load = along(extent + n, axis)
            more: Expr = ("load", other.name, *axes[:d], plus(axis, -extent), *axes[d + 1 :])
            return size, ("if", ("cmp", "<", axis, ("num", extent)), load, more)
        if kind == "any":
            extents = split_again(rng, math.prod(shape)) if rng.random() < 0.5 else shape
            return extents, self.anywhere(of, extents)
        return self.split(of)

    def split(self, of: Buffer) -> tuple[tuple[int, ...], Expr]:
        """Other extents of the same elements; perhaps from the end, or each several times."""
        rng = self.rng
        count = math.prod(of.shape)
        times_each = rng.choice([1, 1, 2, 3]) if count * 3 <= _MOST else 1
        extents = split_again(rng, count * times_each)
        flat: Expr = ("num", 0)
        for a, extent in enumerate(extents):
            axis: Expr = ("var", a)
            if rng.random() < 0.3:
                axis = plus(times(axis, -1), extent - 1)
            flat = ("add", times(flat, extent), axis) if a else axis
        if times_each > 1:
            flat = ("div", flat, times_each) if rng.random() < 0.6 else ("mod", flat, count)
        index: list[Expr] = []
        for extent in reversed(of.shape):
            index.insert(0, ("mod", flat, extent) if len(index) < len(of.shape) - 1 else flat)
            flat = ("div", flat, extent)
        return extents, ("load", of.name, *index)

    def anywhere(self, of: Buffer, extents: tuple[int, ...]) -> Expr:
        """Elements of a buffer at composed indices: brought into its range, or chosen by a condition."""
        rng = self.rng
        index: list[Expr] = []
        guards: list[Expr] = []
        for extent in of.shape:
            i = composed(rng, ("var", rng.randrange(len(extents))), extents)
            low, high = span(i, extents)
            if low < 0 or high >= extent:
                how = rng.choice(["mod", "clamp", "if", "if"])
                if how == "mod":
                    i = ("mod", i, extent)
                elif how == "clamp":
                    i = ("max", ("min", i, extent - 1), 0)
                else:
                    guards += [("cmp", ">=", i, ("num", 0))] * (low < 0)
                    guards += [("cmp", "<", i, ("num", extent))] * (high >= extent)
            index.append(i)
        body: Expr = ("load", of.name, *index)
        for guard in guards:
            body = ("if", guard, body, ("lit", self.dtype, 1))
        return body

    def elsewhere_read(self, extents: tuple[int, ...]) -> Expr:
        """Elements of an earlier buffer, or of a new input at composed indices."""
        if self.rng.random() < 0.5:
            return self.anywhere(self.rng.choice([*self.inputs, *self.scratch]), extents)
        return self.operand(list(range(len(extents))), extents)

    def total(self, source: Buffer) -> tuple[Stage, Buffer]:
        """A reduction of a buffer, a window along it, or a product with it."""
        rng, shape = self.rng, source.shape
        kind = rng.choice(["rows", "window", "product", "any"])
        if kind == "window":
            taps = rng.randint(1, min(4, shape[-1]))
            spatial: tuple[int, ...] = (*shape[:-1], shape[-1] - taps + 1)
            reduce: tuple[int, ...] = (taps,)
            index = [
                *(("var", a) for a in range(len(shape) - 1)),
                ("add", ("var", len(shape) - 1), ("var", len(shape))),
            ]
        elif kind == "product":
            spatial, reduce = (*shape[:-1], rng.choice([3, 8, 16])), shape[-1:]
            index = [*(("var", a) for a in range(len(shape) - 1)), ("var", len(shape))]
        else:
            spatial, reduce = shape[:-1], shape[-1:]
            index = [("var", a) for a in range(len(shape))]
        extents = (*spatial, *reduce)
        body: Expr = ("load", source.name, *index)
        if kind == "any":
            body = self.anywhere(source, extents)
        if kind == "product" or (kind == "window" and rng.random() < 0.5):
            body = (
                "bin",
                "*",
                body,
                self.operand([len(extents) - 1, *([len(spatial) - 1] * (kind == "product"))], extents),
            )
        combine = rng.choice(["sum", "sum", "max"])
        result = self.new_result(spatial)
        init = 0 if combine == "sum" else -60_000
        return Stage(result.name, spatial, reduce, combine, init, body), replace(result)
