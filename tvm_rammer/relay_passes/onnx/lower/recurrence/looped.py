"""A recurrent layer as a loop: an ONNX Scan, whose body is one step of each direction.

What the layer reads is multiplied by its weights ahead of the loop, for all steps at once. Both directions are in one
loop, for neither waits for the other.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper

from ...emit import Emitter
from .cells import Lstm, State
from .layer import Layer

BLOCKS = (16, 8, 4)
"""Columns of a gate that lie side by side in the products of a loop, where one of these divides the hidden size: a
vEU has all gates of the columns that it computes, and waits for nobody between the product and the gates."""


class Looped(Layer):
    """The loop over all steps of a layer."""

    def expand(self) -> None:
        """Add the products ahead of the loop, the loop, and the results."""
        sizes, emit = self.sizes, self.emit
        loop = _Scan(self.emit)
        ys = [self._direction(d, loop) for d in range(sizes.directions)]
        y, y_h, y_c = self.results
        loop.emit(emit)
        if y:
            made = [emit.axes("Unsqueeze", direction.y, 1) for direction in ys]
            self.name_result(emit.join(made, 1), y, [2, 0, 1, 3])
        if y_h:
            hs = [emit.axes("Unsqueeze", direction.last.h or "", 0) for direction in ys]
            self.name_result(emit.join(hs, 0), y_h, [1, 0, 2])
        if y_c:
            cs = [emit.axes("Unsqueeze", direction.last.c or "", 0) for direction in ys]
            self.name_result(emit.join(cs, 0), y_c, [1, 0, 2])

    def _direction(self, d: int, loop: "_Scan") -> "_Direction":
        sizes, emit = self.sizes, self.emit
        block = next((b for b in BLOCKS if sizes.hidden % b == 0), sizes.hidden)
        cell, bias = self.cell(d, loop.body, block)
        backward = not self.forward(d)
        x = []
        for part in cell.PARTS:
            rows = self.product(self.all_rows(), d, bias, block, part)
            every = emit.reshape(rows, [sizes.steps, sizes.batch, -1])
            x.append(loop.read(every, self._type([sizes.batch, part[1] * sizes.hidden]), backward))
        shape = [sizes.batch, sizes.hidden]
        # An RNN or GRU has no cell state: its cells ignore `c`, and hand on None.
        names = [self.h, self.c] if self.kind is Lstm else [self.h]
        zeros = emit.constant(np.zeros(shape, sizes.dtype))
        given = [self.initial(name, d) or zeros for name in names]
        before = [loop.carry(name, self._type(shape)) for name in given]
        state = State(*before)
        after = cell.step(x, state)
        result = after.h or ""
        if self.lengths:
            number = emit.constant(np.arange(sizes.steps, dtype=np.int32))
            t = loop.read(number, helper.make_tensor_type_proto(TensorProto.INT32, []), backward)
            result, after = self.within(loop.body, t, state, after)
        lasts = [loop.hand_on(value or "", self._type(shape)) for value in (after.h, after.c)[: len(names)]]
        return _Direction(loop.write(result, self._type(shape), backward), State(*lasts))

    def _type(self, shape: list[int]) -> onnx.TypeProto:
        return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(self.sizes.dtype), shape)


class _Direction:
    """What a direction of the loop makes: the name of all steps' results, and of the last state."""

    def __init__(self, y: str, last: State) -> None:
        self.y, self.last = y, last


class _Scan:
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
        self._reads: list[tuple[str, onnx.ValueInfoProto, bool]] = []
        self._next: list[tuple[str, onnx.ValueInfoProto]] = []
        self._writes: list[tuple[str, onnx.ValueInfoProto, bool]] = []

    def carry(self, initial: str, kind: onnx.TypeProto) -> str:
        """A value that steps hand on; the name under which the body reads it."""
        name = f"{self.body.prefix}state{len(self._states)}"
        self._states.append((initial, helper.make_value_info(name, kind)))
        return name

    def read(self, values: str, kind: onnx.TypeProto, backward: bool) -> str:
        """Values of which each step reads its own, along the first axis; the name under which the body does."""
        name = f"{self.body.prefix}x{len(self._reads)}"
        self._reads.append((values, helper.make_value_info(name, kind), backward))
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
        inputs = [value for _, value in self._states] + [value for _, value, _ in self._reads]
        outputs = [value for _, value in self._next] + [value for _, value, _ in self._writes]
        body = helper.make_graph(self.body.nodes, "step", inputs, outputs, self.body.tensors)
        around.last(
            "Scan",
            *(name for name, _ in self._states),
            *(name for name, _, _ in self._reads),
            outputs=[*(name for name, _ in self._next), *(name for name, _, _ in self._writes)],
            body=body,
            num_scan_inputs=len(self._reads),
            scan_input_directions=[int(backward) for _, _, backward in self._reads],
            scan_output_directions=[int(backward) for _, _, backward in self._writes],
        )
