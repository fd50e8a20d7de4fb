"""A stack of LSTM cells, unrolled over time, of primitive operators: its ready cells lie on a diagonal."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8


def lstm_stack(layers: int, steps: int, hidden: int, batch: int = 1, seed: int = 0) -> onnx.ModelProto:
    """Build an unrolled stack of LSTM cells.

    Parameters
    ----------
    layers, steps : int
        At least 1. The cell of layer l at step t reads the cells (l - 1, t) and (l, t - 1).
    hidden : int
        Size of inputs, states and outputs.
    batch : int
    seed : int
        Of the weights, which are normal with variance 1 / hidden.

    Returns
    -------
    onnx.ModelProto
        Inputs `x0`, `x1`, ..., one a step, float32 [batch, hidden]. Output `h`, the last layer's state after the last
        step. Operators: MatMul, Add, Split, Sigmoid, Tanh, Mul. States start at zero, so the first step has no
        product with the previous state.
    """
    rng = np.random.default_rng(seed)
    weights: list[onnx.TensorProto] = []
    nodes: list[onnx.NodeProto] = []
    below = [f"x{t}" for t in range(steps)]
    for layer in range(layers):
        for kind, shape in (("w", (hidden, 4 * hidden)), ("u", (hidden, 4 * hidden)), ("b", (4 * hidden,))):
            array = rng.standard_normal(shape) / np.sqrt(hidden)
            weights.append(numpy_helper.from_array(array.astype(np.float32), f"{kind}{layer}"))
        for t in range(steps):
            nodes += _cell(layer, t, below[t])
        below = [f"h_{layer}_{t}" for t in range(steps)]
    nodes[-1].output[0] = "h"
    graph = helper.make_graph(
        nodes,
        f"lstm_{layers}x{steps}x{hidden}",
        [helper.make_tensor_value_info(f"x{t}", TensorProto.FLOAT, (batch, hidden)) for t in range(steps)],
        [helper.make_tensor_value_info("h", TensorProto.FLOAT, (batch, hidden))],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def _cell(layer: int, t: int, x: str) -> list[onnx.NodeProto]:
    """The operators of one cell; its state is h_layer_t and c_layer_t."""
    at = f"_{layer}_{t}"
    before = f"_{layer}_{t - 1}"
    nodes = [helper.make_node("MatMul", [x, f"w{layer}"], [f"xw{at}"])]
    total = f"xw{at}"
    if t:
        nodes += [
            helper.make_node("MatMul", [f"h{before}", f"u{layer}"], [f"hu{at}"]),
            helper.make_node("Add", [total, f"hu{at}"], [f"xwhu{at}"]),
        ]
        total = f"xwhu{at}"
    gates = [f"{gate}{at}" for gate in ("in", "forget", "new", "out")]
    nodes += [
        helper.make_node("Add", [total, f"b{layer}"], [f"sum{at}"]),
        helper.make_node("Split", [f"sum{at}"], gates, axis=-1),
        *(helper.make_node("Sigmoid", [gate], [f"{gate}_on"]) for gate in gates if not gate.startswith("new")),
        helper.make_node("Tanh", [f"new{at}"], [f"new{at}_on"]),
        helper.make_node("Mul", [f"in{at}_on", f"new{at}_on"], [f"add{at}" if t else f"c{at}"]),
    ]
    if t:
        nodes += [
            helper.make_node("Mul", [f"forget{at}_on", f"c{before}"], [f"keep{at}"]),
            helper.make_node("Add", [f"keep{at}", f"add{at}"], [f"c{at}"]),
        ]
    return [
        *nodes,
        helper.make_node("Tanh", [f"c{at}"], [f"c{at}_on"]),
        helper.make_node("Mul", [f"out{at}_on", f"c{at}_on"], [f"h{at}"]),
    ]
