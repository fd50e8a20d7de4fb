"""What is computed of rows whose number only the data know, and which may be none."""

from collections.abc import Callable, Sequence

import numpy as np

from ..generate.builder import Builder
from .reductions import REDUCTIONS

Step = Callable[[Builder, str, Sequence[int]], list[str]]
"""Appends an operator that reads some rows of a tensor of a shape."""


def _rows(b: Builder, x: str) -> list[str]:
    """Those rows of a tensor that a mask selects, by the operator for it or as exporters write it."""
    count = b.of(x)[0]
    mask = b.input(np.zeros(count, bool) if b.chance(0.4) else b.numbers("bool", [count]))
    if b.chance(0.5):
        return b.add("Compress", [x, mask], axis=0)
    places = b.add("NonZero", [mask])
    flat = b.add("Reshape", [*places, b.integers([-1])])
    return b.add("Gather", [x, *flat], axis=0)


def _reduced(b: Builder, rows: str, shape: Sequence[int]) -> list[str]:
    op = b.pick(REDUCTIONS)
    axes, keep = b.axes(len(shape)), b.pick([0, 1])
    if b.has(op, "axes"):
        return b.add(op, [rows], axes=axes, keepdims=keep)
    return b.add(op, [rows, b.integers(axes)], keepdims=keep)


def _alone(*ops: str) -> Step:
    return lambda b, rows, shape: b.add(b.pick(ops), [rows])


def _along(*ops: str) -> Step:
    return lambda b, rows, shape: b.add(b.pick(ops), [rows], axis=b.axis(len(shape)))


def _with_all(*ops: str) -> Step:
    """With a tensor that has one row."""
    return lambda b, rows, shape: b.add(b.pick(ops), [rows, b.parameter(b.values[rows].dtype, [1, *shape[1:]])])


def _product(b: Builder, rows: str, shape: Sequence[int]) -> list[str]:
    return b.add("MatMul", [rows, b.parameter(b.values[rows].dtype, [shape[-1], b.integer(1, 5)])])


def _gram(b: Builder, rows: str, shape: Sequence[int]) -> list[str]:
    return b.add("Gemm", [rows, rows], transA=1)


def _joined(b: Builder, rows: str, shape: Sequence[int]) -> list[str]:
    return b.add("Concat", [rows, b.parameter(b.values[rows].dtype, [b.integer(1, 2), *shape[1:]])], axis=0)


def _running(b: Builder, rows: str, shape: Sequence[int]) -> list[str]:
    return b.add("CumSum", [rows, b.constant(np.array(b.axis(len(shape))))])


def _turned(b: Builder, rows: str, shape: Sequence[int]) -> list[str]:
    return b.add("Transpose", [rows], perm=[*range(1, len(shape)), 0])


def _flat(b: Builder, rows: str, shape: Sequence[int]) -> list[str]:
    return b.add("Reshape", [rows, b.integers([-1])])


def _first(b: Builder, rows: str, shape: Sequence[int]) -> list[str]:
    return b.add("Slice", [rows, b.integers([0]), b.integers([b.integer(0, 2)]), b.integers([0])])


STEPS: dict[str, tuple[Step, ...]] = {
    "rows reduced": (_reduced,),
    "rows alone": (_alone("Relu", "Exp", "Abs", "Neg", "Sigmoid", "Shape", "Size", "Identity"),),
    "rows along": (_along("Softmax", "LogSoftmax", "ArgMax", "ArgMin"),),
    "rows with": (_with_all("Add", "Mul", "Max", "Sub"),),
    "rows multiplied": (_product, _gram),
    "rows moved": (_joined, _running, _turned, _flat, _first),
}


def _of_rows(steps: Sequence[Step]) -> Callable[[Builder], list[str]]:
    def make(b: Builder) -> list[str]:
        x = b.source(["float32", "float64", "int64", "int32"], low=2, high=3, check=lambda s: min(s) > 0)
        rows = _rows(b, x)
        if rows and b.chance(0.3):
            rows = b.add("Add", [*rows, *rows])  # to be fused with what follows
        return b.pick(steps)(b, *rows, b.of(x)) if rows else []

    return make


TABLE = {name: _of_rows(steps) for name, steps in STEPS.items()}
