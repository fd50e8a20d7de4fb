"""Operators on the columns of a table."""

import math

import numpy as np
from onnx import TensorProto, numpy_helper

from ...emit import Emitter, NodeView
from ..elementwise import element, numpy_type


def as_float(node: NodeView, emit: Emitter) -> str:
    """The first input in float32, as ONNX Runtime reads it."""
    return node.input(0) if element(node, 0) == TensorProto.FLOAT else emit("Cast", node.input(0), to=TensorProto.FLOAT)


def _scaler(node: NodeView, emit: Emitter) -> Emitter | None:
    """(x - offset) * scale, of each column or of all."""
    dims = node.dims(0)
    if not dims:
        return None
    value = as_float(node, emit)
    for kind, name in (("Sub", "offset"), ("Mul", "scale")):
        numbers = np.array(node.attribute(name, []), np.float32)
        node.require(numbers.size in (1, dims[-1]), f"{numbers.size} numbers in {name!r} for {dims[-1]} columns")
        value = emit(kind, value, emit.constant(numbers))
    emit.name(value, node.output)
    return emit


def _normalizer(node: NodeView, emit: Emitter) -> Emitter | None:
    """Each row by its norm; zeros stay zeros."""
    dims, kind = node.dims(0), node.attribute("norm", b"MAX").decode()
    if not dims:
        return None
    if kind not in ("L1", "L2"):
        node.refuse(f"has the norm {kind}, which is not the same everywhere", "normalise by L1 or L2")
    value = as_float(node, emit)
    squares = emit("Mul", value, value) if kind == "L2" else emit("Abs", value)
    norm = emit.sums(squares, len(dims) - 1)
    norm = emit("Sqrt", norm) if kind == "L2" else norm
    zero = emit("Equal", norm, emit.constant(np.array(0, np.float32)))
    norm = emit("Where", zero, emit.constant(np.array(1, np.float32)), norm)
    emit.name(emit("Div", value, norm), node.output)
    return emit


def _binarizer(node: NodeView, emit: Emitter) -> Emitter | None:
    elem = element(node, 0)
    if not elem:
        return None
    dtype = numpy_type(elem)
    limit = emit.constant(np.array(node.attribute("threshold", 0.0), dtype))
    emit.last("Cast", emit("Greater", node.input(0), limit), outputs=node.node.output, to=elem)
    return emit


def _imputer(node: NodeView, emit: Emitter) -> Emitter | None:
    """Others in the place of elements that are missing: NaN, or a number."""
    dims, elem = node.dims(0), element(node, 0)
    if not dims or not elem:
        return None
    dtype = numpy_type(elem)
    suffix = ("float", "floats") if dtype.kind == "f" else ("int64", "int64s")
    numbers = np.array(node.attribute(f"imputed_value_{suffix[1]}", []), dtype)
    missing = node.attribute(f"replaced_value_{suffix[0]}", 0.0 if dtype.kind == "f" else 0)
    node.require(numbers.size in (1, dims[-1]), f"{numbers.size} numbers for {dims[-1]} columns")
    value = node.input(0)
    if isinstance(missing, float) and math.isnan(missing):
        lacks = emit("IsNaN", value)
    else:
        lacks = emit("Equal", value, emit.constant(np.array(missing, dtype)))
    emit.name(emit("Where", lacks, emit.constant(numbers), value), node.output)
    return emit


def _feature_vectorizer(node: NodeView, emit: Emitter) -> Emitter | None:
    """Tables side by side, in float32; what has more axes than a table has rows of all but the first."""
    sizes = node.attribute("inputdimensions", [])
    columns = []
    for index, name in enumerate(node.node.input):
        dims = node.dims(index)
        if not dims:
            return None
        rows = [dims[0], math.prod(dims[1:])] if len(dims) > 1 else [1, dims[0]]
        given = sizes[index] if index < len(sizes) else rows[1]
        node.require(given == rows[1], f"{given} columns for the shape {dims}")
        columns.append(emit.reshape(emit("Cast", name, to=TensorProto.FLOAT), rows))
    emit.name(emit.join(columns, 1), node.output)
    return emit


def _array_feature_extractor(node: NodeView, emit: Emitter) -> Emitter | None:
    """Some columns; of a vector, too, there is one row."""
    dims, chosen = node.dims(0), node.dims(1)
    if not dims or chosen is None:
        return None
    count = math.prod(chosen)
    columns = emit("Gather", node.input(0), emit.reshape(node.input(1), [count]), axis=len(dims) - 1)
    emit.name(emit.reshape(columns, [1, count]) if len(dims) == 1 else columns, node.output)
    return emit


def _label_encoder(node: NodeView, emit: Emitter) -> Emitter | None:
    """Numbers for numbers, by a table: the place in it is found by comparing with all keys."""
    dims, elem = node.dims(0), element(node, 0)
    if dims is None or not elem:
        return None
    keys, values = _numbers(node, "keys"), _numbers(node, "values")
    if keys is None or values is None:
        node.refuse("has strings in its table", "encode outside of the model")
    node.require(keys.ndim == 1 and len(keys) == len(values) > 0, f"{keys.size} keys for {values.size} values")
    real = values.dtype.kind == "f"
    default = node.attribute("default_tensor", None)
    if default is not None:
        default = numpy_helper.to_array(default).item()
    else:
        default = node.attribute("default_float", -0.0) if real else node.attribute("default_int64", -1)
    if np.isnan(keys).any():
        node.refuse("has NaN as a key", "encode outside of the model")
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        node.refuse("has a key twice", "leave one of them out")
    at = emit("Equal", emit.reshape(node.input(0), [*dims, 1]), emit.constant(keys.astype(numpy_type(elem))))
    place = emit("ArgMax", emit("Cast", at, to=TensorProto.INT32), axis=len(dims), keepdims=0)
    found = emit.reshape(emit.sums(emit("Cast", at, to=TensorProto.INT32), len(dims)), dims)
    known = emit("Greater", found, emit.constant(np.array(0, np.int32)))
    value = emit("Gather", emit.constant(values), place)
    emit.name(emit("Where", known, value, emit.constant(np.array(default, values.dtype))), node.output)
    return emit


def _one_hot_encoder(node: NodeView, emit: Emitter) -> Emitter | None:
    """1 where a number is the category, on a new last axis; a row of zeros where it is none of them."""
    dims, elem = node.dims(0), element(node, 0)
    if dims is None or not elem:
        return None
    categories = node.attribute("cats_int64s", [])
    if not categories:
        node.refuse("has strings as its categories", "encode outside of the model")
    if not node.attribute("zeros", 1):
        node.refuse("fails where a number is no category", "let it write zeros there (handle_unknown='ignore')")
    given = emit.reshape(node.input(0), [*dims, 1])
    equal = emit("Equal", emit("Cast", given, to=TensorProto.INT64), emit.constant(np.array(categories, np.int64)))
    if numpy_type(elem).kind == "f":  # what is no number, or none of an integer's, becomes just any integer
        within = emit("Less", emit("Abs", given), emit.constant(np.array(2.0**63, numpy_type(elem))))
        equal = emit("And", equal, within)
    emit.last("Cast", equal, outputs=node.node.output, to=TensorProto.FLOAT)
    return emit


def _numbers(node: NodeView, side: str) -> np.ndarray | None:
    """The keys or the values of a table; None where they are strings."""
    for kind, dtype in (("int64s", np.int64), ("floats", np.float32)):
        if (given := node.attribute(f"{side}_{kind}", None)) is not None:
            return np.array(given, dtype)
    tensor = node.attribute(f"{side}_tensor", None)
    if tensor is None or tensor.data_type == TensorProto.STRING:
        return None
    return numpy_helper.to_array(tensor)


FEATURES = {
    "ArrayFeatureExtractor": _array_feature_extractor,
    "Binarizer": _binarizer,
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": _imputer,
    "LabelEncoder": _label_encoder,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot_encoder,
    "Scaler": _scaler,
}
