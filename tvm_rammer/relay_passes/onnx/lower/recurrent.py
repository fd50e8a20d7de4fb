"""Unroll recurrent layers: LSTM, GRU and RNN nodes become the operators that ONNX defines them by, step by step.

TVM's frontend lacks these nodes. Unrolled, a step is a few rOperators that are planned with all others, so layers run
side by side, along diagonals, as in Rammer (OSDI 2020, section 5). What a layer reads is multiplied by its weights for
many steps at once, since that does not wait for the step before. What comes from another layer is multiplied for
`STEPS` steps at once, so that a layer begins when that one has done so many.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ....errors import ModelError
from ..emit import Constants, Emitter, Types, attribute, replace_nodes
from ..fold import static_dims
from ..read import default_opset
from .cells import CELLS, Activation, Cell, Gru, State, Weights, activation

STEPS = 16
"""Steps of a layer below that are multiplied at once: enough for an efficient product, few enough to begin early."""

MOST_SLICES = 64
"""Steps whose share of a product is a slice, with a function of its own; in longer sequences it is picked by an index
that is data, and all steps share their functions."""

MOST_STEPS = 4096
"""In all layers together: so many take minutes to compile."""


def unroll_recurrent(model: onnx.ModelProto) -> bool:
    """Replace the LSTM, GRU and RNN nodes whose sizes are known, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded, of opset 10 or later.

    Returns
    -------
    bool
        Whether there were any.

    Raises
    ------
    ModelError
        All layers together have more than `MOST_STEPS` steps, or one has activation functions that ONNX does not know.
    """
    return replace_nodes(model, _Layers(default_opset(model)).replacement)


class _Layers:
    """All recurrent layers of a model: how many steps they have, and which stand on which."""

    def __init__(self, opset: int) -> None:
        self._opset, self._steps = opset, 0
        self._below: dict[str, _Steps] = {}

    def replacement(self, node: onnx.NodeProto, constants: Constants, types: Types) -> Emitter | None:
        """What takes a node's place, as `replace_nodes` wants it."""
        for name in node.output:  # another branch of an If may have used the name
            self._below.pop(name, None)
        sizes = _sizes(node, types)
        if sizes is None:
            _pass_on(node, types, self._below)
            return None
        self._steps += sizes.steps * sizes.directions
        if self._steps > MOST_STEPS:
            raise ModelError(
                f"{node.op_type} {_name(node)!r} has {sizes.steps} steps, all recurrent layers together more than "
                f"{MOST_STEPS}, which is the most that is unrolled; give a shorter sequence"
            )
        layer = _Layer(node, sizes, constants, self._below, self._opset)
        layer.unroll()
        return layer.emit


@dataclass(frozen=True, slots=True)
class _Sizes:
    steps: int
    batch: int
    inputs: int
    hidden: int
    directions: int
    dtype: np.dtype[Any]


def _sizes(node: onnx.NodeProto, types: Types) -> _Sizes | None:
    """The sizes of a recurrent layer; None where they are not known, and for any other node."""
    if node.op_type not in CELLS or node.domain not in ("", "ai.onnx"):
        return None
    x, r = (static_dims(types.get(name)) for name in (node.input[0], node.input[2]))
    if x is None or r is None or len(x) != 3 or len(r) != 3 or x[0] * x[1] == 0:
        return None
    steps, batch = (x[1], x[0]) if attribute(node, "layout", 0) else (x[0], x[1])
    dtype = helper.tensor_dtype_to_np_dtype(types[node.input[0]].elem_type)
    return _Sizes(steps, batch, x[2], r[2], r[0], dtype)


@dataclass(frozen=True, slots=True)
class _Steps:
    """What a layer of one direction made: the name of each step's result, all of them [steps, batch, hidden]."""

    names: list[str]
    shape: tuple[int, int, int]


def _pass_on(node: onnx.NodeProto, types: Types, below: dict[str, _Steps]) -> None:
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


def _name(node: onnx.NodeProto) -> str:
    return node.name or next(name for name in node.output if name)


class _Layer:
    """One recurrent node, and the nodes that take its place."""

    def __init__(
        self,
        node: onnx.NodeProto,
        sizes: _Sizes,
        constants: Constants,
        below: dict[str, _Steps],
        opset: int,
    ) -> None:
        self.emit = Emitter(node, opset, sizes.dtype)
        self._node, self._sizes, self._constants, self._below = node, sizes, constants, below
        self._batch_first = bool(attribute(node, "layout", 0))
        self._x, self._w, self._r, self._b, self._lengths, self._h, self._c, self._peephole = (
            *(str(name) for name in node.input),
            *([""] * (8 - len(node.input))),
        )
        lengths = self._known(self._lengths)
        if lengths is not None and (lengths >= sizes.steps).all():
            self._lengths = ""

    def unroll(self) -> None:
        """Add the nodes of all steps, and give the results the names of the node's outputs."""
        sizes, emit = self._sizes, self.emit
        forward = attribute(self._node, "direction", b"forward") != b"reverse"
        made = [self._direction(d, forward and d == 0) for d in range(sizes.directions)]
        shape = (sizes.steps, sizes.directions, sizes.batch, sizes.hidden)
        y, y_h, y_c = (*self._node.output, "", "", "")[:3]
        if y:
            every = [step for steps in zip(*(steps for steps, _ in made), strict=True) for step in steps]
            self._result(emit.reshape(emit.join(every, 0), shape), y, [2, 0, 1, 3])
        if y_h:
            self._result(emit.reshape(emit.join([last.h or "" for _, last in made], 0), shape[1:]), y_h, [1, 0, 2])
        if y_c:
            self._result(emit.reshape(emit.join([last.c or "" for _, last in made], 0), shape[1:]), y_c, [1, 0, 2])
        if sizes.directions == 1 and not self._batch_first and self._node.output[0]:
            self._below[self._node.output[0]] = _Steps(made[0][0], (sizes.steps, sizes.batch, sizes.hidden))

    def _result(self, value: str, name: str, batch_first: list[int]) -> None:
        self.emit.name(self.emit("Transpose", value, perm=batch_first) if self._batch_first else value, name)

    def _direction(self, d: int, forward: bool) -> tuple[list[str], State]:
        """Results of all steps in the order of time, [batch, hidden] each, and the last state."""
        cell, bias = self._cell(d)
        state = State(self._initial(self._h, d), self._initial(self._c, d))
        steps: dict[int, str] = {}
        for t in range(self._sizes.steps) if forward else reversed(range(self._sizes.steps)):
            before, state = state, cell.step(self._projected(t, d, bias), state)
            steps[t] = state.h or ""
            if self._lengths:
                steps[t], state = self._within(t, before, state)
        return [steps[t] for t in range(self._sizes.steps)], state

    def _cell(self, d: int) -> tuple[Cell, str | None]:
        """The cell of a direction, and the bias of what it reads."""
        emit, hidden = self.emit, self._sizes.hidden
        kind = CELLS[self._node.op_type]
        coupled = bool(attribute(self._node, kind.COUPLED, 0))
        bias = new_bias = None
        if self._b:
            gates = kind.GATES * hidden
            both = emit.reshape(emit.part(self._b, 0, d, d + 1), [2 * gates])
            bias, of_state = emit.part(both, 0, 0, gates), emit.part(both, 0, gates, 2 * gates)
            if kind is Gru and coupled:
                new_bias = emit.part(of_state, 0, 2 * hidden, 3 * hidden)
                nothing = emit.constant(np.zeros(hidden, self._sizes.dtype))
                of_state = emit.join([emit.part(of_state, 0, 0, 2 * hidden), nothing], 0)
            bias = emit("Add", bias, of_state)
        peephole: tuple[str, ...] = ()
        if self._peephole:
            all_three = emit.reshape(emit.part(self._peephole, 0, d, d + 1), [3 * hidden])
            peephole = tuple(emit.part(all_three, 0, n * hidden, (n + 1) * hidden) for n in range(3))
        weights = Weights(self._matrix(self._r, d), peephole, new_bias, hidden)
        return kind(emit, weights, self._activations(kind, d), attribute(self._node, "clip", None), coupled), bias

    def _matrix(self, weights: str, d: int) -> str:
        """Weights of a direction, with the gates in columns."""
        rows = CELLS[self._node.op_type].GATES * self._sizes.hidden
        part = self.emit.reshape(self.emit.part(weights, 0, d, d + 1), [rows, -1])
        return self.emit("Transpose", part, perm=[1, 0])

    def _activations(self, kind: type[Cell], d: int) -> list[Activation]:
        count = len(kind.DEFAULTS)
        given = [name.decode() for name in attribute(self._node, "activations", ())]
        names = given or [*kind.DEFAULTS] * self._sizes.directions
        alphas = iter(attribute(self._node, "activation_alpha", ()))
        betas = iter(attribute(self._node, "activation_beta", ()))
        found = [activation(self.emit, name, alphas, betas) for name in names]
        known = [made for made in found if made is not None]
        if len(known) != count * self._sizes.directions:
            raise ModelError(
                f"{self._node.op_type} {_name(self._node)!r} has the activation functions {', '.join(names)}; "
                f"give {count * self._sizes.directions} that ONNX knows"
            )
        return known[d * count : (d + 1) * count]

    def _projected(self, t: int, d: int, bias: str | None) -> str:
        """What step `t` reads, times the weights of a direction, with the biases: [batch, gates x hidden]."""
        emit, sizes = self.emit, self._sizes
        first, last = 0, sizes.steps
        steps = self._below.get(self._x)
        if steps and not self._batch_first and steps.shape == (sizes.steps, sizes.batch, sizes.inputs):
            first = t - t % STEPS
            last = min(first + STEPS, sizes.steps)
            rows = emit.join(steps.names[first:last], 0)
        else:
            x = emit("Transpose", self._x, perm=[1, 0, 2]) if self._batch_first else self._x
            rows = emit.reshape(x, [sizes.steps * sizes.batch, sizes.inputs])
        total = emit("MatMul", rows, self._matrix(self._w, d))
        if bias is not None:
            total = emit("Add", total, bias)
        if last - first == 1:
            return total
        if last - first > MOST_SLICES:
            every = emit.reshape(total, [last - first, sizes.batch, -1])
            return emit("Gather", every, emit.constant(np.array(t - first, np.int64)), axis=0)
        return emit.part(total, 0, (t - first) * sizes.batch, (t - first + 1) * sizes.batch)

    def _initial(self, states: str, d: int) -> str | None:
        """The state at the beginning; None where it is zero."""
        known = self._known(states)
        if not states or (known is not None and not known.any()):
            return None
        if self._sizes.directions > 1:
            states = self.emit.part(states, int(self._batch_first), d, d + 1)
        return self.emit.reshape(states, [self._sizes.batch, self._sizes.hidden])

    def _within(self, t: int, before: State, after: State) -> tuple[str, State]:
        """The result of a step, and the state after it: zero, and as before, where a sequence has ended."""
        emit = self.emit
        runs = emit.reshape(emit("Less", emit.constant(np.array(t, np.int32)), self._lengths), [self._sizes.batch, 1])
        zero = emit.number(0.0)
        h = emit("Where", runs, after.h or "", before.h or zero)
        c = after.c and emit("Where", runs, after.c, before.c or zero)
        return emit("Where", runs, after.h or "", zero), State(h, c)

    def _known(self, name: str) -> np.ndarray[Any, Any] | None:
        return numpy_helper.to_array(self._constants[name]) if name in self._constants else None
