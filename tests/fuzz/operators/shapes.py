"""Operators that read shapes, or make tensors of them."""

import numpy as np
from onnx import numpy_helper

from ..generate.builder import Builder


def shape_of(b: Builder):
    x = b.source(b.types("Shape"))
    rank = len(b.of(x))
    start, end = b.pick([None, b.integer(-rank, rank)]), b.pick([None, b.integer(-rank, rank)])
    return b.add("Shape", [x], start=start, end=end)


def computed_reshape(b: Builder):
    """As exporters write it: a shape of pieces of another's shape."""
    x = b.source(["float32"], low=2)
    (whole,) = b.add("Shape", [x])
    first = b.add("Gather", [whole, b.integers([0])], axis=0)
    return b.add("Reshape", [x, *b.add("Concat", [*first, b.integers([-1])], axis=0)])


def size(b: Builder):
    return b.add("Size", [b.source(b.types("Size"))])


def constant_of_shape(b: Builder):
    value = numpy_helper.from_array(b.numbers(b.dtype(["float32", "int64", "int32", "bool", "float64"]), [1]))
    return b.add("ConstantOfShape", [b.integers(b.shape(0, 3))], value=b.pick([None, value]))


def arange(b: Builder):
    dtype = b.pick(["int64", "int32", "float32", "float64"])
    ends = [np.array(v, dtype) for v in (b.integer(-3, 3), b.integer(4, 12), b.integer(1, 3))]
    return b.add("Range", [b.constant(e) for e in (ends if b.chance(0.8) else [ends[1], ends[0], -ends[2]])])


def eye_like(b: Builder):
    x = b.source(b.types("EyeLike"), low=2, high=2)
    return b.add("EyeLike", [x], k=b.pick([None, -1, 1]), dtype=b.pick([None, 1, 7]))


TABLE = {
    "Shape": shape_of,
    "computed Reshape": computed_reshape,
    "Size": size,
    "ConstantOfShape": constant_of_shape,
    "Range": arange,
    "EyeLike": eye_like,
}
