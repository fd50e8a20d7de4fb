"""Random functions for the kernel rules: windows, products, reductions and functions of elements."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

from ..case import ScriptCase
from .functions import Writer
from .products import ProductWriter
from .recipe import Buffer, Expr, Function, Stage
from .scripts import Line, Module, feeds_of
from .views import ViewWriter
from .windows import LOWEST, WindowWriter, conjunction


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
    "views": ViewWriter,
    "any": AnyWriter,
}


def kernel_case(seed: int) -> ScriptCase:
    """A function, and values for its parameters."""
    rng = random.Random(f"kernels/{seed}")
    kinds = ["window", "window", "window", "product", "product", "reduction", "elementwise", "any"]
    kind = rng.choice([*kinds, *["views"] * 6])
    function: Function = WRITERS[kind](rng, "f0").function()  # type: ignore[attr-defined]
    params = tuple(Buffer(f"p{i}", b.dtype, b.shape) for i, b in enumerate(function.inputs))
    fields = tuple(Buffer(f"y0_{i}", b.dtype, b.shape) for i, b in enumerate(function.results))
    line = Line(fields, "", tuple(p.name for p in params), function.name)
    entry = rng.choice([WITHOUT_WEIGHTS, WITH_WEIGHTS, WITH_WEIGHTS])
    module = Module(entry, params, (function,), (line,))
    return ScriptCase("kernels", seed, module, feeds_of(module, seed))
