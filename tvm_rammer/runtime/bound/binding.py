"""A module with arrays of the caller: called again and again, it reads and writes them where they are."""

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import tvm_ffi

from ...errors import ModelError
from ..tensors import TensorSpec, aligned_tensor, check_input, leaves_of, plain
from ..tvm_runtime import Machine

Array = np.ndarray[Any, Any]

DIRECT_ALIGNMENT = 64
"""TVM takes an array whose address is a multiple of this many bytes."""

_MOST_WORK = 100_000
"""Of NumPy's search for a common element, which is exponential in the number of axes; with more there may be one."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output, and where a launch has it.

    Parameters
    ----------
    spec : TensorSpec
        What the caller sees; of static shape.
    memory : TensorSpec
        The tensor of the launch.
    view : callable, optional
        The part of that tensor's memory that has the elements of the caller's array, in its shape. None where both are
        the same, so that the array itself may be the tensor.
    """

    spec: TensorSpec
    memory: TensorSpec
    view: Callable[[Array], Array] | None = None


class _Slot:
    """An array, and the tensor that stands for it in a launch.

    `memory` is the tensor's, `place` the part of it that the array is copied to or from: None where they are the same.
    """

    def __init__(self, array: Array, port: Port, *, private: bool) -> None:
        self.array = array
        if port.view is None and not private and _is_direct(array):
            self.memory, self.place = plain(array), None
            self.tensor = tvm_ffi.from_dlpack(self.memory)
        else:
            self.memory, self.tensor = aligned_tensor(port.memory)
            self.place = self.memory if port.view is None else port.view(self.memory)


def _is_direct(array: Array) -> bool:
    flags = array.flags
    return flags.c_contiguous and flags.writeable and array.ctypes.data % DIRECT_ALIGNMENT == 0


class _Assignment:
    """One assignment of the arrays to inputs and outputs, which states change from call to call.

    It has what a call copies, and the tensors that its launch takes.
    """

    def __init__(self, inputs: Mapping[str, _Slot], outputs: Mapping[str, _Slot], others: Sequence[Any]) -> None:
        read, self.results = tuple(inputs.values()), tuple(outputs.values())
        self.inputs, self.outputs = (
            MappingProxyType({name: slot.array for name, slot in slots.items()}) for slots in (inputs, outputs)
        )
        self.copied_in = [(slot.place, slot.array) for slot in read if slot.place is not None]
        self.copied_out = [(slot.array, slot.place) for slot in self.results if slot.place is not None]
        self.read = (*(slot.tensor for slot in read), *others)
        self.tensors = (*self.read, *(slot.tensor for slot in self.results))

    def run(self, machine: Machine) -> None:
        """Copy to the tensors that have memory of their own, launch, and copy the results from such tensors."""
        for place, array in self.copied_in:
            np.copyto(place, array)
        if machine.takes_all:
            machine.into(*self.tensors)
        else:
            self._run_with_others(machine)
        for array, place in self.copied_out:
            np.copyto(array, place)

    def _run_with_others(self, machine: Machine) -> None:
        """Launch where some results cannot be written in place, as an input that is returned, or those of a branch."""
        taken = machine.destinations
        results = machine.into(*self.read, *(slot.tensor for slot in itertools.compress(self.results, taken)))
        for slot, result, written in zip(self.results, leaves_of(results), taken, strict=True):
            if not written:
                np.copyto(slot.memory, np.from_dlpack(result))


def arrays_of(ports: Sequence[Port], given: Mapping[str, Any], what: str) -> dict[Port, Array]:
    """The array of each input or output: the caller's, or a new one of zeros.

    Parameters
    ----------
    ports : sequence of Port
    given : mapping of str to numpy.ndarray
        The caller's, by name.
    what : {"input", "output"}

    Raises
    ------
    ModelError
        One has no such name, is no array, cannot be written, or is of another shape or type; or NumPy has none for it.
    """
    for port in ports:
        if -1 in port.spec.shape or not hasattr(np, port.spec.dtype):
            raise ModelError(
                f"the {what} {port.spec.name!r} is {port.spec.dtype}{list(port.spec.shape)}, for which no array can be "
                "bound: its size is known in a run only, or NumPy has no such type; call the module instead"
            )
    for name, array in given.items():
        _check_known(name, [port.spec.name for port in ports], what)
        if not isinstance(array, np.ndarray):
            raise ModelError(
                f"the {what} {name!r} is bound to a {type(array).__name__}; give a NumPy array, whose memory is used"
            )
        if what == "output" and not array.flags.writeable:
            raise ModelError(f"the array of the output {name!r} cannot be written; give one that can")
    found = {}
    for port in ports:
        array = given.get(port.spec.name)
        if array is None:
            array, _ = aligned_tensor(port.spec)
        check_input(array, port.spec, what)
        found[port] = array
    return found


def _check_known(name: str, known: Iterable[str], what: str) -> None:
    if name not in known:
        raise ModelError(f"the model has no {what} {name!r}; its {what}s are {', '.join(known)}")


class Binding:
    """What `RammerModule.bind` returns: each call runs the module once, from the input arrays to the output arrays.

    A call makes no array and no tensor. Inputs are read before outputs are written: they may be the same array. Threads
    that call one binding take turns; let each have a binding of its own.

    Parameters
    ----------
    run : callable
        Takes the binding, and calls its `step` with the functions of a plan.
    inputs, outputs : mapping of Port to numpy.ndarray
    states : mapping of str to str
        Inputs, and the outputs with which their arrays change places after each call.
    others : sequence of tvm_ffi.Tensor
        What a launch takes after the inputs.

    Raises
    ------
    ModelError
        Outputs share memory, or the input and the output of a state differ.
    """

    def __init__(
        self,
        run: Callable[["Binding"], Any],
        inputs: Mapping[Port, Array],
        outputs: Mapping[Port, Array],
        states: Mapping[str, str],
        others: Sequence[Any] = (),
    ) -> None:
        _check_apart(outputs)
        pairs = _pairs(inputs, outputs, states)
        self._run, self._lock = run, threading.Lock()
        slots: dict[tuple[int, bool, TensorSpec], _Slot] = {}

        def slot(array: Array, port: Port, *, private: bool = False) -> _Slot:
            key = id(array), private, port.memory
            if key not in slots:
                slots[key] = _Slot(array, port, private=private)
            return slots[key]

        def assignment(read: Mapping[Port, Array], written: Mapping[Port, Array]) -> _Assignment:
            overlaps = {p: any(np.may_share_memory(a, other) for other in written.values()) for p, a in read.items()}
            return _Assignment(
                # The launch may write such memory before it has read all of it.
                {port.spec.name: slot(array, port, private=overlaps[port]) for port, array in read.items()},
                {port.spec.name: slot(array, port) for port, array in written.items()},
                others,
            )

        self._assignments = [assignment(inputs, outputs)]
        if pairs:
            exchanged = {read: outputs[written] for read, written in pairs}, {w: inputs[r] for r, w in pairs}
            self._assignments.append(assignment({**inputs, **exchanged[0]}, {**outputs, **exchanged[1]}))
        self._next = self._last = self._assignments[0]

    @property
    def inputs(self) -> Mapping[str, Array]:
        """The arrays that the next call reads."""
        return self._next.inputs

    @property
    def outputs(self) -> Mapping[str, Array]:
        """The arrays that the last call has written."""
        return self._last.outputs

    def __call__(self) -> Mapping[str, Array]:
        """Run the module once.

        Returns
        -------
        mapping of str to numpy.ndarray
            `outputs`.

        Raises
        ------
        ModelError, ToolError
            As for a call of the module.
        """
        self._run(self)
        return self._last.outputs

    def step(self, machine: Machine) -> None:
        """Run the module by the functions of a plan, which nobody else calls meanwhile."""
        with self._lock:
            current = self._next
            current.run(machine)
            self._last = current
            self._next = self._assignments[-1 if current is self._assignments[0] else 0]


def _check_apart(outputs: Mapping[Port, Array]) -> None:
    for (one, first), (other, second) in itertools.combinations(outputs.items(), 2):
        if np.may_share_memory(first, second, max_work=_MOST_WORK):  # type: ignore[arg-type]  # NumPy's stubs know 0 and -1 only
            raise ModelError(
                f"the arrays of the outputs {one.spec.name!r} and {other.spec.name!r} share memory; give each its own"
            )


def _pairs(
    inputs: Mapping[Port, Array], outputs: Mapping[Port, Array], states: Mapping[str, str]
) -> list[tuple[Port, Port]]:
    """The input and the output of each state."""
    ports = [{port.spec.name: port for port in some} for some in (inputs, outputs)]
    for names in states.items():
        for name, known, what in zip(names, ports, ("input", "output"), strict=True):
            _check_known(name, known, what)
    if len(set(states.values())) < len(states):
        raise ModelError(f"the states {', '.join(states)} have one output for two; give each its own")
    pairs = [(ports[0][read], ports[1][written]) for read, written in states.items()]
    for read, written in pairs:
        if (read.spec.shape, read.spec.dtype, read.memory.shape) != (
            written.spec.shape, written.spec.dtype, written.memory.shape,
        ):  # fmt: skip
            raise ModelError(
                f"the state {read.spec.name!r} is {read.spec.dtype}{list(read.spec.shape)}, and {written.spec.name!r}, "
                f"its next value, {written.spec.dtype}{list(written.spec.shape)}; only equal ones can change places"
            )
    return pairs
