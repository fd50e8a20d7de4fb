"""ONNX Runtime's `OrtValue`: a tensor in the CPU's memory."""

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments import names_of, whole
from ..errors import ModelError

Array = np.ndarray[Any, Any]

_TYPES = {"float32": "float", "float64": "double"}
"""Element types whose names differ in ONNX Runtime."""


class OrtValue:
    """A tensor in the CPU's memory, as `onnxruntime.OrtValue`.

    Parameters
    ----------
    array : numpy.ndarray
        Its memory is used, not copied.
    """

    def __init__(self, array: Array) -> None:
        if not isinstance(array, np.ndarray):
            raise ModelError(f"an OrtValue is made of a NumPy array, and this is a {type(array).__name__}; convert it")
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: Array, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """A value that shares the memory of an array; raises a ModelError for another device than the CPU."""
        check_device("the value", device_type)
        return OrtValue(numpy_obj)

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> "OrtValue":
        """A value of zeros; raises a ModelError for another device than the CPU, or where there is no such type."""
        check_device("the value", device_type)
        return OrtValue(np.zeros(extents_of("the value", shape), dtype_of("the value", element_type)))

    def numpy(self) -> Array:
        """A copy as an array."""
        return self._array.copy()

    def update_inplace(self, np_arr: Array) -> None:
        """Copy an array of the same shape and type into it.

        Raises
        ------
        ModelError
            It is none.
        """
        if np.shape(np_arr) != self._array.shape or np.asarray(np_arr).dtype != self._array.dtype:
            raise ModelError(
                f"the value is {self._array.dtype}{self.shape()}; give an array of that type and shape to update it"
            )
        np.copyto(self._array, np_arr)

    def shape(self) -> list[int]:
        """Its sizes."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """Such as `tensor(float)`."""
        return type_name(str(self._array.dtype))

    def data_ptr(self) -> int:
        """Its address."""
        return self._array.ctypes.data

    def device_name(self) -> str:
        """Always "cpu"."""
        return "cpu"

    def has_value(self) -> bool:
        """Always true: no value is optional here."""
        return True

    def is_tensor(self) -> bool:
        """Always true: there are no sequences, maps and sparse tensors here."""
        return True

    def __dlpack__(self, **how: Any) -> Any:
        """As of the array."""
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        """As of the array."""
        device, number = self._array.__dlpack_device__()
        return int(device), int(number)


def type_name(dtype: str) -> str:
    """What ONNX Runtime calls a tensor of an element type."""
    return f"tensor({_TYPES.get(dtype, dtype)})"


def check_device(what: str, device_type: str) -> None:
    """Raise a ModelError for another device than the CPU."""
    if device_type != "cpu":
        raise ModelError(f"{what} is bound to the device {device_type!r}, and a session runs on 'cpu'; bind it there")


def dtype_of(what: str, element_type: Any) -> np.dtype[Any]:
    """An element type: of NumPy, or a number of `onnx.TensorProto`; raises a ModelError where it is none."""
    try:
        if isinstance(element_type, int):
            import onnx

            element_type = onnx.helper.tensor_dtype_to_np_dtype(element_type)
        dtype: np.dtype[Any] = np.dtype(element_type)
    except (TypeError, KeyError) as error:
        raise ModelError(
            f"{what} is bound as {element_type!r}; give a NumPy type, such as numpy.float32, or one of onnx.TensorProto"
        ) from error
    return dtype


def extents_of(what: str, shape: Any) -> tuple[int, ...]:
    """The sizes of a shape; raises a ModelError where they are none."""
    return tuple(whole(f"an extent of {what}", extent, 0) for extent in names_of(f"the shape of {what}", shape))


def array_at(what: str, device_type: str, element_type: Any, shape: Sequence[int] | None, address: int) -> Array:
    """The memory at an address as an array; it must stay there as long as the array is used.

    Raises
    ------
    ModelError
        It is not in the CPU's memory, or its type or shape are missing or none.
    """
    check_device(what, device_type)
    if element_type is None or shape is None:
        raise ModelError(f"{what} is bound to an address without its type and shape; give element_type and shape")
    dtype, extents = dtype_of(what, element_type), extents_of(what, shape)
    memory = (ctypes.c_char * (math.prod(extents) * dtype.itemsize)).from_address(whole("buffer_ptr", address, 1))
    array: Array = np.ndarray(extents, dtype, memoryview(memory))
    return array


def array_of(what: str, value: Any) -> Array:
    """The memory of an `OrtValue`, of this package or of ONNX Runtime, as an array.

    Raises
    ------
    ModelError
        It is something else, or not in the CPU's memory.
    """
    if isinstance(value, OrtValue):
        return value._array
    if not all(hasattr(value, name) for name in ("data_type", "data_ptr", "device_name")):
        raise ModelError(f"{what} is bound to a {type(value).__name__}; give an OrtValue")
    kind = value.data_type().removeprefix("tensor(").removesuffix(")")
    ours = {theirs: dtype for dtype, theirs in _TYPES.items()}.get(kind, kind)
    return array_at(what, value.device_name().lower(), ours, value.shape(), value.data_ptr())
