"""Reductions: of truth values, of integers, of infinities, and along no axis at all."""

import math
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from ..emit import Emitter, NodeView
from .elementwise import element, numpy_type

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
_INTEGERS = (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64)
"""Of which ONNX has means."""

_OF_ONE = {"ReduceSumSquare": "Mul", "ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}
"""What reductions make of a single element, where that is another one."""

_REAL = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
"""Whose results are roots and logarithms."""


def _reduce(node: NodeView, emit: Emitter) -> Emitter | None:
    if node.node.op_type in _REAL and element(node, 0) in _INTEGERS:
        return _of_real_numbers(node, emit)
    if _has_no_axes(node):
        return _of_each_element(node, emit)
    if node.node.op_type in ("ReduceMax", "ReduceMin") and element(node, 0) == TensorProto.BOOL:
        return _of_truth_values(node, emit)
    if node.node.op_type == "ReduceLogSumExp" and element(node, 0) in _FLOATS:
        return _log_sum_exp(node, emit)
    if node.node.op_type == "ReduceMean" and element(node, 0) in _INTEGERS:
        return _mean_of_integers(node, emit)
    return None


def _has_no_axes(node: NodeView) -> bool:
    """Whether a node says that nothing is to be reduced: no axes does not mean all of them then."""
    axes = node.array(1)
    return bool(node.attribute("noop_with_empty_axes", 0)) and (
        not node.input(1) or (axes is not None and not axes.size)
    )


def _of_each_element(node: NodeView, emit: Emitter) -> Emitter:
    """TVM's frontend would return the elements as they are."""
    kind = _OF_ONE.get(node.node.op_type, "Identity")
    operands = [node.input(0)] * (2 if kind == "Mul" else 1)
    emit.last(kind, *operands, outputs=node.node.output)
    return emit


def _of_truth_values(node: NodeView, emit: Emitter) -> Emitter:
    """The largest or smallest truth value, as a number."""
    number = emit("Cast", node.input(0), to=TensorProto.UINT8)
    reduced = emit(node.node.op_type, number, *list(node.node.input)[1:], **_attributes(node))
    emit.last("Cast", reduced, outputs=node.node.output, to=TensorProto.BOOL)
    return emit


def _of_real_numbers(node: NodeView, emit: Emitter) -> Emitter:
    """What a root or a logarithm is, cut off: TVM has neither of integers."""
    real = emit("Cast", node.input(0), to=TensorProto.DOUBLE)
    reduced = emit(node.node.op_type, real, *list(node.node.input)[1:], **_attributes(node))
    emit.last("Cast", reduced, outputs=node.node.output, to=element(node, 0))
    return emit


def _in_single_precision(node: NodeView, emit: Emitter) -> Emitter | None:
    """Of numbers of bfloat16, of which TVM knows no extreme and no NaN: each is one of float32, too."""
    if element(node, 0) != TensorProto.BFLOAT16:
        return _of_an_axis(node, emit) if node.node.op_type in ("ArgMax", "ArgMin") else None
    found = emit(node.node.op_type, emit("Cast", node.input(0), to=TensorProto.FLOAT), **_attributes(node))
    if node.node.op_type == "Hardmax":
        found = emit("Cast", found, to=TensorProto.BFLOAT16)
    emit.name(found, node.output)
    return emit


def _of_an_axis(node: NodeView, emit: Emitter) -> Emitter | None:
    """Before opset 11 TVM's frontend does not count an axis from the last."""
    dims, axis = node.dims(0), node.attribute("axis", 0)
    if emit.opset >= 11 or dims is None or not -len(dims) <= axis < 0:
        return None
    attributes = _attributes(node) | {"axis": axis + len(dims)}
    emit.last(node.node.op_type, *node.node.input, outputs=node.node.output, **attributes)
    return emit


def _mean_of_integers(node: NodeView, emit: Emitter) -> Emitter | None:
    """The sum by the count in the type of the elements: TVM's mean would divide in int64, and keep that."""
    dims, attributes = node.dims(0), _attributes(node)
    axes = node.array(1) if node.input(1) else attributes.get("axes", ())
    if dims is None or axes is None:
        return None
    count = math.prod(dims[int(axis)] for axis in axes) if len(axes) else math.prod(dims)
    keepdims = attributes.pop("keepdims", 1)
    total = _sum(emit, node.input(0), list(node.node.input)[1:], attributes, keepdims)
    divisor = np.array(count, numpy_type(element(node, 0)))
    emit.last("Div", total, emit.constant(divisor), outputs=node.node.output)
    return emit


def _log_sum_exp(node: NodeView, emit: Emitter) -> Emitter | None:
    """The largest element is taken out of the sum, unless it is infinite: infinity less infinity is no number."""
    if node.input(1) and node.array(1) is None:
        return None  # unless they become known, `data_sizes.reduce` does it
    x, axes, attributes = node.input(0), list(node.node.input)[1:], _attributes(node)
    attributes.pop("keepdims", None)
    largest = emit("ReduceMax", x, *axes, **attributes, keepdims=1)
    finite = emit("Less", emit("Abs", largest), emit.number(float("inf")))
    largest = emit("Where", finite, largest, emit.number(0.0))
    powers = emit("Exp", emit("Sub", x, largest))
    value = emit("Add", emit("Log", _sum(emit, powers, axes, attributes)), largest)
    if node.attribute("keepdims", 1):
        emit.name(value, node.output)
    else:  # of an axis with one element
        emit.last("ReduceMax", value, *axes, outputs=node.node.output, **attributes, keepdims=0)
    return emit


def _sum(emit: Emitter, value: str, axes: list[str], attributes: dict[str, Any], keepdims: int = 1) -> str:
    """ReduceSum has had its axes as an input since opset 13, the other reductions since 18."""
    listed = attributes.get("axes")
    if listed is None or emit.opset < 13:
        return emit("ReduceSum", value, *axes, **attributes, keepdims=keepdims)
    rest = {name: given for name, given in attributes.items() if name != "axes"}
    return emit("ReduceSum", value, emit.constant(np.array(listed, np.int64)), **rest, keepdims=keepdims)


def _attributes(node: NodeView) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.node.attribute}


REDUCTIONS = {
    **{("", kind): _in_single_precision for kind in ("ArgMax", "ArgMin", "Hardmax", "IsNaN")},
    **{
        ("", f"Reduce{kind}"): _reduce
        for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    },
}
"""By domain and name."""
