"""Make constants of inputs that are always the same: a sample rate, a flag, a language."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ...errors import ModelError, first_line
from .read import read_onnx


def fix_inputs(model: str | os.PathLike[str] | onnx.ModelProto, values: Mapping[str, Any]) -> onnx.ModelProto:
    """Give inputs of an ONNX model their values once and for all.

    What depends on them alone is then computed at compile time, and of a branch only the side remains that is taken.

    Parameters
    ----------
    model : path or onnx.ModelProto
        Is not changed.
    values : mapping of str to number or array
        By the inputs' names. A single number fills an input of any static shape.

    Returns
    -------
    onnx.ModelProto
        Without these inputs.

    Raises
    ------
    ModelError
        No such model, no such input, or a value that does not fit its type or shape.

    Examples
    --------
    >>> vad = tvm_rammer.fix_inputs("silero_vad.onnx", {"sr": 16000})
    >>> module = tvm_rammer.compile(vad, shapes={"input": (1, 576), "state": (2, 1, 128)})
    """
    if not isinstance(values, Mapping):
        raise ModelError(f"the values are {values!r}; give a mapping of names of inputs to numbers or arrays")
    proto = read_onnx(model)
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = {value.name: value for value in proto.graph.input if value.name not in constants}
    for name, value in values.items():
        if name not in inputs:
            raise ModelError(f"a value is given for {name!r}, which is no input; the inputs are {', '.join(inputs)}")
        proto.graph.initializer.append(numpy_helper.from_array(_array(inputs[name], value), name))
        proto.graph.input.remove(inputs[name])
    return proto


def _array(declared: onnx.ValueInfoProto, value: Any) -> np.ndarray[Any, Any]:
    """The value as an array of the input's type and shape."""
    kind = declared.type.tensor_type
    if not declared.type.HasField("tensor_type") or kind.elem_type == onnx.TensorProto.STRING:
        raise ModelError(
            f"input {declared.name!r} is no tensor of numbers, so no value can be given for it; leave it out"
        )
    dims = [d.dim_value if d.dim_value > 0 else None for d in kind.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    try:
        given = np.asarray(value)
        if given.dtype.kind in "OSU":  # NumPy would make NaN of None, and numbers of texts
            raise ValueError(f"{value!r} is no number")
        array = given.astype(dtype)
        if not (np.issubdtype(dtype, np.floating) or np.array_equal(array, given)):
            raise ValueError(f"{value!r} is no {dtype}")
        if array.ndim == 0 and None not in dims:
            array = np.full([d for d in dims if d is not None], array)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"the value of input {declared.name!r}: {first_line(error)}; give one of {dtype}") from error
    fits = len(dims) == array.ndim and all(d in (None, n) for d, n in zip(dims, array.shape, strict=True))
    if kind.HasField("shape") and not fits:
        shape = ", ".join("?" if d is None else str(d) for d in dims)
        raise ModelError(f"the value of input {declared.name!r} has the shape {array.shape}; the input has ({shape})")
    return array
