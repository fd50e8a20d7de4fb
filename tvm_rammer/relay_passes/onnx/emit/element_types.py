"""ONNX's types of floating-point numbers that can be computed with."""

import numpy as np
from numpy.typing import DTypeLike
from onnx import TensorProto

HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, *HALVES)


def largest(dtype: DTypeLike) -> float:
    """The largest number of a type of floating point that is no infinity; NumPy does not know that of bfloat16."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    return (2 - 2**-7) * 2.0**127 if name == "bfloat16" else float(np.finfo(name).max)
