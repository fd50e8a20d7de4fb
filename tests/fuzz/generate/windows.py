"""Random sliding windows: as TVM's operators write them, and off by something in every place where one reads them."""

import random
from collections.abc import Sequence
from dataclasses import replace

from .functions import composed
from .recipe import Buffer, Expr, Function, Stage, bounds, plus, span, times

LOWEST = -3.4028234663852886e38


def conjunction(conditions: list[Expr]) -> Expr:
    """All of some conditions."""
    whole = conditions[0]
    for c in conditions[1:]:
        whole = ("and", whole, c)
    return whole


class WindowWriter:
    """Writes one window: perhaps padding, a reduction, perhaps an epilogue.

    In about half of the cases all is as an operator would have it; in the others `odd` lets some parts differ.
    """

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name = rng, name
        self.oddness = rng.choice([0.0, 0.15, 0.3])
        self.rank = rng.choice([1, 2, 2, 2])
        self.weighted = rng.random() < 0.7
        self.batch = rng.choice([1, 1, 2])
        self.groups = rng.choice([1, 1, 2, 3])
        self.channels, self.filters = rng.choice([1, 2, 3, 5]), rng.choice([1, 2, 4])
        if not self.weighted:
            self.channels = self.filters = 1
        small = self.rank == 2
        self.out = [rng.choice([1, 4, 6, 9, 13] if small else [1, 7, 14, 20]) for _ in range(self.rank)]
        self.kernel = [rng.choice([1, 1, 2, 3, 3, 4]) for _ in range(self.rank)]
        if rng.random() < 0.2:
            self.kernel = [1] * self.rank
        self.stride = [rng.choice([1, 1, 1, 2, 3]) for _ in range(self.rank)]
        self.dilation = [rng.choice([1, 1, 1, 2]) for _ in range(self.rank)]
        self.inputs: list[Buffer] = []
        self.scratch: list[Buffer] = []
        self.stages: list[Stage] = []
        self.upsampled = False

    def odd(self) -> bool:
        """Whether the next part is not as an operator has it."""
        return self.rng.random() < self.oddness

    def new_input(self, shape: tuple[int, ...]) -> Buffer:
        buffer = Buffer(f"{self.name}_x{len(self.inputs)}", "float32", shape)
        self.inputs.append(buffer)
        return buffer

    def new_result(self, shape: tuple[int, ...]) -> Buffer:
        buffer = Buffer(f"{self.name}_b{len(self.scratch)}", "float32", shape)
        self.scratch.append(buffer)
        return buffer

    # What the window reads

    def lines(self, extents: tuple[int, ...]) -> list[Expr]:
        """The image's index in each dimension: position times stride, tap times dilation, an offset."""
        rng, found = self.rng, []
        first_tap = len(extents) - self.rank
        for d in range(self.rank):
            position, tap = ("var", 2 + d), ("var", first_tap + d)
            line = ("add", times(position, self.stride[d]), times(tap, self.dilation[d]))
            if self.odd():
                kinds: list[Expr] = [
                    plus(line, rng.randint(1, 3)),
                    ("min", line, bounds(line, extents)[1] - 1),
                    ("max", line, rng.randint(1, 3)),
                    ("add", line, ("div", position, rng.choice([2, 6, 8]))),
                    ("add", line, ("div", tap, 2)),
                    ("mod", line, rng.choice([3, 7, 16])),
                    ("add", times(position, -1), times(tap, self.dilation[d])),
                    ("add", times(position, self.stride[d]), times(tap, -self.dilation[d])),
                    times(position, self.stride[d]),
                    ("add", line, ("var", first_tap + rng.randrange(self.rank))),
                    ("add", line, ("var", 1)),
                    composed(rng, line, extents, 2),
                ]
                line = rng.choice(kinds)
            low = span(line, extents)[0]
            found.append(plus(line, -low) if low < 0 else line)
        return found

    def channel(self) -> Expr:
        """The image's channel of a filter, and of a channel of its group."""
        rng = self.rng
        if not self.weighted:
            return ("var", 1)
        group: Expr = ("div", ("var", 1), self.filters) if self.filters > 1 else ("var", 1)
        inner: Expr = ("var", 2 + self.rank)
        plain = ("add", times(group, self.channels), inner) if self.groups > 1 else inner
        if self.groups > 1 and self.channels == 1:
            plain = group
        if not self.odd() or self.groups == 1:
            return plain
        kinds: list[Expr] = [
            ("add", times(("mod", ("var", 1), self.groups), self.channels), inner),
            ("add", group, times(inner, self.groups)),
            ("add", times(("div", plus(("var", 1), 1), self.filters), self.channels), inner),
            ("min", plain, rng.randint(1, self.groups * self.channels)),
            ("add", plus(times(group, -self.channels), (self.groups - 1) * self.channels), inner),
        ]
        return rng.choice(kinds)

    def image(self, index: list[Expr], extents: tuple[int, ...]) -> Buffer:
        """The buffer that a window reads with these indices: an input, a padded one, or an upsampled one."""
        rng = self.rng
        shape = tuple(span(i, extents)[1] + 1 + (rng.choice([1, 2]) if self.odd() else 0) for i in index)
        how = rng.choice(["plain", "padded", "padded", "upsampled"])
        if how == "plain":
            return self.new_input(shape)
        if how == "upsampled" and self.weighted:
            return self.pad(shape, self.upsample(shape))
        top = [rng.randint(0, min(2, extent - 1)) for extent in shape[2:]]
        inner = [extent - t - rng.randint(0, min(2, extent - 1 - t)) for extent, t in zip(shape[2:], top, strict=True)]
        source = self.new_input(tuple(n + (1 if self.odd() else 0) for n in (*shape[:2], *inner)))
        return self.pad(shape, replace(source, shape=(*shape[:2], *inner)), top)

    def pad(self, shape: tuple[int, ...], source: Buffer, top: Sequence[int] = ()) -> Buffer:
        """A block that pads a buffer: a box of it with a fill around it, or some other choice of elements."""
        rng = self.rng
        room = [have - need for have, need in zip(shape, source.shape, strict=True)]
        low = [0, 0, *(top or [rng.randint(0, r) for r in room[2:]])]
        high = [first + extent for first, extent in zip(low, source.shape, strict=True)]
        conditions: list[Expr] = []
        index: list[Expr] = []
        for axis, extent in enumerate(shape):
            first, end, inside = low[axis], high[axis], plus(("var", axis), -low[axis])
            if self.odd():
                first, end = rng.choice([(first + 1, end), (first, end - 1), (first + 2, end)])
            if first:
                bound, var = ("num", first), ("var", axis)
                conditions.append(rng.choice([("cmp", ">=", var, bound), ("cmp", "<=", bound, var)]))
            if end < extent:
                conditions.append(("cmp", "<", ("var", axis), ("num", end)))
            if self.odd() and axis > 1:
                last = source.shape[axis] - 1
                inside = rng.choice(
                    [plus(times(inside, -1), last), ("min", inside, max(0, last - 1)), ("max", inside, min(1, last))]
                )
            index.append(inside)
        if self.odd():
            axis = rng.randrange(len(shape))
            conditions.append(rng.choice([
                ("cmp", "!=", ("var", axis), ("num", 1)),
                ("cmp", "==", ("mod", ("var", axis), 2), ("num", 0)),
                ("cmp", "<", ("add", ("var", axis), ("var", len(shape) - 1)), ("num", rng.randint(2, 9))),
                ("or", ("cmp", "<", ("var", axis), ("num", 3)), ("cmp", "==", ("var", 0), ("num", 5))),
            ]))  # fmt: skip
        load: Expr = ("load", source.name, *index)
        fill = 0.0 if self.weighted or self.combine != "max" else LOWEST
        if self.odd():
            fill = rng.choice([1.0, -2.0, 0.0])
        padded = self.new_result(shape)
        body: Expr = ("if", conjunction(conditions), load, ("lit", "float32", fill)) if conditions else load
        self.stages.append(Stage(padded.name, shape, (), "", 0, body))
        return padded

    def upsample(self, shape: tuple[int, ...]) -> Buffer:
        """An image with zeros between its elements, at most as large as a shape."""
        rng = self.rng
        self.upsampled = True
        factors = [rng.choice([1, 2, 2, 3]) for _ in shape[2:]]
        inner = [(extent - 1) // f + 1 for extent, f in zip(shape[2:], factors, strict=True)]
        data = self.new_input((*shape[:2], *inner))
        extents = (*shape[:2], *((i - 1) * f + 1 for i, f in zip(inner, factors, strict=True)))
        if self.odd():
            extents = (*extents[:-1], max(1, extents[-1] - rng.randint(1, 3)))
        index: list[Expr] = [("var", 0), ("var", 1)]
        conditions: list[Expr] = []
        for d, f in enumerate(factors):
            axis: Expr = ("var", 2 + d)
            index.append(("div", axis, f) if f > 1 else axis)
            if f > 1 and not self.odd():
                conditions.append(("cmp", "==", ("mod", axis, f), ("num", rng.randint(1, f - 1) if self.odd() else 0)))
        zero = ("lit", "float32", 1.0 if self.odd() else 0.0)
        load: Expr = ("load", data.name, *index)
        body = ("if", conjunction(conditions), load, zero) if conditions else load
        result = self.new_result(extents)
        self.stages.append(Stage(result.name, extents, (), "", 0, body))
        return result

    # The window

    def term(self, extents: tuple[int, ...]) -> Expr:
        rng, first_tap = self.rng, len(extents) - self.rank
        index: list[Expr] = [("var", 0), self.channel(), *self.lines(extents)]
        image = self.image(index, extents)
        load: Expr = ("load", image.name, *index)
        if not self.weighted:
            return load
        f, c = ("var", 1), ("var", 2 + self.rank)
        taps: list[Expr] = [("var", first_tap + d) for d in range(self.rank)]
        flipped = self.upsampled or self.odd()
        if flipped and rng.random() < 0.8:
            taps = [plus(times(t, -1), k - 1) for t, k in zip(taps, self.kernel, strict=True)]
        if self.odd():
            d = rng.randrange(self.rank)
            taps[d] = rng.choice([plus(taps[d], 1), times(taps[d], 2), ("min", taps[d], 1)])
        where: list[Expr] = [*((c, f) if flipped else (f, c)), *taps]
        shape = tuple(bounds(i, extents)[1] + 1 + (1 if self.odd() else 0) for i in where)
        weight = self.new_input(shape)
        product: Expr = ("bin", "*", load, ("load", weight.name, *where))
        if self.odd():
            product = rng.choice([
                ("bin", "*", product, ("lit", "float32", 0.5)),
                ("bin", "*", load, load),
                ("bin", "*", ("load", weight.name, *where), load),
                ("bin", "+", load, ("load", weight.name, *where)),
            ])  # fmt: skip
        return product

    def function(self) -> Function:
        rng = self.rng
        self.combine = "sum" if self.weighted else rng.choice(["sum", "max", "max", "min"])
        spatial = (self.batch, self.groups * self.filters, *self.out)
        reduce = (*((self.channels,) if self.weighted else ()), *self.kernel)
        init = {"sum": 0.0, "max": LOWEST, "min": -LOWEST}[self.combine]
        if self.odd():
            init = rng.choice([1.0, -2.0, 0.0, init])
        body = self.term((*spatial, *reduce))
        result = self.new_result(spatial)
        stage = Stage(result.name, spatial, reduce, self.combine, init, body)
        if self.odd():
            stage = replace(stage, term_first=True)
        if self.odd():
            axis = rng.randrange(len(spatial) + len(reduce))
            stage = replace(stage, where=("cmp", "<", ("var", axis), ("num", max(1, stage.spatial[0]))))
        if self.odd() and spatial[0] == 1:
            stage = replace(
                stage, order=tuple(rng.sample(range(len(stage.spatial) + len(reduce)), len(spatial) + len(reduce)))
            )
        self.stages.append(stage)
        if rng.random() < 0.5 and not stage.where:
            self.epilogue(result)
        outs = [self.scratch.pop()]
        if self.odd() and self.scratch:
            outs.insert(0, self.scratch.pop())
        return Function(
            self.name, tuple(self.inputs), tuple(self.scratch), tuple(outs), tuple(self.stages), rng.random() < 0.7
        )

    def epilogue(self, result: Buffer) -> None:
        """What is done with each sum."""
        rng, shape = self.rng, result.shape
        axes: list[Expr] = [("var", a) for a in range(len(shape))]
        sums: Expr = ("load", result.name, *axes)
        if self.odd():
            d = rng.randrange(len(shape))
            moved = list(axes)
            moved[d] = rng.choice(
                [plus(times(axes[d], -1), shape[d] - 1), ("min", plus(axes[d], 1), shape[d] - 1), ("num", 0)]
            )
            other: Expr = ("load", result.name, *moved)
            sums = rng.choice([other, ("bin", "+", sums, other)])
        kind = rng.choice(["bias", "relu", "residual", "row", "scale"])
        body: Expr = sums
        if kind == "relu":
            body = ("bin", "max", sums, ("lit", "float32", 0.0))
        elif kind == "bias":
            bias, zeros = self.new_input((1, shape[1], *[1] * self.rank)), [("num", 0)] * self.rank
            body = ("bin", "+", sums, ("load", bias.name, ("num", 0), ("var", 1), *zeros))
        elif kind == "residual":
            body = ("bin", "+", sums, ("load", self.new_input(shape).name, *axes))
        elif kind == "row":
            body = ("bin", "*", sums, ("load", self.new_input((shape[-1],)).name, axes[-1]))
        if self.odd() and self.scratch[0].name != result.name:
            padded = self.scratch[0]
            inside = [("min", axis, extent - 1) for axis, extent in zip(axes, padded.shape, strict=True)]
            body = ("bin", "+", body, ("load", padded.name, *inside))
        extents = shape
        if self.odd():
            extents = (*shape[:-1], shape[-1] + 2)
            body = ("if", ("cmp", "<", axes[-1], ("num", shape[-1])), body, ("lit", "float32", 3.0))
        stage = Stage(self.new_result(extents).name, extents, (), "", 0, body)
        if self.odd():
            stage = replace(stage, split=rng.choice([2, 3]))
        self.stages.append(stage)
