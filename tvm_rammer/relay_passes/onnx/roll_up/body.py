"""The Scan that does what equal steps do, in their place."""

from collections.abc import MutableMapping

import numpy as np
import onnx
from onnx import helper

from ..compile_time import COMPILE_TIME
from ..emit import Emitter
from ..lower.recurrence.scan_node import ScanNode
from ..read import default_opset
from .check import EqualSteps, Fixed, Inner, Operand, Others, Read
from .cycle import Slot
from .order import Group
from .steps import Graph

Result = tuple[int, int]
"""A slot, and which of its results."""


class RolledUp:
    """A Scan in the place of equal steps.

    Parameters
    ----------
    model : onnx.ModelProto
    graph : Graph
        Of the model.
    steps : EqualSteps
    """

    def __init__(self, model: onnx.ModelProto, graph: Graph, steps: EqualSteps) -> None:
        self._graph, self._steps = graph, steps
        last = graph.nodes[steps.slots[0].node(steps.end - 1)]
        self._emit = Emitter(last, default_opset(model), how="rolled")
        self._scan = ScanNode(self._emit)
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        self._removed = {slot.node(t) for slot in steps.slots[: steps.own] for t in range(steps.first, steps.end)}
        self._states: dict[Result, str] = {}
        self._reads: dict[object, str] = {}
        self._held: dict[str, str] = {}

    def group(self, types: MutableMapping[str, onnx.TypeProto.Tensor]) -> Group:
        """The Scan, with what it reads ahead of it, and its results.

        Parameters
        ----------
        types : mapping of str to onnx.TypeProto.Tensor
            Of the values of the graph; gets those of new ones.
        """
        self._carry()
        self._add_body()
        self._results(types)
        return Group(frozenset(self._removed), tuple(self._emit.nodes), tuple(self._emit.tensors))

    def _value(self, result: Result) -> str:
        return f"{self._scan.body.prefix}{result[0]}_{result[1]}"

    def _name(self, result: Result, step: int) -> str:
        """The name of a result of one step in the graph."""
        return str(self._graph.nodes[self._steps.slots[result[0]].node(step)].output[result[1]])

    def _type(self, name: str) -> onnx.TypeProto:
        return helper.make_tensor_type_proto(self._graph.elem_type(name), self._graph.dims(name))

    def _carry(self) -> None:
        """What steps hand on: whatever one reads of the one before."""
        for slot, at, operand in self._steps.back():
            result = operand.slot, operand.output
            if result not in self._states:
                first = str(self._graph.nodes[slot.node(self._steps.first)].input[at])
                self._states[result] = self._scan.carry(first, self._type(self._name(result, self._steps.end - 1)))

    def _add_body(self) -> None:
        """One step, in the order of its nodes in the graph."""
        steps, body = self._steps, self._scan.body
        order = sorted(range(len(steps.slots)), key=lambda number: steps.slots[number].node(steps.end - 1))
        for number in order:
            slot, node = steps.slots[number], onnx.NodeProto()
            node.CopyFrom(self._graph.nodes[slot.node(steps.end - 1)])
            needed = COMPILE_TIME.get(node.op_type, ())
            node.input[:] = [
                self._hold(operand.name) if isinstance(operand, Fixed) and at in needed else self._read(slot, operand)
                for at, operand in enumerate(steps.operands[number])
            ]
            node.output[:] = [name and self._value((number, at)) for at, name in enumerate(node.output)]
            node.name = ""
            body.nodes.append(node)

    def _read(self, slot: Slot, operand: Operand) -> str:
        """The name under which the body has what a slot reads."""
        match operand:
            case Fixed(name):
                return name
            case Inner(number, output, back):
                return self._states[number, output] if back else self._value((number, output))
            case Read():
                return self._slice(operand)
            case Others(at):
                return self._other(slot, at)

    def _hold(self, name: str) -> str:
        """A constant that has to be known when the step is compiled becomes one of the step."""
        if name in self._tensors and name not in self._held:
            self._held[name] = self._scan.body.copy(self._tensors[name])
        return self._held.get(name, name)

    def _slice(self, read: Read) -> str:
        emit, steps = self._emit, self._steps
        dims = self._graph.dims(read.array) or ()
        ends = [read.base + read.direction * t for t in (steps.first, steps.end - 1)]
        key = read.array, read.axis, min(ends), read.direction
        if key not in self._reads:
            array = read.array
            if max(ends) - min(ends) + 1 < dims[read.axis]:
                array = emit.part(array, read.axis, min(ends), max(ends) + 1)
            shape = dims[: read.axis] + dims[read.axis + 1 :]
            kind = helper.make_tensor_type_proto(self._graph.elem_type(read.array), shape)
            self._reads[key] = self._scan.read(array, kind, read.direction < 0, read.axis)
        return self._scan.body.axes("Unsqueeze", self._reads[key], read.axis) if read.kept else self._reads[key]

    def _other(self, slot: Slot, at: int) -> str:
        """What has no array becomes one."""
        names = tuple(self._graph.nodes[slot.node(t)].input[at] for t in range(self._steps.first, self._steps.end))
        if names not in self._reads:
            dims = self._graph.dims(names[-1]) or ()
            rows = list(names) if dims else [self._emit.axes("Unsqueeze", name, 0) for name in names]
            array = self._emit.reshape(self._emit.join(rows, 0), [len(names), *dims])
            self._reads[names] = self._scan.read(array, self._type(names[-1]), False)
        return self._reads[names]

    def _results(self, types: MutableMapping[str, onnx.TypeProto.Tensor]) -> None:
        """Name the last states, and what is read of steps outside of the Scan."""
        steps, emit = self._steps, self._emit
        lasts = {
            result: self._scan.hand_on(self._value(result), self._type(self._name(result, steps.end - 1)))
            for result in self._states
        }
        backward = any(isinstance(o, Read) and o.direction < 0 for some in steps.operands for o in some)
        written: dict[Result, tuple[str, list[int]]] = {}
        for number in range(steps.own):
            for at in range(len(self._graph.nodes[steps.slots[number].node(steps.first)].output)):
                result = number, at
                used = [t for t in range(steps.first, steps.end) if self._is_used(self._name(result, t))]
                if used and (used != [steps.end - 1] or result not in lasts):
                    kind = self._type(self._name(result, used[0]))
                    written[result] = self._scan.write(self._value(result), kind, backward), used
                elif used:
                    written[result] = lasts[result], used
        self._scan.emit(emit)
        for result, (name, used) in written.items():
            if name == lasts.get(result):
                emit.name(name, self._name(result, steps.end - 1))
                continue
            dims = self._graph.dims(self._name(result, used[0])) or ()
            whole = (steps.end - steps.first, *dims)
            types[name] = helper.make_tensor_type_proto(
                self._graph.elem_type(self._name(result, used[0])), whole
            ).tensor_type
            for step in used:
                at = steps.end - 1 - step if backward else step - steps.first
                part, shape = emit.part(name, 0, at, at + 1), emit.constant(np.array(dims, np.int64))
                emit.last("Reshape", part, shape, outputs=[self._name(result, step)])

    def _is_used(self, name: str) -> bool:
        """Whether anything but the removed nodes reads a value."""
        return any(reader not in self._removed for reader in self._graph.readers.get(name, ()))
