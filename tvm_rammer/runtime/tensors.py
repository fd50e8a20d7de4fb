"""The tensors that go into a compiled model and come out of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm

from ..errors import ModelError
from ..ir import ALIGNMENT


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, static shape and element type of an input."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def tensor_specs(mod: tvm.IRModule, prefix: str = "") -> tuple[TensorSpec, ...]:
    """The inputs of a loaded module, `prefix` before their names."""
    return tuple(
        TensorSpec(prefix + param.name, tuple(int(s) for s in param.ty.shape), str(param.ty.dtype))
        for param in mod["main"].params
    )


def random_inputs(specs: Sequence[TensorSpec], seed: int) -> list[np.ndarray]:
    """Make seeded inputs: normal floats, integers 0 and 1, random truth values."""
    rng = np.random.default_rng(seed)
    made = []
    for spec in specs:
        if spec.dtype == "bool":
            made.append(rng.integers(0, 2, spec.shape).astype(bool))
        elif "int" in spec.dtype:
            made.append(rng.integers(0, 2, spec.shape).astype(spec.dtype))
        else:
            made.append(rng.standard_normal(spec.shape).astype(spec.dtype))
    return made


def to_tensor(value: Any, spec: TensorSpec, device: tvm.runtime.Device) -> Any:
    """What a model takes as an input, on its device; raises a ModelError where `value` is something else."""
    if not isinstance(value, tvm.runtime.Tensor):
        has_dlpack = not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__")
        if has_dlpack and value.__dlpack_device__()[0] != tvm.cpu().dlpack_device_type():
            value = tvm.runtime.from_dlpack(value)
        else:
            # On the CPU through NumPy: TVM takes only memory that is aligned to 64 bytes.
            value = np.from_dlpack(value) if has_dlpack else np.asarray(value)
    check_input(value, spec)
    if isinstance(value, np.ndarray):
        return tvm.runtime.tensor(np.ascontiguousarray(value), device)
    return value if value.device == device else value.copyto(device)


def check_input(value: Any, spec: TensorSpec) -> None:
    """Raise a ModelError where a value has another shape or type than the model's input."""
    shape = tuple(int(s) for s in value.shape)
    if shape != spec.shape or value.dtype != spec.dtype:
        takes = f"{spec.dtype}{list(spec.shape)}"
        raise ModelError(f"input {spec.name!r} is {value.dtype}{list(shape)}, but the model takes {takes}")


def aligned_tensor(spec: TensorSpec) -> tuple[np.ndarray, Any]:
    """An array of an input's shape, aligned as TVM wants it, and a tensor that shares its memory."""
    dtype = np.dtype(spec.dtype)
    nbytes = math.prod(spec.shape) * dtype.itemsize
    storage = np.zeros(nbytes + ALIGNMENT, np.uint8)
    begin = -storage.ctypes.data % ALIGNMENT
    array = storage[begin : begin + nbytes].view(dtype).reshape(spec.shape)
    return array, tvm.runtime.from_dlpack(array)


def to_numpy(result: Any) -> Any:
    """A result as NumPy arrays: one, or a tuple."""
    if not isinstance(result, tvm.runtime.Tensor):
        return tuple(to_numpy(part) for part in result)
    try:
        return np.from_dlpack(result).copy()  # a tenth of the time of TVM's own way
    except (BufferError, RuntimeError):  # on a GPU, or of a type that NumPy has not
        return result.numpy()
