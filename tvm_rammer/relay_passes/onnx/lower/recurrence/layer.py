"""One recurrent node, LSTM, GRU or RNN: what it says, as cells that step through time."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from .....errors import ModelError
from ...check.names import name_of
from ...emit import Constants, Emitter, Types, attribute
from ...infer import static_dims
from ...read import MICROSOFT
from .cells import CELLS, Activation, Cell, Gru, Lstm, State, Weights, activation
from .matrices import Bytes, Matrices, Numbers

QUANTISED = (MICROSOFT, "DynamicQuantizeLSTM")
"""An LSTM whose weights are bytes, and that quantises what it multiplies by them."""


OPEN = -1
"""The size of a batch that only the data say."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a recurrent layer; its batch may be `OPEN` where its steps are unrolled."""

    steps: int
    batch: int
    inputs: int
    hidden: int
    directions: int
    dtype: np.dtype[Any]
    each: tuple[bool, bool] | None = None
    """Of a layer of bytes: whether W and R have a scale for each column; None for a layer of numbers."""


def sizes_of(node: onnx.NodeProto, types: Types) -> Sizes | None:
    """The sizes of a recurrent layer; None where they are not known, and for any other node.

    Raises
    ------
    ModelError
        It has no step, or its input other axes than steps, a batch and numbers.
    """
    if cell_of(node) is None:
        return None
    x, r = (static_dims(types.get(name)) for name in (node.input[0], node.input[2]))
    for sizes, what in ((x, "an input"), (r, "recurrent weights")):
        if sizes is not None and len(sizes) != 3:
            raise ModelError(
                f"{node.op_type} {name_of(node)!r} has {what} of the shape {sizes}, which is to have three axes; "
                "give the model's inputs the shapes that it was made for"
            )
    if x is None or r is None:
        return None
    if 0 in x[:2]:
        raise ModelError(
            f"{node.op_type} {name_of(node)!r} has no step, for its input has the shape {x}; give one step at least"
        )
    steps, batch = (x[1], x[0]) if attribute(node, "layout", 0) else (x[0], x[1])
    dtype = onnx.helper.tensor_dtype_to_np_dtype(types[node.input[0]].elem_type)
    if (node.domain, node.op_type) != QUANTISED:
        return Sizes(steps, batch, x[2], r[2], r[0], dtype)
    each = _each_column(node, types)
    return Sizes(steps, batch, x[2], r[1], r[0], dtype, each) if each else None


def cell_of(node: onnx.NodeProto) -> type[Cell] | None:
    """What a recurrent layer does in a step; None for any other node."""
    if (node.domain, node.op_type) == QUANTISED:
        return Lstm
    return CELLS.get(node.op_type) if node.domain in ("", "ai.onnx") else None


def _each_column(node: onnx.NodeProto, types: Types) -> tuple[bool, bool] | None:
    """`Sizes.each` of a layer of bytes; None where scales are neither of directions nor of columns."""
    names = [*node.input, *[""] * 11]
    w, r = (len(static_dims(types.get(names[index])) or ()) for index in (8, 10))
    return (w == 2, r == 2) if {w, r} <= {1, 2} else None


class Layer(ABC):
    """A recurrent node, and the nodes that take its place.

    Parameters
    ----------
    node : onnx.NodeProto
    sizes : Sizes
    constants : mapping of str to onnx.TensorProto
        All that the node can see.
    opset : int
    """

    def __init__(self, node: onnx.NodeProto, sizes: Sizes, constants: Constants, opset: int) -> None:
        self.emit = Emitter(node, opset, sizes.dtype)
        self.node, self.sizes, self._constants = node, sizes, constants
        self.batch_first = bool(attribute(node, "layout", 0))
        self.kind = cell_of(node) or Lstm
        self.x, w, r, self._b, self.lengths, self.h, self.c, self._peephole, *scales = (
            *(str(name) for name in node.input),
            *([""] * (12 - len(node.input))),
        )
        gates, hidden = self.kind.GATES, sizes.hidden
        self._w: Matrices = Numbers(self.emit, hidden, gates, w)
        self._r: Matrices = Numbers(self.emit, hidden, gates, r)
        if sizes.each:
            self._w = Bytes(self.emit, hidden, gates, (w, *scales[:2]), sizes.each[0])
            self._r = Bytes(self.emit, hidden, gates, (r, *scales[2:4]), sizes.each[1])
        lengths = self.known(self.lengths)
        if lengths is not None and (lengths >= sizes.steps).all():
            self.lengths = ""

    @abstractmethod
    def expand(self) -> None:
        """Add the nodes, and give the results the names of the node's outputs."""

    @property
    def results(self) -> tuple[str, str, str]:
        """The names of Y, Y_h and Y_c; empty where nobody asks."""
        y, y_h, y_c = (*self.node.output, "", "", "")[:3]
        return y, y_h, y_c

    def forward(self, d: int) -> bool:
        """Whether a direction goes from the first step to the last."""
        return d == 0 and attribute(self.node, "direction", b"forward") != b"reverse"

    def name_result(self, value: str, name: str, batch_first: list[int]) -> None:
        """Give a result its name, with its axes in the order that the node's layout asks for."""
        self.emit.name(self.emit("Transpose", value, perm=batch_first) if self.batch_first else value, name)

    def cell(self, d: int, emit: Emitter, block: int) -> tuple[Cell, str | None]:
        """The cell of a direction, whose steps go to `emit`; and the bias of what it reads, gate after gate.

        `block` is how many columns of a gate lie side by side (`Weights.block`).
        """
        outer, hidden = self.emit, self.sizes.hidden
        kind = self.kind
        coupled = bool(attribute(self.node, kind.COUPLED, 0))
        bias = new_bias = None
        if self._b:
            gates = kind.GATES * hidden
            both = outer.reshape(outer.part(self._b, 0, d, d + 1), [2 * gates])
            bias, of_state = outer.part(both, 0, 0, gates), outer.part(both, 0, gates, 2 * gates)
            if kind is Gru and coupled:
                new_bias = outer.part(of_state, 0, 2 * hidden, 3 * hidden)
                nothing = outer.constant(np.zeros(hidden, self.sizes.dtype))
                of_state = outer.join([outer.part(of_state, 0, 0, 2 * hidden), nothing], 0)
            bias = outer("Add", bias, of_state)
        peephole: tuple[str, ...] = ()
        if self._peephole:
            all_three = outer.reshape(outer.part(self._peephole, 0, d, d + 1), [3 * hidden])
            peephole = tuple(outer.part(all_three, 0, n * hidden, (n + 1) * hidden) for n in range(3))
        weights = Weights(self._r.of(d, block, (0, kind.GATES)), peephole, new_bias, hidden, block)
        return kind(emit, weights, self._activations(kind, d, emit), attribute(self.node, "clip", None), coupled), bias

    def product(self, rows: str, d: int, bias: str | None, block: int, part: tuple[int, int]) -> str:
        """Rows of what the layer reads, times the weights of some gates (`Cell.PARTS`), with their biases."""
        emit, hidden, (first, count) = self.emit, self.sizes.hidden, part
        total = self._w.of(d, block, part).times(emit, rows)
        if bias is None:
            return total
        own = emit.part(bias, 0, first * hidden, (first + count) * hidden)
        return emit("Add", total, emit.reshape(self._w.in_blocks(own, block, count), [count * hidden]))

    def all_rows(self) -> str:
        """What the layer reads in all steps, one after another, [steps x batch, inputs]."""
        x = self.emit("Transpose", self.x, perm=[1, 0, 2]) if self.batch_first else self.x
        rows = OPEN if self.sizes.batch == OPEN else self.sizes.steps * self.sizes.batch
        return self.emit.reshape(x, [rows, self.sizes.inputs])

    def _activations(self, kind: type[Cell], d: int, emit: Emitter) -> list[Activation]:
        count = len(kind.DEFAULTS)
        given = [name.decode() for name in attribute(self.node, "activations", ())]
        names = given or [*kind.DEFAULTS] * self.sizes.directions
        alphas = iter(attribute(self.node, "activation_alpha", ()))
        betas = iter(attribute(self.node, "activation_beta", ()))
        found = [activation(emit, name, alphas, betas) for name in names]
        known = [made for made in found if made is not None]
        if len(known) != count * self.sizes.directions:
            raise ModelError(
                f"{self.node.op_type} {name_of(self.node)!r} has the activation functions {', '.join(names)}; "
                f"give {count * self.sizes.directions} that ONNX knows"
            )
        return known[d * count : (d + 1) * count]

    def initial(self, states: str, d: int) -> str | None:
        """The state of a direction at the beginning; None where it is zero.

        A sequence without a step leaves zero, as in ONNX Runtime, so it begins with that.
        """
        known = self.known(states)
        if not states or (known is not None and not known.any()):
            return None
        if self.sizes.directions > 1:
            states = self.emit.part(states, int(self.batch_first), d, d + 1)
        state = self._of_each(self.emit, states, self.sizes.hidden)
        lengths = self.known(self.lengths)
        if not self.lengths or (lengths is not None and lengths.all()):
            return state
        runs = self._runs(self.emit, self.emit.constant(np.array(0, np.int32)))
        return self.emit("Where", runs, state, self.emit.number(0.0))

    def _runs(self, emit: Emitter, t: str) -> str:
        """Which sequences have a step `t`."""
        return self._of_each(emit, emit("Less", t, self.lengths), 1)

    def _of_each(self, emit: Emitter, value: str, columns: int) -> str:
        """What there is of each sequence, [batch, columns]; there has to be as much as the batch has sequences."""
        if self.sizes.batch != OPEN:
            return emit.reshape(value, [self.sizes.batch, columns])
        axis = 0 if self.batch_first else 1
        batch = emit.part(emit("Shape", self.x), 0, axis, axis + 1)
        return emit("Reshape", value, emit.join([batch, emit.constant(np.array([columns], np.int64))], 0))

    def within(self, emit: Emitter, t: str, before: State, after: State) -> tuple[str, State]:
        """The result of step `t`, and the state after it: zero, and as before, where a sequence has ended."""
        runs = self._runs(emit, t)
        zero = emit.number(0.0)
        h = emit("Where", runs, after.h or "", before.h or zero)
        c = after.c and emit("Where", runs, after.c, before.c or zero)
        return emit("Where", runs, after.h or "", zero), State(h, c)

    def known(self, name: str) -> np.ndarray[Any, Any] | None:
        """The values of an input that is a constant, else None."""
        return numpy_helper.to_array(self._constants[name]) if name in self._constants else None
