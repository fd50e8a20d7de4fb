"""Reductions along axes that come when the model runs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from tvm import relax, te, tirx
from tvm.ir import Constant
from tvm.relax.frontend.onnx.onnx_frontend import (
    OnnxOpConverter,
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
    onnx_input,
)

from ...bindings import dtype_of, static_shape
from .guards import between
from .names import named_extents, vector_of


def reduce(
    own: type[OnnxOpConverter], bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]
) -> relax.Expr:
    """Convert a reduction.

    Where its axes are computed, the data become twice as many axes: what stays, then what is reduced. Each axis of the
    data is there twice, and one of both has one element.

    Parameters
    ----------
    own : type
        TVM's converter of the operator.
    bb : relax.BlockBuilder
    inputs : sequence
        The data, and the axes, if they are an input.
    attributes : dict

    Returns
    -------
    relax.Expr

    Raises
    ------
    ValueError
        Nobody knows how many axes the result has, or the data have fewer axes than are to be reduced.
    """
    axes = inputs[1] if len(inputs) > 1 else None
    if axes is None or isinstance(axes, Constant):
        return _convert(own, bb, inputs, attributes)
    data, keeps = inputs[0], bool(attributes.get("keepdims", 1))
    left = None if keeps else _how_many_stay(axes, data.ty.ndim, attributes)
    chosen = _chosen(bb, axes, data.ty.ndim, attributes)
    if not keeps:
        chosen = between(bb, chosen, (0, 1), attributes, "got an axis twice")
    kept, reduced = _extents(bb, data, chosen)
    spread = bb.emit_te(_spread, data, kept, reduced, primfunc_name_hint="spread")
    value = _of_last_axes(own, bb, spread, reduced, attributes)
    return value if left is None else relax.op.reshape(bb.emit(value), _of_those_left(bb, data, chosen, left))


def _convert(
    own: type[OnnxOpConverter], bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]
) -> relax.Expr:
    """By TVM's converter: axes are an attribute, an input or neither."""
    before = 11 if own is ReduceSum else 17
    convert = own.get_converter(before if "axes" in attributes else 18)
    return convert(bb, onnx_input(list(inputs)), attributes, [{}, {}])


def _how_many_stay(axes: relax.Expr, rank: int, attributes: Mapping[str, Any]) -> int:
    """How many axes the result has where those that are reduced do not stay."""
    count = static_shape(axes.ty)
    if count is None:
        raise ValueError("how many axes it reduces is computed, so nobody knows how many its result has")
    if count[0] > rank:
        raise ValueError(f"it reduces {count[0]} axes of {rank}")
    return rank - count[0] if count[0] or attributes.get("noop_with_empty_axes", 0) else 0


def _chosen(bb: relax.BlockBuilder, axes: relax.Expr, rank: int, attributes: Mapping[str, Any]) -> relax.Expr:
    """How often each axis of the data is to be reduced, as a vector of int64."""
    axes = between(bb, axes, (-rank, rank - 1), attributes, f"got an axis that data of {rank} axes do not have")
    of_none = tirx.const(0 if attributes.get("noop_with_empty_axes", 0) else 1, "int64")

    def counts(axes: te.Tensor) -> te.Tensor:
        number = axes.shape[0]
        j = te.reduce_axis((0, number), name="j")

        def is_named(a: tirx.Expr) -> tirx.Expr:
            return tirx.any(axes(j) == a, axes(j) == a - rank).astype("int64")

        found = te.compute((rank,), lambda a: te.sum(is_named(a), axis=j), name="found")
        return te.compute((rank,), lambda a: tirx.Select(number == 0, of_none, found(a)), name="chosen")

    return bb.emit_te(counts, axes, primfunc_name_hint="chosen_axes")


def _extents(bb: relax.BlockBuilder, data: relax.Expr, chosen: relax.Expr) -> Iterator[list[Any]]:
    """Of each axis what stays of it, and then what is reduced: one of both is 1."""
    sizes, ones = bb.emit(vector_of(data.ty.shape)), relax.const(np.ones(data.ty.ndim, np.int64), "int64")
    is_chosen = bb.emit(relax.op.greater(chosen, relax.const(0, "int64")))
    known = [1 if isinstance(size, tirx.IntImm) and int(size) == 1 else None for size in data.ty.shape]
    for pair in ((ones, sizes), (sizes, ones)):
        yield named_extents(bb, bb.emit(relax.op.where(is_chosen, *pair)), known)


def _spread(data: te.Tensor, kept: Sequence[tirx.Expr], reduced: Sequence[tirx.Expr]) -> te.Tensor:
    """The data with twice as many axes: of two that stand for one axis, one has a single element."""
    rank = len(data.shape)
    return te.compute(
        (*kept, *reduced),
        lambda *at: data(*(a + b for a, b in zip(at[:rank], at[rank:], strict=True))),
        name="spread",
    )


def _of_last_axes(
    own: type[OnnxOpConverter],
    bb: relax.BlockBuilder,
    spread: relax.Expr,
    reduced: Sequence[tirx.Expr],
    attributes: Mapping[str, Any],
) -> relax.Expr:
    """The reduction of the second half of all axes."""
    rank, dtype = len(reduced), dtype_of(spread.ty)
    last = relax.const(np.arange(rank, 2 * rank), "int64")
    how = {name: given for name, given in attributes.items() if name != "noop_with_empty_axes"} | {"keepdims": 0}
    if own is ReduceLogSumExp:
        return _log_sum_exp(bb, spread, list(range(rank, 2 * rank)))
    if own is not ReduceMean or dtype.startswith(("float", "bfloat")):
        return _convert(own, bb, [spread, last], how)
    total = bb.emit(_convert(ReduceSum, bb, [spread, last], how))
    count = bb.emit(relax.op.prod(vector_of(reduced), None))
    return relax.op.divide(total, bb.emit(relax.op.astype(count, dtype)))


def _log_sum_exp(bb: relax.BlockBuilder, value: relax.Expr, axes: Sequence[int]) -> relax.Expr:
    """The largest element is taken out of the sum, unless it is infinite."""
    op, dtype = relax.op, dtype_of(value.ty)
    largest = bb.emit(op.max(value, axes, keepdims=True))
    finite = op.less(op.abs(largest), relax.const(np.inf, dtype))
    largest = bb.emit(op.where(finite, largest, relax.const(0, dtype)))
    powers = bb.emit(op.exp(op.subtract(value, largest)))
    return op.add(op.log(op.sum(powers, axes)), op.squeeze(largest, axes))


def _of_those_left(bb: relax.BlockBuilder, data: relax.Expr, chosen: relax.Expr, left: int) -> relax.ShapeExpr:
    """The sizes of the axes that are not reduced, of which there are so many."""
    if not left:
        return relax.ShapeExpr([])
    sizes, none = bb.emit(vector_of(data.ty.shape)), tirx.const(0, "int64")

    def extents(chosen: te.Tensor, sizes: te.Tensor) -> te.Tensor:
        axes = [tirx.const(axis, "int64") for axis in range(data.ty.ndim)]
        stays = [tirx.Select(chosen(axis) > 0, none, tirx.const(1, "int64")) for axis in axes]
        places = [sum(stays[: int(axis)], none) for axis in axes]

        def element(at: tirx.Expr) -> tirx.Expr:
            found = none
            for axis, stay, place in zip(axes, stays, places, strict=True):
                found = tirx.Select(tirx.all(stay > 0, place == at), sizes(axis), found)
            return found

        return te.compute((left,), element, name="extents")

    vector = bb.emit_te(extents, chosen, sizes, primfunc_name_hint="extents")
    return relax.ShapeExpr(named_extents(bb, vector, [None] * left))


REDUCTIONS = {
    own.__name__: partial(reduce, own)
    for own in (
        *(ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMax),
        *(ReduceMean, ReduceMin, ReduceProd, ReduceSum, ReduceSumSquare),
    )
}
"""Their converters, by the operator's name."""
