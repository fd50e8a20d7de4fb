"""Reductions, running sums, selections along an axis."""

import numpy as np

from ..generate.builder import Builder

REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare",
)  # fmt: skip


def reduce(op):
    def make(b: Builder):
        x = b.source(b.types(op))
        if op == "ReduceLogSum":
            x = (b.add("Abs", [x]) or [x])[0]
        axes = None if b.chance(0.2) else b.axes(len(b.of(x)), low=0 if b.chance(0.1) else 1)
        keep = b.pick([None, 0, 1])
        if b.has(op, "axes"):
            return b.add(op, [x], axes=axes or None, keepdims=keep)
        noop = b.pick([None, None, 0, 1])
        return b.add(op, [x] if axes is None else [x, b.integers(axes)], keepdims=keep, noop_with_empty_axes=noop)

    return make


def arg(op):
    def make(b: Builder):
        x = b.source(b.types(op), low=1)
        last = b.pick([None, 0, 1])
        axis = b.pick([None, b.axis(len(b.of(x)))])
        return b.add(op, [x], axis=axis, keepdims=b.pick([None, 0, 1]), select_last_index=last)

    return make


def running(op):
    def make(b: Builder):
        x = b.source(b.types(op), low=1)
        axis = b.constant(np.array(b.axis(len(b.of(x))), b.pick(["int64", "int32"])))
        return b.add(op, [x, axis], exclusive=b.pick([None, 0, 1]), reverse=b.pick([None, 0, 1]))

    return make


def top_k(b: Builder):
    x = b.source(b.types("TopK"), low=1)
    axis = b.axis(len(b.of(x)))
    k = b.integer(1, max(b.of(x)[axis], 1))
    how = {"axis": axis, "largest": b.pick([None, 0, 1]), "sorted": b.pick([None, 1])}
    return b.add("TopK", [x], 2, k=k, **how) if b.opset < 10 else b.add("TopK", [x, b.integers([k])], 2, **how)


def along_axis(op):
    def make(b: Builder):
        x = b.source(b.types(op), low=1)
        return b.add(op, [x], axis=b.pick([None, b.axis(len(b.of(x)))]))

    return make


def global_pool(op):
    def make(b: Builder):
        return b.add(op, [b.source(b.types(op), low=3)], p=b.pick([None, 1, 2, 3]))

    return make


TABLE = (
    {op: reduce(op) for op in REDUCTIONS}
    | {op: arg(op) for op in ("ArgMax", "ArgMin")}
    | {op: running(op) for op in ("CumSum", "CumProd")}
    | {op: along_axis(op) for op in ("Softmax", "LogSoftmax", "Hardmax")}
    | {op: global_pool(op) for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")}
    | {"TopK": top_k}
)
