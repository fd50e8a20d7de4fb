"""Random functions for the kernel rules: windows, products, reductions and functions of elements."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

from ..case import ScriptCase
from .functions import Writer
from .recipe import Buffer, Expr, Function, Stage, bounds
from .scripts import Line, Module, feeds_of
from .windows import LOWEST, WindowWriter, conjunction, plus, times


class ProductWriter(WindowWriter):
    """Writes a matrix product: operands in any order of axes, strided, shifted, reversed, broadcast or scaled."""

    def operand(self, axes: list[int], extents: tuple[int, ...]) -> Expr:
        rng = self.rng
        if rng.random() < 0.3:
            rng.shuffle(axes)
        index: list[Expr] = [("var", a) for a in axes]
        if self.odd():
            d = rng.randrange(len(index))
            other: Expr = ("var", rng.randrange(len(extents)))
            last = extents[axes[d]] - 1
            index[d] = rng.choice([
                plus(index[d], rng.randint(1, 3)), times(index[d], 2), plus(times(index[d], -1), last),
                ("div", index[d], 2), ("mod", index[d], 3), ("add", index[d], other), ("num", 0), other,
            ])  # fmt: skip
        shape = tuple(bounds(i, extents)[1] + 1 + (1 if self.odd() else 0) for i in index)
        return ("load", self.new_input(shape).name, *index)

    def function(self) -> Function:
        rng = self.rng
        self.dtype = rng.choice(["float32"] * 5 + ["float64", "int32", "float16"])
        batch = [] if rng.random() < 0.6 else [rng.choice([1, 2, 3])]
        sizes = (1, 3, 4, 8, 12, 16, 17, 24, 32)
        rows, columns = rng.choice((*sizes, 1)), rng.choice((*sizes, 64))
        depth = [rng.choice((*sizes, 64))] + ([rng.choice([1, 2, 3])] if rng.random() < 0.2 else [])
        spatial, extents = (*batch, rows, columns), (*batch, rows, columns, *depth)
        i, j = len(batch), len(batch) + 1
        inner = list(range(j + 1, len(extents)))
        outer = list(range(len(batch)))
        a = self.operand([*outer, i, *inner], extents)
        b = self.operand([*(outer if rng.random() < 0.7 else []), *inner, j], extents)
        body: Expr = ("bin", "*", a, b)
        if self.odd():
            one: Expr = ("lit", self.dtype, 2)
            body = rng.choice([
                ("bin", "*", body, one), ("bin", "*", ("bin", "+", a, one), b), ("bin", "*", a, a),
                ("bin", "*", a, ("bin", "*", b, b)), ("bin", "+", a, b), ("bin", "*", a, ("bin", "max", b, one)),
            ])  # fmt: skip
        result = self.new_result(spatial)
        init = rng.choice([1, -2]) if self.odd() else 0
        stage = Stage(result.name, spatial, tuple(depth), "sum", init, body, term_first=self.odd())
        return self.finished(stage, result)

    def new_input(self, shape: tuple[int, ...]) -> Buffer:
        return self.typed(super().new_input(shape), self.inputs)

    def new_result(self, shape: tuple[int, ...]) -> Buffer:
        return self.typed(super().new_result(shape), self.scratch)

    def typed(self, buffer: Buffer, among: list[Buffer]) -> Buffer:
        """The same buffer with the function's type."""
        among[-1] = replace(buffer, dtype=self.dtype)
        return among[-1]

    def finished(self, stage: Stage, result: Buffer) -> Function:
        """The function of a reduction: perhaps with another order of loops, a predicate, an epilogue."""
        rng = self.rng
        extents = (*stage.spatial, *stage.reduce)
        if self.odd() and extents:
            stage = replace(stage, order=tuple(rng.sample(range(len(extents)), len(extents))))
        elif self.odd() and extents:
            stage = replace(stage, split=rng.choice([2, 3, 5]))
        elif self.odd() and extents:
            axis = rng.randrange(len(extents))
            stage = replace(stage, where=("cmp", "<", ("var", axis), ("num", rng.randint(1, extents[axis]))))
        if self.odd():
            stage = replace(stage, hidden=(rng.choice(["reads", "writes"]),))
        if self.odd() and stage.spatial:
            stage = self.elsewhere(stage, result)
            result = self.scratch[-1]
        self.stages.append(stage)
        if rng.random() < 0.5 and not stage.where and not stage.place:
            self.after(result)
        count = 2 if self.odd() and len(self.scratch) > 1 else 1
        made = tuple(self.scratch)
        return Function(
            self.name, tuple(self.inputs), made[:-count], made[-count:], tuple(self.stages), rng.random() < 0.6
        )

    def elsewhere(self, stage: Stage, result: Buffer) -> Stage:
        """The same block, whose axes are not the indices that it writes."""
        rng = self.rng
        place: list[Expr] = [("var", a) for a in range(len(stage.spatial))]
        d = rng.randrange(len(place))
        place[d] = rng.choice([
            times(place[d], 2), plus(times(place[d], -1), stage.spatial[d] - 1), ("div", place[d], 2),
            plus(place[d], 1), ("num", 0),
        ])  # fmt: skip
        if rng.random() < 0.4:
            rng.shuffle(place)
        shape = tuple(bounds(p, stage.spatial)[1] + 1 for p in place)
        self.scratch[-1] = replace(result, shape=shape)
        return replace(stage, place=tuple(place))

    def after(self, result: Buffer) -> None:
        """What is done with each result; perhaps it is read elsewhere or twice."""
        rng, shape = self.rng, result.shape
        axes: list[Expr] = [("var", a) for a in range(len(shape))]
        body: Expr = ("load", result.name, *axes)
        if self.odd() and shape:
            d = rng.randrange(len(shape))
            moved = list(axes)
            moved[d] = rng.choice([
                plus(times(axes[d], -1), shape[d] - 1), ("min", plus(axes[d], 1), shape[d] - 1), ("num", 0),
                ("mod", axes[d], 2) if shape[d] > 1 else axes[d], ("div", axes[d], 2),
            ])  # fmt: skip
            other: Expr = ("load", result.name, *moved)
            body = rng.choice([other, ("bin", "-", body, other), ("bin", "max", other, body)])
        if shape and rng.random() < 0.6:
            body = ("bin", "+", body, ("load", self.new_input((shape[-1],)).name, axes[-1]))
        if self.dtype.startswith("float") and rng.random() < 0.3:
            body = ("bin", "max", body, ("lit", self.dtype, 0.0))
        extents = shape
        if self.odd() and shape:
            d = rng.randrange(len(shape))
            extents = (*shape[:d], shape[d] + 2, *shape[d + 1 :])
            cut: Expr = ("min", axes[d], shape[d] - 1)
            body = rng.choice([
                ("if", ("cmp", "<", axes[d], ("num", shape[d])), body, ("lit", self.dtype, 3)),
                replaced(body, axes[d], cut), replaced(body, axes[d], ("mod", axes[d], shape[d])),
                ("select", ("cmp", "<", axes[d], ("num", 1)), ("lit", self.dtype, 3), replaced(body, axes[d], cut)),
            ])  # fmt: skip
        self.stages.append(Stage(self.new_result(extents).name, extents, (), "", 0, body))


def replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    """An expression with another index in an index's place."""
    if e == old:
        return new
    return tuple(replaced(part, old, new) if isinstance(part, tuple) else part for part in e)


class ReductionWriter(ProductWriter):
    """Writes a reduction of any kind, or two of them in a row, as a variance has."""

    def function(self) -> Function:
        rng = self.rng
        self.dtype = rng.choice(["float32"] * 5 + ["float64", "int32", "float16"])
        sizes = (1, 1, 2, 3, 4, 7, 8, 16, 33, 64)
        spatial = tuple(rng.choice(sizes) for _ in range(rng.choice([0, 1, 1, 2, 2, 3])))
        reduce = tuple(rng.choice(sizes) for _ in range(rng.choice([1, 1, 2])))
        while math.prod(spatial) * math.prod(reduce) > 30_000:
            spatial = spatial[1:]
        extents = (*spatial, *reduce)
        body = self.operand(list(range(len(extents))), extents)
        if rng.random() < 0.4:
            body = ("bin", rng.choice(["*", "+", "max"]), body, self.operand([len(extents) - 1], extents))
        if self.odd():
            axis = rng.randrange(len(extents))
            other = ("lit", self.dtype, rng.choice([0, 1]))
            body = ("if", ("cmp", rng.choice(["<", ">", "!="]), ("var", axis), ("num", rng.randint(0, 4))), body, other)
        combine = rng.choice(["sum", "sum", "max", "min", "prod" if math.prod(reduce) <= 8 else "max"])
        init = {"sum": 0, "prod": 1, "max": LOWEST, "min": -LOWEST}[combine]
        if self.dtype != "float32" and combine in ("max", "min"):
            init = -60_000 if combine == "max" else 60_000
        if self.odd():
            init = rng.choice([0, 1, -2])
        result = self.new_result(spatial)
        stage = Stage(result.name, spatial, reduce, combine, init, body, term_first=self.odd())
        if rng.random() < 0.35 and self.dtype.startswith("float"):
            self.stages.append(stage)
            loads = [b for b in self.inputs if body[0] == "load" and b.name == body[1]]
            away: Expr = ("load", result.name, *(("var", a) for a in range(len(spatial))))
            term: Expr = ("bin", "-", body if loads else ("lit", self.dtype, 1), away)
            second = self.new_result(spatial)
            stage = Stage(second.name, spatial, reduce, "sum", 0, ("bin", "*", term, term))
            result = second
            if rng.random() < 0.5:
                self.stages.append(stage)
                third = self.new_result(extents)
                rows: Expr = ("load", second.name, *(("var", a) for a in range(len(spatial))))
                self.stages.append(Stage(third.name, extents, (), "", 0, ("bin", "*", term, rows)))
                made = tuple(self.scratch)
                return Function(
                    self.name, tuple(self.inputs), made[:-1], made[-1:], tuple(self.stages), rng.random() < 0.6
                )
        return self.finished(stage, result)


class ElementwiseWriter(ProductWriter):
    """Writes a function of elements: quotients, remainders, selections, repeated, reversed and transposed reads."""

    def function(self) -> Function:
        rng = self.rng
        self.dtype = rng.choice(["float32"] * 5 + ["int32", "float16"])
        shape = tuple(rng.choice((1, 2, 3, 4, 5, 8, 16, 24, 48)) for _ in range(rng.choice([0, 1, 2, 2, 3])))
        while math.prod(shape) > 20_000:
            shape = shape[1:]
        axes = list(range(len(shape)))
        kept: list[Expr] = []
        for _ in range(rng.choice([1, 1, 2])):
            body: Expr = self.operand(axes[:], shape) if axes else ("load", self.new_input((1,)).name, ("num", 0))
            for _ in range(rng.choice([0, 1, 2])):
                some = [a for a in axes if rng.random() < 0.7] or axes[:1]
                other = self.operand(some, shape) if axes else body
                kind = rng.choice(["+", "*", "max", "select", "if"])
                if kind in ("select", "if") and axes:
                    conditions = [
                        (
                            "cmp",
                            rng.choice(["<", ">=", "=="]),
                            rng.choice([("var", a), ("mod", ("var", a), 2)]),
                            ("num", rng.randint(0, 4)),
                        )
                        for a in some
                    ]
                    body = (kind, conjunction(conditions), body, other)
                elif kind in ("+", "*", "max"):
                    body = ("bin", kind, body, other)
            kept.append(body)
        stages = [Stage(self.new_result(shape).name, shape, (), "", 0, body) for body in kept]
        self.stages += stages[:-1]
        results = len(stages)
        function = self.finished(stages[-1], self.scratch[-1])
        if results == 2 and len(function.results) == 1:
            first = stages[0].target
            out = next(b for b in function.scratch if b.name == first)
            rest = tuple(b for b in function.scratch if b is not out)
            function = replace(function, scratch=rest, results=(out, *function.results))
        return function


class AnyWriter:
    """Writes a function of several blocks, as `functions.Writer` does, to look at it by itself."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.function = Writer(rng, name).function


WITHOUT_WEIGHTS, WITH_WEIGHTS = "kernels", "kernels of weights"
"""Entries of modules: whether all inputs but the first are constants."""

WRITERS: dict[str, Callable[..., object]] = {
    "window": WindowWriter,
    "product": ProductWriter,
    "reduction": ReductionWriter,
    "elementwise": ElementwiseWriter,
    "any": AnyWriter,
}


def kernel_case(seed: int) -> ScriptCase:
    """A function, and values for its parameters."""
    rng = random.Random(f"kernels/{seed}")
    kind = rng.choice(["window", "window", "window", "product", "product", "reduction", "elementwise", "any"])
    function: Function = WRITERS[kind](rng, "f0").function()  # type: ignore[attr-defined]
    params = tuple(Buffer(f"p{i}", b.dtype, b.shape) for i, b in enumerate(function.inputs))
    fields = tuple(Buffer(f"y0_{i}", b.dtype, b.shape) for i, b in enumerate(function.results))
    line = Line(fields, "", tuple(p.name for p in params), function.name)
    entry = rng.choice([WITHOUT_WEIGHTS, WITH_WEIGHTS, WITH_WEIGHTS])
    module = Module(entry, params, (function,), (line,))
    return ScriptCase("kernels", seed, module, feeds_of(module, seed))
