"""Random matrix products, and what may stand around any reduction."""

from dataclasses import replace

from .functions import composed
from .recipe import Buffer, Expr, Function, Stage, bounds, plus, span, times
from .windows import WindowWriter


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
                composed(rng, index[d], extents), composed(rng, index[d], extents),
            ])  # fmt: skip
            index[d] = plus(index[d], max(0, -span(index[d], extents)[0]))
        shape = tuple(span(i, extents)[1] + 1 + (1 if self.odd() else 0) for i in index)
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
