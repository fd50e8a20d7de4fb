"""Layers and Scans over as many steps as only the data say, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer

from ....models import by_onnxruntime, model, node, random, tensor, value

STEPS, BATCH, INPUT, HIDDEN = 6, 2, 3, 4
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ROWS = [
    node("NonZero", ["chosen"], ["found"]),
    node("Squeeze", ["found", "axis"], ["rows"]),
    node("Gather", ["x", "rows"], ["g"]),
]
"""As many steps of "x" as the data choose."""


def layer(kind, direction="forward", inputs=("", ""), outputs=("y", "h"), tensors=(), **attributes):
    directions = 2 if direction == "bidirectional" else 1
    weights = [
        tensor("w", random(directions, GATES[kind] * HIDDEN, INPUT, seed=1)),
        tensor("r", random(directions, GATES[kind] * HIDDEN, HIDDEN, seed=2)),
        tensor("b", random(directions, 2 * GATES[kind] * HIDDEN, seed=3)),
        tensor("p", random(directions, 3 * HIDDEN, seed=4)),
        tensor("state", random(directions, BATCH, HIDDEN, seed=5)),
        tensor("axis", np.array([0])),
        tensor("lengths", np.array([1, 2], np.int32)),
        *tensors,
    ]
    given = ["g", "w", "r", "b", *inputs]
    used = node(kind, given, list(outputs), hidden_size=HIDDEN, direction=direction, **attributes)
    chosen = value("chosen", [STEPS], TensorProto.BOOL)
    return model([*ROWS, used], [value("x", [STEPS, BATCH, INPUT]), chosen], [n for n in outputs if n], weights)


def check(proto, shape=(STEPS, BATCH, INPUT)):
    module = tvm_rammer.compile(proto, cache=False)
    for chosen in ([1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 1, 0], [1] * 6):
        arrays = {"x": random(*shape), "chosen": np.array(chosen, bool)}
        for got, want in zip(module.run(None, arrays), by_onnxruntime(proto, **arrays), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return module


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
def test_layers(kind, direction):
    check(layer(kind, direction))


def test_all_inputs():
    check(layer("LSTM", "bidirectional", ("", "state", "state", "p"), ("y", "h", "c")))
    check(layer("GRU", "reverse", ("", "state"), ("", "h"), linear_before_reset=1))


def test_activations_of_each_direction():
    check(layer("RNN", "bidirectional", activations=["Relu", "Sigmoid"]))
    check(layer("RNN", activations=["LeakyRelu"], activation_alpha=[0.2]))


def test_no_step():
    """ONNX Runtime ends its process here; by ONNX there is nothing, and the state stays."""
    module = tvm_rammer.compile(layer("GRU", inputs=("", "state")), cache=False)
    y, h = module.run(None, {"x": random(STEPS, BATCH, INPUT), "chosen": np.zeros(STEPS, bool)})
    assert y.shape == (0, 1, BATCH, HIDDEN)
    np.testing.assert_array_equal(h, random(1, BATCH, HIDDEN, seed=5))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
def test_lengths_of_each_sequence(kind, direction):
    """A sequence without a step leaves zeros, as in ONNX Runtime."""
    more = (("lengths", "state", "state"), ("y", "h", "c")) if kind == "LSTM" else (("lengths", "state"), ("y", "h"))
    proto = layer(kind, direction, *more)
    constant = next(t for t in proto.graph.initializer if t.name == "lengths")
    proto.graph.initializer.remove(constant)
    proto.graph.input.append(value("lengths", [BATCH], TensorProto.INT32))
    module = tvm_rammer.compile(proto, cache=False)
    for count, lengths in ((4, (1, 4)), (6, (5, 2)), (1, (1, 1)), (3, (0, 3))):
        arrays = {"x": random(STEPS, BATCH, INPUT), "chosen": np.arange(STEPS) < count}
        arrays |= {"lengths": np.array(lengths, "int32")}
        for got, want in zip(module.run(None, arrays), by_onnxruntime(proto, **arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def scan(**attributes):
    body = helper.make_graph(
        [
            node("Add", ["state", "row"], ["next"]),
            node("Mul", ["next", "row"], ["out"]),
            node("Neg", ["out"], ["less"]),
        ],
        "body",
        [value("state", [INPUT]), value("row", [INPUT])],
        [value("next", [INPUT]), value("out", [INPUT]), value("less", [INPUT])],
    )
    used = node("Scan", ["first", "g"], ["s", "y", "z"], body=body, num_scan_inputs=1, **attributes)
    tensors = [tensor("first", random(INPUT)), tensor("axis", np.array([0]))]
    inputs = [value("x", [STEPS, INPUT]), value("chosen", [STEPS], TensorProto.BOOL)]
    return model([*ROWS, used], inputs, ["s", "y", "z"], tensors)


@pytest.mark.parametrize("attributes", [{}, {"scan_input_directions": [1], "scan_output_directions": [1, 0]}], ids=str)
def test_scan(attributes):
    check(scan(**attributes), (STEPS, INPUT))


def test_what_is_known_later_is_no_loop():
    """Behind a branch whose result is of a known length, a layer is unrolled as any other."""
    then, other = (
        helper.make_graph([node(kind, ["x"], [kind])], kind, [], [value(kind, None)]) for kind in ("Neg", "Exp")
    )
    proto = layer("RNN")
    del proto.graph.node[:]
    proto.graph.node.extend(
        [
            node("ReduceMax", ["x"], ["m"], keepdims=0),
            node("Greater", ["m", "nothing"], ["c"]),
            node("If", ["c"], ["i"], then_branch=then, else_branch=other),
            node("Reshape", ["i", "shape"], ["g"]),
            node("RNN", ["g", "w", "r", "b"], ["y", "h"], hidden_size=HIDDEN),
        ]
    )
    del proto.graph.input[1:]
    shape = tensor("shape", np.array([-1, BATCH, INPUT]))
    proto.graph.initializer.extend([tensor("nothing", np.float32(0)), shape])
    module = tvm_rammer.compile(proto, cache=False)
    for x in (random(STEPS, BATCH, INPUT), -abs(random(STEPS, BATCH, INPUT))):
        for got, want in zip(module.run(None, {"x": x}), by_onnxruntime(proto, x=x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert "loop_by_data" not in str(module.explain())
