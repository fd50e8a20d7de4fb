"""ONNX Runtime's `IOBinding` in front of a module that is bound to arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ModelError
from ..runtime.bound.binding import Binding
from .values import Array, OrtValue, array_at, array_of, check_device


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
        self._owners: dict[str, Any] = {}

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
        self.bind_cpu_input(name, array_at(repr(name), device_type, element_type, shape, buffer_ptr))

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
        check_device(repr(name), device_type)
        self._bound = None
        self._outputs[name] = (
            None if buffer_ptr is None else array_at(repr(name), device_type, element_type, shape, buffer_ptr)
        )

    def bind_ortvalue_input(self, name: str, ortvalue: Any) -> None:
        """Let an input be an `OrtValue`, of this package or of ONNX Runtime, where it is.

        Raises
        ------
        ModelError
            It is none, or not in the CPU's memory.
        """
        self.bind_cpu_input(name, array_of(repr(name), ortvalue))
        self._owners[f"input {name}"] = ortvalue

    def bind_ortvalue_output(self, name: str, ortvalue: Any) -> None:
        """Let an output be written to an `OrtValue`; raises as `bind_ortvalue_input`."""
        self._outputs[name], self._bound = array_of(repr(name), ortvalue), None
        self._owners[f"output {name}"] = ortvalue

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
        return [array.copy() for array in self._results().values()]

    def get_outputs(self) -> list[OrtValue]:
        """The outputs that are bound, in that order: where they were bound to, else copies; raises as the copies do."""
        return [
            OrtValue(array if self._outputs[name] is not None else array.copy())
            for name, array in self._results().items()
        ]

    def _results(self) -> dict[str, Array]:
        if self._bound is None:
            raise ModelError("the binding has not run; call run_with_iobinding first")
        return {name: self._bound.outputs[name] for name in self._outputs}

    def clear_binding_inputs(self) -> None:
        """Forget all inputs."""
        self._inputs, self._bound = {}, None
        self._forget("input ")

    def clear_binding_outputs(self) -> None:
        """Forget all outputs."""
        self._outputs, self._bound = {}, None
        self._forget("output ")

    def synchronize_inputs(self) -> None:
        """Nothing is to be waited for on a CPU."""

    def synchronize_outputs(self) -> None:
        """Nothing is to be waited for on a CPU."""

    def _forget(self, kind: str) -> None:
        self._owners = {name: owner for name, owner in self._owners.items() if not name.startswith(kind)}
