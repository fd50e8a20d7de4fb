"""Linear models: a matrix, and a number for each of its rows."""

import numpy as np

from ...emit import Emitter, NodeView
from .features import as_float
from .scores import both_of_two, class_count, name_label, name_scores, second_of_two, transformed


def _linear_regressor(node: NodeView, emit: Emitter) -> Emitter | None:
    sums = _sums(node, emit, node.attribute("targets", 1))
    if sums is None:
        return None
    if node.attribute("targets", 1) == 1 and node.attribute("post_transform", b"NONE") != b"NONE":
        node.refuse("has a post_transform of a single target", "compute it outside of the model")
    emit.name(transformed(node, emit, sums), node.output)
    return emit


def _linear_classifier(node: NodeView, emit: Emitter) -> Emitter | None:
    dims, classes = node.dims(0), class_count(node, "classlabels_ints")
    if not dims:
        return None
    rows = len(node.attribute("coefficients", [])) // max(1, dims[-1])
    sums = _sums(node, emit, rows)
    if sums is None:
        return None
    if rows == 1 and classes == 2:
        if node.attribute("post_transform", b"NONE") != b"LOGISTIC":
            node.refuse("has one sum for two classes, and is not logistic", "export a sum for each class")
        scores, place = both_of_two(emit, sums), second_of_two(emit, sums, 0.0)
    else:
        node.require(rows == classes > 1, f"{rows} rows of coefficients for {classes} classes")
        scores, place = transformed(node, emit, sums), emit("ArgMax", sums, axis=1, keepdims=0)
    name_label(node, emit, place, "classlabels_ints")
    name_scores(node, emit, scores)
    return emit


def _sums(node: NodeView, emit: Emitter, rows: int) -> str | None:
    """Products of the inputs, of the shape [batch, columns], with each row of the coefficients, and the intercepts."""
    dims = node.dims(0)
    if not dims or len(dims) > 2:
        return None
    coefficients = np.array(node.attribute("coefficients", []), np.float32)
    node.require(
        rows > 0 and len(coefficients) == rows * dims[-1],
        f"{len(coefficients)} coefficients for {rows} results of {dims[-1]} columns",
    )
    value = as_float(node, emit)
    value = value if len(dims) == 2 else emit.reshape(value, [1, dims[0]])
    sums = emit("MatMul", value, emit.constant(np.ascontiguousarray(coefficients.reshape(rows, -1).T)))
    intercepts = np.array(node.attribute("intercepts", []), np.float32)
    node.require(len(intercepts) in (0, rows), f"{len(intercepts)} intercepts for {rows} results")
    return emit("Add", sums, emit.constant(intercepts)) if len(intercepts) else sums


LINEAR = {"LinearClassifier": _linear_classifier, "LinearRegressor": _linear_regressor}
