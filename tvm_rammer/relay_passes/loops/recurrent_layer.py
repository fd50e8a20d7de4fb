"""A recurrent layer of PyTorch in a Relax module: one call, which becomes loops, or its steps, once shapes are known.

The call is `call_dps_packed("rammer.recurrent.JSON", (x, states, weights))`, where the JSON is a `RecurrentLayer`. TVM
cannot run it. The layer becomes ONNX nodes, so that it is lowered as those of an ONNX file are.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper
from tvm import relax
from tvm.ir import Call

from ...errors import UnsupportedOperatorError
from ..bindings import body_blocks, dtype_of, is_const, name_of_packed, static_shape
from ..inline_calls import Replacement, inline_calls
from ..onnx.emit import Emitter
from ..onnx.lower_model import lower_and_import
from ..passes.fold_constants import FoldConstants
from .body import loop_bodies, rename_loops

_CALL = "rammer.recurrent."
_OPSET = 18
_KINDS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "lstm": ("LSTM", (0, 3, 1, 2)),
    "gru": ("GRU", (1, 0, 2)),
    "rnn_tanh": ("RNN", (0,)),
    "rnn_relu": ("RNN", (0,)),
}
"""By PyTorch's name ONNX's, and which of PyTorch's gates stands where in ONNX's order."""


@dataclass(frozen=True, slots=True)
class RecurrentLayer:
    """What the arguments of PyTorch's operator say besides its tensors.

    Parameters
    ----------
    kind : {"lstm", "gru", "rnn_tanh", "rnn_relu"}
    layers : int
        One upon another.
    biases, bidirectional, batch_first : bool
    """

    kind: str
    layers: int
    biases: bool
    bidirectional: bool
    batch_first: bool

    @property
    def directions(self) -> int:
        """One or two."""
        return 2 if self.bidirectional else 1

    @property
    def states(self) -> int:
        """How many states a layer hands on: LSTM has the cell state, too."""
        return 2 if self.kind == "lstm" else 1

    @property
    def weights(self) -> int:
        """How many arrays of weights PyTorch has for each direction of a layer."""
        return 4 if self.biases else 2


def call_recurrent(
    layer: RecurrentLayer, x: relax.Expr, states: Sequence[relax.Expr], weights: Sequence[relax.Expr]
) -> Call:
    """The call of a layer.

    Parameters
    ----------
    layer : RecurrentLayer
    x : relax.Expr
        [steps, batch, inputs], or [batch, steps, inputs].
    states : sequence of relax.Expr
        The hidden state and LSTM's cell state at the beginning, [layers x directions, batch, hidden] each.
    weights : sequence of relax.Expr
        For each direction of each layer PyTorch's weights of the input and of the state, and its two biases.

    Returns
    -------
    Call
        The results of all steps, and the states after the last: a tuple.
    """
    before, batch, hidden = states[0].ty.shape
    steps = x.ty.shape[int(layer.batch_first)]
    shape = [batch, steps] if layer.batch_first else [steps, batch]
    y = relax.TensorType([*shape, hidden * layer.directions], x.ty.dtype)
    types = [y, *(relax.TensorType([before, batch, hidden], x.ty.dtype) for _ in states)]
    return relax.op.call_dps_packed(_CALL + json.dumps(asdict(layer)), relax.Tuple([x, *states, *weights]), types)


def called_layer(value: relax.Expr) -> RecurrentLayer | None:
    """The layer that a call stands for; None for any other expression."""
    text = name_of_packed(value, _CALL)
    return None if text is None else RecurrentLayer(**json.loads(text))


def expand_layers(mod: tvm.IRModule, *, loops: bool, join: bool = False) -> tvm.IRModule:
    """Replace the recurrent layers of "main" by loops, or by their steps.

    Parameters
    ----------
    mod : tvm.IRModule
        Of static shapes; is not changed.
    loops : bool
        Whether layers become loops, but for short ones; otherwise all are unrolled.
    join : bool
        Whether the loops of layers that stand upon each other become one.

    Raises
    ------
    LongLoopError
        One is too long to be unrolled.
    UnsupportedOperatorError
        One has no static shape.
    """
    if not has_layers(mod):
        return mod

    def replacement(value: relax.Expr, name: str) -> Replacement | None:
        if (layer := called_layer(value)) is None:
            return None
        args = list(value.args[1].fields)
        lowered = rename_loops(lower_and_import(_as_onnx(layer, args), loops=loops, join=join), f"{name}_")
        given = [arg for arg in args if not is_const(arg)]
        return Replacement(lowered["main"].without_attr("global_symbol"), given, loop_bodies(lowered))

    return inline_calls(FoldConstants()(mod), replacement)  # states that are zero, weights that are computed


def has_layers(mod: tvm.IRModule) -> bool:
    """Whether "main" has recurrent layers that are to be expanded."""
    return any(called_layer(binding.value) for block in body_blocks(mod["main"]) for binding in block.bindings)


def _as_onnx(layer: RecurrentLayer, args: Sequence[relax.Expr]) -> onnx.ModelProto:
    """A model of nothing but a layer: an ONNX node for each of those that stand upon another."""
    tensors, inputs, shapes = [], [], []
    for number, arg in enumerate(args):
        shape = static_shape(arg.ty)
        if shape is None or 0 in shape:
            raise UnsupportedOperatorError(
                f"a recurrent layer reads {arg.ty}, which is no static shape with elements; give all sizes by `shapes`"
            )
        shapes.append(shape)
        if is_const(arg):
            tensors.append(numpy_helper.from_array(arg.value.numpy(), f"arg{number}"))
        else:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype_of(arg.ty)))
            inputs.append(helper.make_tensor_value_info(f"arg{number}", kind, shape))
    emit = Emitter(onnx.NodeProto(output=["layer"]), _OPSET, dtype_of(args[0].ty))
    results = _Stack(layer, emit, shapes).add()
    graph = helper.make_graph(
        emit.nodes, "layer", inputs, [onnx.ValueInfoProto(name=name) for name in results], [*tensors, *emit.tensors]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)


class _Stack:
    """The nodes of a layer, whose tensors are `arg0`, `arg1` and so on.

    Parameters
    ----------
    layer : RecurrentLayer
    emit : Emitter
        Takes the nodes.
    shapes : sequence of tuple of int
        Of the tensors.
    """

    def __init__(self, layer: RecurrentLayer, emit: Emitter, shapes: Sequence[tuple[int, ...]]) -> None:
        self._layer, self._emit = layer, emit
        self._hidden = shapes[1][2]
        self._weights = [f"arg{number}" for number in range(1 + layer.states, len(shapes))]
        steps, batch = shapes[0][:2][:: -1 if layer.batch_first else 1]
        self._shape = [steps, batch, layer.directions * self._hidden]

    def add(self) -> list[str]:
        """Add the nodes; the names of the results of all steps, and of the last states."""
        layer, emit = self._layer, self._emit
        x = emit("Transpose", "arg0", perm=[1, 0, 2]) if layer.batch_first else "arg0"
        lasts: list[list[str]] = [[] for _ in range(layer.states)]
        for number in range(layer.layers):
            names = [f"{emit.prefix}{what}{number}" for what in ("y", "h", "c")][: 1 + layer.states]
            self._add_node(x, number, names)
            x = emit.axes("Squeeze", names[0], 1) if layer.directions == 1 else self._side_by_side(names[0])
            for some, name in zip(lasts, names[1:], strict=True):
                some.append(name)
        y = emit("Transpose", x, perm=[1, 0, 2]) if layer.batch_first else x
        return [y, *(emit.join(some, 0) for some in lasts)]

    def _side_by_side(self, y: str) -> str:
        """The results of both directions as one."""
        return self._emit.reshape(self._emit("Transpose", y, perm=[0, 2, 1, 3]), self._shape)

    def _add_node(self, x: str, number: int, results: Sequence[str]) -> None:
        layer, emit = self._layer, self._emit
        kind, _ = _KINDS[layer.kind]
        first = number * layer.directions
        w, r = (emit.join([self._matrix(first + d, which) for d in range(layer.directions)], 0) for which in (0, 1))
        b = emit.join([self._bias(first + d) for d in range(layer.directions)], 0) if layer.biases else ""
        states = [emit.part(f"arg{1 + n}", 0, first, first + layer.directions) for n in range(layer.states)]
        own: dict[str, Any] = {"linear_before_reset": 1} if kind == "GRU" else {}
        if layer.kind == "rnn_relu":
            own["activations"] = ["Relu"] * layer.directions
        emit.last(
            kind, x, w, r, b, "", *states, outputs=results, hidden_size=self._hidden,
            direction="bidirectional" if layer.bidirectional else "forward", **own,
        )  # fmt: skip

    def _matrix(self, direction: int, which: int) -> str:
        """Weights of the input (0) or of the state (1), [1, gates x hidden, inputs]."""
        return self._emit.axes("Unsqueeze", self._in_order(self._weight(direction, which)), 0)

    def _bias(self, direction: int) -> str:
        """Both biases, [1, 2 x gates x hidden]."""
        both = [self._in_order(self._weight(direction, which)) for which in (2, 3)]
        return self._emit.axes("Unsqueeze", self._emit.join(both, 0), 0)

    def _weight(self, direction: int, which: int) -> str:
        return self._weights[direction * self._layer.weights + which]

    def _in_order(self, gates: str) -> str:
        """The gates in ONNX's order."""
        order, hidden = _KINDS[self._layer.kind][1], self._hidden
        parts = [self._emit.part(gates, 0, gate * hidden, (gate + 1) * hidden) for gate in order]
        return self._emit.join(parts, 0) if len(parts) > 1 else gates
