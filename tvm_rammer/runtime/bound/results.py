"""Results that are written where the caller has them: in new arrays of NumPy."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tvm_ffi

from ..tensors import TensorSpec, aligned_tensor, to_numpy
from ..tvm_runtime import Machine

_LARGE = 1 << 15
"""Bytes of all results from which on to copy them takes longer than to make arrays."""


def are_large(outputs: Sequence[TensorSpec]) -> bool:
    """Whether results are better written into new arrays than copied; False where NumPy has no such arrays."""
    if any(-1 in spec.shape or not hasattr(np, spec.dtype) for spec in outputs):
        return False
    return sum(math.prod(spec.shape) * np.dtype(spec.dtype).itemsize for spec in outputs) >= _LARGE


def into_arrays(machine: Machine, tensors: Sequence[Any], outputs: Sequence[TensorSpec]) -> Any:
    """Launch a model on tensors; its results as arrays, in the structure that it gives them.

    Parameters
    ----------
    machine : Machine
    tensors : sequence of tensor
        What its `main` takes.
    outputs : sequence of TensorSpec
        Of static shapes, of types that NumPy has; one for each result.
    """
    if not machine.takes_all:
        return to_numpy(machine.main(*tensors))
    made = [aligned_tensor(spec, zeros=False) for spec in outputs]
    result = machine.into(*tensors, *(tensor for _, tensor in made))
    return _arranged(result, iter([array for array, _ in made]))


def _arranged(result: Any, arrays: Iterator[np.ndarray[Any, Any]]) -> Any:
    """The arrays, as tuples where the result has these."""
    return next(arrays) if isinstance(result, tvm_ffi.Tensor) else tuple(_arranged(part, arrays) for part in result)
