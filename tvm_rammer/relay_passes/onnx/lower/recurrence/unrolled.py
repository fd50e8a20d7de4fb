"""A recurrent layer, step by step: each step is a few operators, which are planned with all others.

Layers run side by side, along diagonals, as in Rammer (OSDI 2020, section 5). What a layer reads is multiplied by its
weights for many steps at once, since that does not wait for the step before. What comes from another layer is
multiplied for `STEPS` steps at once, so that a layer begins when that one has done so many.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass

import numpy as np
import onnx

from ...emit import Constants, Types, attribute
from ...infer import static_dims
from .cells import State
from .layer import OPEN, Layer, Sizes

STEPS = 16
"""Steps of a layer below that are multiplied at once: enough for an efficient product, few enough to begin early."""

MOST_SLICES = 64
"""Steps whose share of a product is a slice, with a function of its own; in longer sequences it is picked by an index
that is data, and all steps share their functions."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What a layer of one direction made: the name of each step's result, all of them [steps, batch, hidden]."""

    names: list[str]
    shape: tuple[int, int, int]


def pass_on(node: onnx.NodeProto, types: Types, below: MutableMapping[str, Steps]) -> None:
    """What only drops or moves the axis of the one direction holds the same steps."""
    steps = below.get(node.input[0]) if node.input else None
    if steps is None:
        return
    time, batch, hidden = steps.shape
    moved = node.op_type == "Transpose" and list(attribute(node, "perm", ())) == [0, 2, 1, 3]
    if node.op_type in ("Squeeze", "Reshape") or (
        moved and static_dims(types.get(node.input[0])) == [time, 1, batch, hidden]
    ):
        below[node.output[0]] = steps


class Unrolled(Layer):
    """All steps of a layer.

    Parameters
    ----------
    node, sizes, constants, opset
        As for `Layer`.
    below : mapping of str to Steps
        What layers have made so far, by the names of their results; this layer adds its own.
    """

    def __init__(
        self, node: onnx.NodeProto, sizes: Sizes, constants: Constants, opset: int, below: MutableMapping[str, Steps]
    ) -> None:
        super().__init__(node, sizes, constants, opset)
        self._below = below

    def expand(self) -> None:
        """Add the nodes of all steps."""
        sizes, emit = self.sizes, self.emit
        made = [self._direction(d) for d in range(sizes.directions)]
        shape = (sizes.steps, sizes.directions, sizes.batch, sizes.hidden)
        y, y_h, y_c = self.results
        if y:
            every = [step for steps in zip(*(steps for steps, _ in made), strict=True) for step in steps]
            self.name_result(emit.reshape(emit.join(every, 0), shape), y, [2, 0, 1, 3])
        if y_h:
            hs = emit.join([last.h or "" for _, last in made], 0)
            self.name_result(emit.reshape(hs, shape[1:]), y_h, [1, 0, 2])
        if y_c:
            cs = emit.join([last.c or "" for _, last in made], 0)
            self.name_result(emit.reshape(cs, shape[1:]), y_c, [1, 0, 2])
        if sizes.directions == 1 and not self.batch_first and y:
            self._below[y] = Steps(made[0][0], (sizes.steps, sizes.batch, sizes.hidden))

    def _direction(self, d: int) -> tuple[list[str], State]:
        """Results of all steps in the order of time, [batch, hidden] each, and the last state."""
        cell, bias = self.cell(d, self.emit, self.sizes.hidden)
        state = State(self.initial(self.h, d), self.initial(self.c, d))
        steps: dict[int, str] = {}
        for t in range(self.sizes.steps) if self.forward(d) else reversed(range(self.sizes.steps)):
            x = self._projected(t, d, bias)
            parts = [cell.gate(x, *part) for part in cell.PARTS] if len(cell.PARTS) > 1 else [x]
            before, state = state, cell.step(parts, state)
            steps[t] = state.h or ""
            if self.lengths:
                number = self.emit.constant(np.array(t, np.int32))
                steps[t], state = self.within(self.emit, number, before, state)
        return [steps[t] for t in range(self.sizes.steps)], state

    def _projected(self, t: int, d: int, bias: str | None) -> str:
        """What step `t` reads, times the weights of a direction, with the biases: [batch, gates x hidden]."""
        emit, sizes = self.emit, self.sizes
        first, last = 0, sizes.steps
        steps = None if sizes.each else self._below.get(self.x)  # one scale quantises all rows of a layer of bytes
        if steps and not self.batch_first and steps.shape == (sizes.steps, sizes.batch, sizes.inputs):
            first = t - t % STEPS
            last = min(first + STEPS, sizes.steps)
            rows = emit.join(steps.names[first:last], 0)
        else:
            rows = self.all_rows()
        total = self.product(rows, d, bias, sizes.hidden, (0, self.kind.GATES))
        if last - first == 1:
            return total
        if last - first > MOST_SLICES or sizes.batch == OPEN:
            every = emit.reshape(total, [last - first, sizes.batch, self.kind.GATES * sizes.hidden])
            return emit("Gather", every, emit.constant(np.array(t - first, np.int64)), axis=0)
        return emit.part(total, 0, (t - first) * sizes.batch, (t - first + 1) * sizes.batch)
