"""Means, variances and deviations of numbers along axes, as nodes."""

import numpy as np
from numpy.typing import DTypeLike
from onnx import TensorProto

from ...emit import Emitter


def moments(emit: Emitter, value: str, axes: list[int]) -> tuple[str, str, str]:
    """The mean, what is left of each number without it, and the variance.

    A mean of squares without the square of the mean, as ONNX has it, would lose the variance of large numbers.
    """
    mean = mean_over(emit, value, axes)
    centred = emit("Sub", value, mean)
    return mean, centred, mean_over(emit, emit("Mul", centred, centred), axes)


def mean_over(emit: Emitter, value: str, axes: list[int]) -> str:
    """The mean over axes, which stay."""
    if emit.opset < 18:
        return emit("ReduceMean", value, axes=axes)
    return emit("ReduceMean", value, emit.constant(np.array(axes, np.int64)))


def deviation(emit: Emitter, variance: str, epsilon: float, dtype: DTypeLike) -> str:
    """The root of a variance, or of a mean square, with `epsilon` added."""
    return emit("Sqrt", emit("Add", variance, emit.constant(np.array(epsilon, dtype))))


def widened(emit: Emitter, value: str) -> str:
    """Numbers of half precision in single precision, for their squares are beyond 65504 soon; others as they are."""
    return emit("Cast", value, to=TensorProto.FLOAT) if emit.is_half else value


def wide_dtype(emit: Emitter) -> DTypeLike:
    """The type of what `widened` returns."""
    return np.float32 if emit.is_half else emit.dtype
