"""A Scan node in the making."""

import onnx
from onnx import helper

from ...emit import Emitter


class ScanNode:
    """A Scan node in the making. Whatever its body reads of the graph around it, it may name as it is.

    Parameters
    ----------
    around : Emitter
        Of the node that it becomes a part of.

    Attributes
    ----------
    body : Emitter
        Takes the nodes of a step.
    """

    def __init__(self, around: Emitter) -> None:
        self.body = around.inner()
        self._states: list[tuple[str, onnx.ValueInfoProto]] = []
        self._reads: list[tuple[str, onnx.ValueInfoProto, bool, int]] = []
        self._next: list[tuple[str, onnx.ValueInfoProto]] = []
        self._writes: list[tuple[str, onnx.ValueInfoProto, bool]] = []

    def carry(self, initial: str, kind: onnx.TypeProto) -> str:
        """A value that steps hand on; the name under which the body reads it."""
        name = f"{self.body.prefix}state{len(self._states)}"
        self._states.append((initial, helper.make_value_info(name, kind)))
        return name

    def read(self, values: str, kind: onnx.TypeProto, backward: bool, axis: int = 0) -> str:
        """Values of which each step reads its own, along an axis; the name under which the body does."""
        name = f"{self.body.prefix}x{len(self._reads)}"
        self._reads.append((values, helper.make_value_info(name, kind), backward, axis))
        return name

    def hand_on(self, value: str, kind: onnx.TypeProto) -> str:
        """What a step hands on, in the order of `carry`; the name of the last one outside of the loop."""
        name = f"{self.body.prefix}last{len(self._next)}"
        self._next.append((name, self._output(value, kind)))
        return name

    def write(self, value: str, kind: onnx.TypeProto, backward: bool) -> str:
        """A result of each step; the name of all of them outside of the loop."""
        name = f"{self.body.prefix}y{len(self._writes)}"
        self._writes.append((name, self._output(value, kind), backward))
        return name

    def _output(self, value: str, kind: onnx.TypeProto) -> onnx.ValueInfoProto:
        """An output of the body: each has a name of its own, as ONNX wants it."""
        name = f"{self.body.prefix}result{len(self._next)}_{len(self._writes)}"
        self.body.name(value, name)
        return helper.make_value_info(name, kind)

    def emit(self, around: Emitter) -> None:
        """Add the node."""
        inputs = [value for _, value in self._states] + [value for _, value, _, _ in self._reads]
        outputs = [value for _, value in self._next] + [value for _, value, _ in self._writes]
        body = helper.make_graph(self.body.nodes, "step", inputs, outputs, self.body.tensors)
        around.last(
            "Scan",
            *(name for name, _ in self._states),
            *(name for name, _, _, _ in self._reads),
            outputs=[*(name for name, _ in self._next), *(name for name, _, _ in self._writes)],
            body=body,
            num_scan_inputs=len(self._reads),
            scan_input_axes=[axis for *_, axis in self._reads],
            scan_input_directions=[int(backward) for _, _, backward, _ in self._reads],
            scan_output_directions=[int(backward) for _, _, backward in self._writes] or None,
        )
