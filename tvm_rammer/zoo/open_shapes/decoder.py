"""A greedy decoder: a recurrent cell names token after token, until it names the last one; how many the data say."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from ..onnx_tools.graph import OnnxGraph


def decoder(hidden: int = 32, tokens: int = 64, most: int = 256, seed: int = 0) -> onnx.ModelProto:
    """Build a loop over a gated cell, which reads the token that it named before.

    Parameters
    ----------
    hidden : int
        Units of the cell.
    tokens : int
        In the vocabulary.
    most : int
        Tokens that it names at most.
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
        Inputs `token` [1], the first one, int64; `h` [1, hidden], float32, the first state; `end` [1], the token that
        ends it, and `limit` [], after how many tokens it ends in any case, at least 1, both int64. Outputs `named`
        [number, 1], int64, and `h_last` [1, hidden].
    """
    graph = OnnxGraph(seed)
    graph.weight("words", graph.he((tokens, hidden), 2))
    for gate in ("update", "new"):
        graph.weight(f"w_{gate}", graph.he((2 * hidden, hidden), 4 * hidden))
        graph.weight(f"b_{gate}", graph.small(hidden))
    graph.weight("w_scores", graph.he((hidden, tokens), hidden))
    graph.weight("one", np.array(1, np.int64))
    graph.weight("no_axes", np.array([], np.int64))
    graph.weight("most", np.array(most, np.int64))
    graph.nodes("Loop", ["most", "", "token", "h"], ["token_last", "h_last", "named"], body=_body(hidden))
    inputs = {"token": ((1,), TensorProto.INT64), "end": ((1,), TensorProto.INT64), "limit": ((), TensorProto.INT64)}
    model = graph.model("decoder", {"h": (1, hidden)}, {"h_last": (1, hidden)})
    values = [helper.make_tensor_value_info(name, kind, shape) for name, (shape, kind) in inputs.items()]
    model.graph.input.extend(values)
    model.graph.output.append(helper.make_tensor_value_info("named", TensorProto.INT64, ("number", 1)))
    return model


def _body(hidden: int) -> onnx.GraphProto:
    """One token: the cell, the best score, and whether there is another one."""
    cell = [
        ("Gather", ["words", "before"], "word"),
        ("Concat", ["word", "state"], "read"),
        *(step for gate, act in (("update", "Sigmoid"), ("new", "Tanh")) for step in _gate(gate, act)),
        ("Sub", ["state", "new"], "apart"),
        ("Mul", ["update", "apart"], "kept"),
        ("Add", ["new", "kept"], "after"),
        ("MatMul", ["after", "w_scores"], "scores"),
        ("ArgMax", ["scores"], "best"),
        ("Identity", ["best"], "told"),
        ("Equal", ["best", "end"], "is_end"),
        ("Not", ["is_end"], "goes_on"),
        ("Reshape", ["goes_on", "no_axes"], "no_end"),
        ("Add", ["number", "one"], "count"),
        ("Less", ["count", "limit"], "within"),
        ("And", ["no_end", "within"], "on"),
    ]
    attributes: dict[str, dict[str, Any]] = {"Concat": {"axis": 1}, "ArgMax": {"axis": 1, "keepdims": 0}}
    nodes = [helper.make_node(kind, inputs, [name], **attributes.get(kind, {})) for kind, inputs, name in cell]

    def value(name: str, kind: int, *shape: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    flag, integer, real = TensorProto.BOOL, TensorProto.INT64, TensorProto.FLOAT
    inputs = [value("number", integer), value("go", flag), value("before", integer, 1), value("state", real, 1, hidden)]
    outputs = [value("on", flag), value("best", integer, 1), value("after", real, 1, hidden), value("told", integer, 1)]
    return helper.make_graph(nodes, "token", inputs, outputs)


def _gate(gate: str, activation: str) -> list[tuple[str, list[str], str]]:
    return [
        ("MatMul", ["read", f"w_{gate}"], f"{gate}_product"),
        ("Add", [f"{gate}_product", f"b_{gate}"], f"{gate}_sum"),
        (activation, [f"{gate}_sum"], gate),
    ]
