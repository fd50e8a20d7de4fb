"""What a random function computes, by NumPy alone: nothing of TVM's is asked."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..generate.recipe import Expr, Function, Stage, condition_values, index_values

_erf = np.vectorize(math.erf, otypes=["float64"])
_COMBINE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
_BINARY = {"+": np.add, "-": np.subtract, "*": np.multiply, "max": np.maximum, "min": np.minimum}
_CALLS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "tanh": np.tanh, "sqrt": np.sqrt, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "abs": np.abs,
    "floor": np.floor, "erf": _erf, "log": np.log, "round": np.rint, "sin": np.sin,
}  # fmt: skip


@dataclass(frozen=True)
class Values:
    """Numbers, and which of them are known: not what nobody wrote, nor what is undefined."""

    data: Any
    known: Any


def evaluate(function: Function, feeds: Sequence[Values]) -> list[Values]:
    """The results of a function: its blocks one after the other, the iterations of each in the order of its loops."""
    memory = {b.name: v for b, v in zip(function.inputs, feeds, strict=True)}
    for b in (*function.scratch, *function.results):
        memory[b.name] = Values(np.zeros(b.shape, b.dtype), np.zeros(b.shape, bool))
    with np.errstate(all="ignore"):
        for stage in function.stages:
            _Block(stage, memory).run()
    return [memory[b.name] for b in function.results]


class _Block:
    """One block: all its iterations at once; every array has an element for each."""

    def __init__(self, stage: Stage, memory: Mapping[str, Values]) -> None:
        self.stage, self.memory = stage, memory
        extents = (*stage.spatial, *stage.reduce)
        loops = list(enumerate(extents))
        if stage.split > 1:
            loops[0:1] = [(-1, -(-extents[0] // stage.split)), (0, stage.split)]
        loops = [loops[i] for i in stage.order] if len(stage.order) == len(loops) else loops
        self.count = math.prod(extent for _, extent in loops)
        grid = np.indices([extent for _, extent in loops]).reshape(len(loops), self.count)
        self.axes = dict(zip((name for name, _ in loops), grid, strict=True))
        runs = np.full(self.count, True)
        if stage.where:  # of loops: the inner one has the axis' number
            runs &= self.condition(stage.where)
        if stage.split > 1:
            self.axes[0] = self.axes.pop(-1) * stage.split + self.axes[0]
            runs &= self.axes[0] < extents[0]
        self.axes = {axis: at[runs] for axis, at in self.axes.items()}
        self.count = int(runs.sum())

    def run(self) -> None:
        stage, target = self.stage, self.memory[self.stage.target]
        offset = stage.offset or (0,) * len(stage.spatial)
        place = [self.index(p) for p in stage.place] or [self.axes[a] + o for a, o in enumerate(offset)]
        at, inside = self.position(target.data.shape, place)
        assert inside.all(), "a block writes beyond its buffer"
        data, known = target.data.reshape(-1), target.known.reshape(-1)
        body = self.value(stage.body)
        assert np.asarray(body.data).dtype == data.dtype, f"{np.asarray(body.data).dtype} written to {data.dtype}"
        terms, term_known = (np.broadcast_to(a, self.count) for a in (body.data, body.known))
        if not stage.combine:
            data[at], known[at] = terms, term_known  # of several writes to an element the last one stays
            return
        number = np.arange(self.count)
        begins = np.full(self.count, True)
        for axis in range(len(stage.spatial), len(stage.spatial) + len(stage.reduce)):
            begins &= self.axes[axis] == 0
        last = np.zeros(data.shape, int)
        np.maximum.at(last, at[begins], number[begins])
        data[at[begins]] = int(stage.init) if data.dtype.kind == "i" else stage.init
        known[at[begins]] = True
        counts = number >= last[at]
        _COMBINE[stage.combine].at(data, at[counts], terms[counts])
        if stage.combine in ("max", "min"):
            term_known = term_known & ~_nan(terms)
        np.logical_and.at(known, at[counts], term_known[counts])

    def position(self, shape: tuple[int, ...], index: Sequence[Any]) -> tuple[Any, Any]:
        """Where elements are in a flat buffer, and whether they are in it."""
        at, inside = np.zeros(self.count, int), np.full(self.count, True)
        for i, extent in zip(index, shape, strict=True):
            inside &= (i >= 0) & (i < extent)
            at = at * extent + np.clip(i, 0, extent - 1)
        return at, inside

    def index(self, e: Expr) -> Any:
        return np.broadcast_to(index_values(e, self.axes, self.data), self.count)

    def condition(self, e: Expr) -> Any:
        return np.broadcast_to(condition_values(e, self.axes, self.data), self.count)

    def data(self, e: Expr) -> Any:
        return self.load(e[1], e[3:]).data.astype("int64") % e[2]

    def load(self, name: str, index: Sequence[Expr]) -> Values:
        buffer = self.memory[name]
        at, inside = self.position(buffer.data.shape, [self.index(i) for i in index])
        return Values(buffer.data.reshape(-1)[at], buffer.known.reshape(-1)[at] & inside)

    def value(self, e: Expr) -> Values:
        kind = e[0]
        if kind == "lit":
            return Values(np.asarray(e[2]).astype(e[1]), np.True_)
        if kind == "load":
            return self.load(e[1], e[2:])
        if kind == "axis":
            return Values(self.axes[e[1]].astype(e[2]), np.True_)
        if kind in ("if", "select"):
            chosen, a, b = self.condition(e[1]), self.value(e[2]), self.value(e[3])
            return Values(np.where(chosen, a.data, b.data), np.where(chosen, a.known, b.known))
        if kind == "bin":
            a, b = self.value(e[2]), self.value(e[3])
            known = a.known & b.known
            if e[1] in ("max", "min"):
                known = known & ~_nan(a.data) & ~_nan(b.data)
            return Values(_BINARY[e[1]](a.data, b.data), known)
        of = self.value(e[2])
        if kind == "call":
            return Values(np.asarray(_CALLS[e[1]](of.data)).astype(np.asarray(of.data).dtype), of.known)
        return _cast(of, np.dtype(e[1]))


def _cast(of: Values, dtype: np.dtype) -> Values:
    known = of.known
    if np.asarray(of.data).dtype.kind == "f" and dtype.kind == "i":
        known = known & (np.abs(of.data) < float(np.iinfo(dtype).max))
    return Values(np.asarray(of.data).astype(dtype), known)


def _nan(a: Any) -> Any:
    return np.isnan(a) if np.asarray(a).dtype.kind == "f" else np.False_
