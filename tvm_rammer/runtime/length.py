"""A module that learns the length of its sequences from each call: compiled once, it takes any up to a bound."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm_ffi

from ..errors import ShapeError
from ..ir import Length
from ..saving.file import Facts
from .bound.binding import Port
from .contexts import Context, ContextPool
from .explore import Exploration
from .module import CONCURRENCY, RammerModule
from .tensors import TensorSpec, aligned_tensor, check_input, leaves_of, on_host, rows_first, to_numpy, to_tensor


class LengthModule(RammerModule):
    """A module one dimension of which has any size, from 1 to a bound.

    It is called as any other module. `inputs` and `outputs` have the extent -1 where the length is. Inputs are copied
    to where all rows have room, rows first; results are the rows that there are. For a GPU that is done in the memory
    of the host.

    Parameters
    ----------
    exploration : Exploration
    inputs, outputs : sequence of TensorSpec
        With -1 for the length.
    length : Length
    concurrency : int
    """

    def __init__(
        self,
        exploration: Exploration,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        length: Length,
        concurrency: int = CONCURRENCY,
    ) -> None:
        super().__init__(exploration, inputs, outputs, concurrency)
        self.length = length
        self._writes_arrays = False  # results have rows beyond the end
        self._open = [(n, axis) for n, axis in enumerate(length.inputs) if axis is not None]
        staged = [rows_first(spec, axis, length.room) for spec, axis in zip(self.inputs, length.inputs, strict=True)]
        self._staged = [*staged, TensorSpec(length.name, (1,), "int32")]
        self._contexts = ContextPool(self._staged, concurrency if self._on_cpu else 1)

    def explain(self) -> str:
        """Tell what each operator became, and which lengths that serves."""
        told = f"This serves every {self.length.name!r} from 1 to {self.length.most}; times are of the longest."
        return f"{super().explain()}\n{told}"

    def facts(self) -> Facts:
        """What running it from a file needs to know."""
        return Facts.of(self.exploration.best, self.inputs, self.outputs, self.length)

    def _ports(self, inputs: Mapping[str, Any]) -> tuple[list[Port], list[Port], list[Any]]:
        given = [array if isinstance(array := inputs.get(spec.name), np.ndarray) else None for spec in self.inputs]
        for array, spec in zip(given, self.inputs, strict=True):
            if array is not None:
                check_input(array, spec)
        number, (count, told) = self._number(given), aligned_tensor(TensorSpec(self.length.name, (1,), "int32"))
        count[0] = number
        read, written = (
            [_port(spec, axis, number, self.length.room) for spec, axis in zip(specs, axes, strict=True)]
            for specs, axes in ((self.inputs, self.length.inputs), (self.outputs, self.length.outputs))
        )
        return read, written, [told]

    def _tensors(self, context: Context, given: Sequence[Any], by_numpy: bool) -> Sequence[Any]:
        arrays = [on_host(value, spec) for value, spec in zip(given, self.inputs, strict=True)]
        for array, spec in zip(arrays, self.inputs, strict=True):
            check_input(array, spec)
        number = self._number(arrays)
        places = context.places()
        for array, axis, (place, _) in zip(arrays, self.length.inputs, places, strict=False):
            if axis is None:
                np.copyto(place, array)
            else:
                np.copyto(place[:number], np.moveaxis(array, axis, 0) if axis else array)
        places[-1][0][0] = number
        if self._on_cpu:
            return [tensor for _, tensor in places]
        device = self.runtime_device()
        return [to_tensor(place, spec, device) for (place, _), spec in zip(places, self._staged, strict=True)]

    def _returned(self, result: Any, given: Sequence[Any], by_numpy: bool) -> Any:
        number = self._number(given)
        leaves = [
            self._rows(leaf, spec, axis, number, by_numpy)
            for leaf, spec, axis in zip(leaves_of(result), self.outputs, self.length.outputs, strict=True)
        ]
        return leaves[0] if isinstance(result, tvm_ffi.Tensor) else tuple(leaves)

    def _rows(self, leaf: Any, spec: TensorSpec, axis: int | None, number: int, by_numpy: bool) -> Any:
        """A result without the rows beyond the end."""
        array = np.from_dlpack(leaf) if self._on_cpu else to_numpy(leaf)
        if axis is not None:
            array = np.moveaxis(array[:number], 0, axis) if axis else array[:number]
        if by_numpy:
            return array.copy()
        if axis is None:
            return leaf
        return _tensor_of(array) if self._on_cpu else to_tensor(array, spec, self.runtime_device())

    def _number(self, given: Sequence[Any]) -> int:
        """The length of a call."""
        found = {int(given[n].shape[axis]) for n, axis in self._open if given[n] is not None}
        if not found:
            raise ShapeError(f"the dimension {self.length.name!r} is not known; give an array to an input that has it")
        if len(found) > 1 or not 1 <= next(iter(found)) <= self.length.most:
            told = " and ".join(map(str, sorted(found)))
            raise ShapeError(
                f"the dimension {self.length.name!r} is {told}; give one size to all inputs that have it, from 1 to "
                f"{self.length.most}"
            )
        return found.pop()


def _port(spec: TensorSpec, axis: int | None, number: int, room: int) -> Port:
    """An input or a result of so many rows, and the memory of a launch, which has room for all."""
    if axis is None:
        return Port(spec, spec)
    shape = (*spec.shape[:axis], number, *spec.shape[axis + 1 :])
    return Port(
        TensorSpec(spec.name, shape, spec.dtype),
        rows_first(spec, axis, room),
        lambda memory: np.moveaxis(memory[:number], 0, axis),
    )


def _tensor_of(array: np.ndarray[Any, Any]) -> Any:
    """A tensor of TVM that shares the memory of an array, where that lies without gaps."""
    return tvm_ffi.from_dlpack(np.ascontiguousarray(array))


def user_shape(spec: TensorSpec, axis: int | None) -> TensorSpec:
    """What a user sees of an input or result that has rows as its first axis."""
    if axis is None:
        return spec
    rest = spec.shape[1:]
    return TensorSpec(spec.name, (*rest[:axis], -1, *rest[axis:]), spec.dtype)
