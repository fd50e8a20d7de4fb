"""Random functions (`recipe.Function`): affine and other reads, guards, reductions, casts, several blocks."""

import math
import random

from .recipe import Buffer, DataError, Expr, Function, Stage, bounds, plus, span, times

_FLOAT_CALLS = ("exp", "tanh", "sqrt", "sigmoid", "abs", "floor", "erf", "log", "round", "sin")
_LARGEST = 2_000
"""Of the span of an index that is made larger still."""


class Writer:
    """Writes one function; inputs come into being as they are read."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name = rng, name
        self.inputs: list[Buffer] = []
        self.made: list[Buffer] = []
        self.extents: tuple[int, ...] = ()
        self.spatial = 0

    def function(self) -> Function:
        rng = self.rng
        stages: list[Stage] = []
        for number in range(rng.choice([1, 1, 2, 2, 3, 4])):
            stage = self.stage(number)
            stages.append(stage)
            self.made.append(self.target)
            if rng.random() < 0.15 and stage.spatial:
                stages.append(self.overwrite(stage))
        count = rng.choice([1, 1, 1, 2])
        made = tuple(self.made)
        return Function(self.name, tuple(self.inputs), made[:-count], made[-count:], tuple(stages), rng.random() < 0.6)

    def stage(self, number: int) -> Stage:
        rng = self.rng
        sizes = (1, 1, 2, 3, 4, 5, 7, 8, 12, 16, 33)
        spatial = [rng.choice(sizes) for _ in range(rng.choice([0, 1, 2, 2, 3, 4]))]
        while math.prod(spatial) > 1024:
            spatial.remove(max(spatial))
        reduce = [rng.choice((1, 2, 3, 3, 5, 8, 16)) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))]
        while math.prod(spatial) * math.prod(reduce) > 50_000:
            reduce.remove(max(reduce))
        dtype = rng.choice(["float32"] * 6 + ["float64", "int32", "int64", "float16"])
        self.target = Buffer(f"{self.name}_b{number}", dtype, tuple(spatial))
        self.extents, self.spatial = (*spatial, *reduce), len(spatial)
        combine = rng.choice(["sum", "sum", "sum", "max", "min"]) if reduce else ""
        if combine == "sum" and math.prod(reduce) <= 8 and dtype.startswith("float") and rng.random() < 0.2:
            combine = "prod"
        neutral = {"max": -1e4, "min": 1e4, "prod": 1}.get(combine, 0)
        init = neutral if rng.random() < 0.8 else rng.choice([0, 1, -2])
        body = self.value(dtype, rng.choice([0, 1, 2, 3]))
        split = rng.choice([1, 1, *(d for d in (2, 3, 4, 8) if spatial and spatial[0] % d == 0)]) if spatial else 1
        order = list(range(len(self.extents) + (split > 1)))
        if rng.random() < 0.2:
            rng.shuffle(order)
        return Stage(self.target.name, tuple(spatial), tuple(reduce), combine, init, body, (), split, tuple(order))

    def overwrite(self, stage: Stage) -> Stage:
        """A second block that writes a part of the same buffer."""
        rng = self.rng
        offset = tuple(rng.randint(0, d - 1) for d in stage.spatial)
        part = tuple(rng.randint(1, d - o) for d, o in zip(stage.spatial, offset, strict=True))
        self.extents, self.spatial = part, len(part)
        held, self.made = self.made, [b for b in self.made if b.name != stage.target]
        body = self.value(self.target.dtype, 1)
        self.made = held
        return Stage(stage.target, part, (), "", 0, body, offset)

    # Values

    def value(self, dtype: str, depth: int) -> Expr:
        rng = self.rng
        if depth == 0:
            return self.leaf(dtype)
        kind = rng.choice(["bin", "bin", "call", "cast", "if", "select", "leaf"])
        if kind == "bin":
            ops = ["+", "-", "*", "max", "min"]
            if dtype.startswith("int") and depth > 1:
                ops.remove("*")
            op = rng.choice(ops)
            return ("bin", op, self.value(dtype, depth - 1), self.value(dtype, 0 if op == "*" else depth - 1))
        if kind == "call" and dtype in ("float32", "float64"):
            return self.call(dtype, self.value(dtype, depth - 1))
        if kind == "cast":
            other = rng.choice([d for d in ("float32", "int32", "int64", "float64", "int8", "bool") if d != dtype])
            if other in ("int8", "bool"):
                return ("cast", dtype, self.leaf(other))
            inner = self.value(other, depth - 1)
            if other.startswith("float") and dtype.startswith("int"):
                inner = ("bin", "max", ("bin", "min", inner, ("lit", other, 100.0)), ("lit", other, -100.0))
            return ("cast", dtype, inner)
        if kind in ("if", "select") and self.extents:
            return (kind, self.condition(), self.value(dtype, depth - 1), self.value(dtype, depth - 1))
        return self.leaf(dtype)

    def call(self, dtype: str, inner: Expr) -> Expr:
        """A function where it is defined."""
        name = self.rng.choice(_FLOAT_CALLS)
        if name == "exp":
            inner = ("bin", "min", inner, ("lit", dtype, 4.0))
        if name in ("sqrt", "log"):
            inner = ("bin", "+", ("call", "abs", inner), ("lit", dtype, 0.5))
        return ("call", name, inner)

    def leaf(self, dtype: str) -> Expr:
        rng = self.rng
        if rng.random() < 0.1:
            return (
                "lit",
                dtype,
                {"bool": True}.get(dtype, rng.randint(-3, 3) if "int" in dtype else rng.choice([0.5, -1.0, 2.0])),
            )
        if self.extents and dtype not in ("bool", "int8") and rng.random() < 0.06:
            return ("axis", rng.randrange(len(self.extents)), dtype)
        return self.load(dtype)

    def load(self, dtype: str) -> Expr:
        """A read: of what an earlier block made, of an input, or of a new input that fits the index."""
        rng = self.rng
        known = [b for b in (*self.made, *self.made, *self.inputs) if b.dtype == dtype]
        if not known or rng.random() < 0.35:
            rank = rng.choice([1, 1, 2, 2, 3, 4]) if self.extents else 1
            index = [self.index(False) for _ in range(rank)]
            # A window at a border begins before the buffer: shift it in.
            index = [plus(i, -low) if (low := self.ends(i)[0]) < 0 else i for i in index]
            shape = tuple(self.ends(i)[1] + 1 + rng.choice([0, 0, 0, 1, 3]) for i in index)
            if math.prod(shape) <= 20_000:
                buffer = Buffer(f"{self.name}_x{len(self.inputs)}", dtype, shape)
                self.inputs.append(buffer)
                return ("load", buffer.name, *index)
            if not known:
                return ("lit", dtype, 1 if "int" in dtype or dtype == "bool" else 1.0)
        buffer = rng.choice(known)
        if len(buffer.shape) == self.spatial and buffer.shape == self.extents[: self.spatial] and rng.random() < 0.6:
            return ("load", buffer.name, *(("var", a) for a in range(self.spatial)))
        return self.guarded(buffer)

    def guarded(self, buffer: Buffer) -> Expr:
        """A read in bounds: by the range of its indices, else by clamping, wrapping or a condition."""
        rng = self.rng
        index, guards = [], []
        for extent in buffer.shape:
            i = self.index(True)
            low, high = self.ends(i)
            if low < 0 or high >= extent:
                how = rng.choice(["mod", "clamp", "if"])
                if how == "mod":
                    i = ("mod", i, extent)
                elif how == "clamp":
                    i = ("max", ("min", i, extent - 1), 0)
                else:
                    guards += [("cmp", "<", i, ("num", extent))] * (high >= extent)
                    guards += [("cmp", ">=", i, ("num", 0))] * (low < 0)
            index.append(i)
        load: Expr = ("load", buffer.name, *index)
        if not guards:
            return load
        condition = guards[0]
        for g in guards[1:]:
            condition = ("and", condition, g)
        pad = {"bool": False}.get(buffer.dtype, rng.choice([0, 1]) if "int" in buffer.dtype else rng.choice([0.0, 1.0]))
        return ("if", condition, load, ("lit", buffer.dtype, pad))

    # Indices

    def ends(self, i: Expr) -> tuple[int, int]:
        """The smallest and the largest value of an index; what it may have, where that depends on data."""
        try:
            return span(i, self.extents)
        except DataError:
            return bounds(i, self.extents)

    def index(self, shifts: bool) -> Expr:
        """An index: mostly affine in a few axes."""
        rng = self.rng
        if not self.extents:
            return ("num", 0)
        axes = range(len(self.extents))
        i: Expr = ("var", rng.choice(axes))
        what = rng.random()
        if what < 0.3 and len(axes) > 1:
            other: Expr = ("var", rng.choice(axes))
            stride = rng.choice([1, 1, 2, 3])
            i = ("add", ("mul", i, stride) if stride > 1 else i, ("mul", other, 2) if rng.random() < 0.2 else other)
        elif what < 0.4:
            i = (rng.choice(["div", "mod"]), i, rng.choice([2, 3, 4]))
        elif what < 0.5:
            i = ("mul", i, rng.choice([-1, 2, 3]))
        elif what < 0.55:
            i = (rng.choice(["min", "max"]), i, rng.randint(0, 4))
        elif what < 0.6:
            i = self.data_index()
        elif what < 0.64:
            i = ("num", rng.randint(0, 3))
        elif what < 0.76:
            i = composed(rng, i, self.extents)
        if rng.random() < (0.4 if shifts else 0.15):
            i = ("add", i, ("num", rng.choice([-2, -1, 1, 2])))
        return i

    def data_index(self) -> Expr:
        axis = self.rng.randrange(len(self.extents))
        buffer = Buffer(f"{self.name}_x{len(self.inputs)}", "int32", (self.extents[axis],))
        self.inputs.append(buffer)
        return ("data", buffer.name, self.rng.choice([2, 3, 5, 8]), ("var", axis))

    def condition(self) -> Expr:
        rng = self.rng
        right = ("num", rng.randint(0, 4)) if rng.random() < 0.7 else self.affine()
        one: Expr = ("cmp", rng.choice(["<", "<=", ">", ">=", "==", "!="]), self.affine(), right)
        return (rng.choice(["and", "or"]), one, self.condition()) if rng.random() < 0.25 else one

    def affine(self) -> Expr:
        i: Expr = ("var", self.rng.randrange(len(self.extents)))
        return ("mod", i, 2) if self.rng.random() < 0.2 else i


def mirrored(i: Expr, before: int, extent: int) -> Expr:
    """Where a position in an axis with mirrored edges is in the axis without."""
    first: Expr = ("cmp", "<", i, ("num", before))
    behind: Expr = ("cmp", ">=", i, ("num", extent + before))
    back = plus(times(i, -1), 2 * (extent - 1) + before)
    return ("choose", first, plus(times(i, -1), before), ("choose", behind, back, plus(i, -before)))


def composed(rng: random.Random, i: Expr, extents: tuple[int, ...], most: int = 4) -> Expr:
    """An index of which several things have been made, one after the other; it may be below 0."""
    for _ in range(rng.randint(1, most)):
        i = _made(rng, i, extents)
    return i


def _made(rng: random.Random, i: Expr, extents: tuple[int, ...]) -> Expr:
    low, high = span(i, extents)
    n, move = rng.choice([2, 3, 4, 5, 8]), rng.choice([-3, -2, -1, 1, 2, 3])
    size = high - low + 1
    if size > _LARGEST:
        return (rng.choice(["div", "mod"]), i, rng.choice([7, 16, 32]))
    other = rng.randrange(len(extents))
    joined: Expr = ("add", times(i, extents[other]), ("var", other))
    return rng.choice([
        plus(times(i, -1), high),
        plus(times(i, -1), high + move),
        ("div", i, n),
        ("div", plus(times(i, -1), high), n),
        ("div", plus(i, move), n),
        ("mod", i, rng.choice([n, max(1, size // 2), size])),
        ("mod", plus(i, move), rng.choice([n, size])),
        ("mod", plus(times(i, -1), high), n),
        ("mod", plus(times(i, -1), move), rng.choice([n, size])),
        ("div", ("mod", i, n * 2), n),
        ("mod", ("div", i, n), n),
        plus(times(i, n), rng.choice([0, move])),
        ("max", ("min", plus(i, -3), max(0, high - 2)), 0),
        ("add", i, ("var", other)),
        ("add", i, times(("var", other), -1)),
        joined,
        (rng.choice(["div", "mod"]), joined, rng.choice([n, 2 * n, extents[other] + 1])),
        mirrored(i, rng.randint(0, 2), max(3, size - 2)),
    ])  # fmt: skip
