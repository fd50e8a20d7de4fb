"""A recurrent layer as a loop: an ONNX Scan, whose body is one step of each direction.

What the layer reads is multiplied by its weights ahead of the loop, for all steps at once. Both directions are in one
loop, for neither waits for the other.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper

from .cells import Lstm, State
from .layer import Layer
from .scan_node import ScanNode

BLOCKS = (16, 8, 4)
"""Columns of a gate that lie side by side in the products of a loop, where one of these divides the hidden size: a
vEU has all gates of the columns that it computes, and waits for nobody between the product and the gates."""


class Looped(Layer):
    """The loop over all steps of a layer."""

    def expand(self) -> None:
        """Add the products ahead of the loop, the loop, and the results."""
        sizes, emit = self.sizes, self.emit
        loop = ScanNode(self.emit)
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

    def _direction(self, d: int, loop: ScanNode) -> "_Direction":
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
