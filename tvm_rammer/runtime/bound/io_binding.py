"""ONNX Runtime's `IOBinding` in front of a module that is bound to arrays."""

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...arguments import names_of, whole
from ...errors import ModelError
from .binding import Binding

Array = np.ndarray[Any, Any]


class IOBinding:
    """What `InferenceSession.io_binding` returns: arrays and addresses that a model reads and writes.

    Parameters
    ----------
    bind : callable
        Binds the session's module to input and output arrays (`RammerModule.bind`).
    """

    def __init__(self, bind: Callable[[Mapping[str, Array], Mapping[str, Array]], Binding]) -> None:
        self._bind = bind
        self._inputs: dict[str, Array] = {}
        self._outputs: dict[str, Array | None] = {}
        self._bound: Binding | None = None

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Let an input be an array, whose elements of the time of a run are read."""
        self._inputs[name], self._bound = arr_on_cpu, None

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Let an input be what is at an address.

        Raises
        ------
        ModelError
            It is not in the CPU's memory.
        """
        self.bind_cpu_input(name, _array_at(name, device_type, element_type, shape, buffer_ptr))

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Let an output be written to an address; without one to an array that is made.

        Raises
        ------
        ModelError
            It is not in the CPU's memory, or its type or shape are missing.
        """
        _check_device(name, device_type)
        self._bound = None
        self._outputs[name] = (
            None if buffer_ptr is None else _array_at(name, device_type, element_type, shape, buffer_ptr)
        )

    def run(self) -> None:
        """Run the model; raises as `RammerModule.bind` and a call do."""
        if self._bound is None:
            given = {name: array for name, array in self._outputs.items() if array is not None}
            self._bound = self._bind(self._inputs, given)
            for name in self._outputs:
                if name not in self._bound.outputs:
                    known = ", ".join(self._bound.outputs)
                    raise ModelError(f"the model has no output {name!r}; its outputs are {known}")
        self._bound()

    def copy_outputs_to_cpu(self) -> list[Array]:
        """Copies of the outputs that are bound, in that order.

        Raises
        ------
        ModelError
            Nothing has run yet.
        """
        if self._bound is None:
            raise ModelError("the binding has not run; call run_with_iobinding first")
        return [self._bound.outputs[name].copy() for name in self._outputs]

    def clear_binding_inputs(self) -> None:
        """Forget all inputs."""
        self._inputs, self._bound = {}, None

    def clear_binding_outputs(self) -> None:
        """Forget all outputs."""
        self._outputs, self._bound = {}, None

    def synchronize_inputs(self) -> None:
        """Nothing is to be waited for on a CPU."""

    def synchronize_outputs(self) -> None:
        """Nothing is to be waited for on a CPU."""


def _check_device(name: str, device_type: str) -> None:
    if device_type != "cpu":
        raise ModelError(f"{name!r} is bound to the device {device_type!r}, and a session runs on 'cpu'; bind it there")


def _array_at(name: str, device_type: str, element_type: Any, shape: Sequence[int] | None, address: int) -> Array:
    """The memory at an address as an array."""
    _check_device(name, device_type)
    if element_type is None or shape is None:
        raise ModelError(f"{name!r} is bound to an address without its type and shape; give element_type and shape")
    try:
        dtype = np.dtype(element_type)
    except TypeError as error:
        raise ModelError(f"{name!r} is bound as {element_type!r}; give a NumPy type, such as numpy.float32") from error
    extents = tuple(whole(f"an extent of {name!r}", extent, 0) for extent in names_of(f"the shape of {name!r}", shape))
    memory = (ctypes.c_char * (math.prod(extents) * dtype.itemsize)).from_address(whole("buffer_ptr", address, 1))
    return np.frombuffer(memory, dtype).reshape(extents)
