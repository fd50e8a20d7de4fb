"""Layers of as many sequences as only the data say, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import ModelError, UnsupportedOperatorError

from ....models import by_onnxruntime, model, node, random, tensor, value

BATCH, INPUT, HIDDEN = 4, 3, 2
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
CHOICES = [(1, 0, 1, 1), (0, 0, 1, 0), (1, 1, 1, 1)]


def layer(kind, direction="forward", steps=5, batch_axis=1, states=BATCH, more=False, **attributes):
    """Of the sequences of "x" that the data choose; with lengths and states of each if there is to be more."""
    directions = 2 if direction == "bidirectional" else 1
    shape = [steps, BATCH, INPUT] if batch_axis else [BATCH, steps, INPUT]
    inputs, names = [value("x", shape), value("chosen", [BATCH], TensorProto.BOOL)], ["g", "w", "r", "b"]
    nodes, outputs = [node("Compress", ["x", "chosen"], ["g"], axis=batch_axis)], ["y", "h"]
    if more:
        inputs += [value("lengths", [BATCH], TensorProto.INT32), value("s", [directions, states, HIDDEN])]
        nodes += [node("Compress", ["lengths", "chosen"], ["l"], axis=0)]
        nodes += [node("Compress", ["s", "chosen"], ["first"], axis=1)] if states == BATCH else []
        names += ["l", *["first" if states == BATCH else "s"] * (2 if kind == "LSTM" else 1)]
        outputs += ["c"] if kind == "LSTM" else []
    weights = [
        tensor("w", random(directions, GATES[kind] * HIDDEN, INPUT, seed=1)),
        tensor("r", random(directions, GATES[kind] * HIDDEN, HIDDEN, seed=2)),
        tensor("b", random(directions, 2 * GATES[kind] * HIDDEN, seed=3)),
    ]
    nodes.append(node(kind, names, outputs, hidden_size=HIDDEN, direction=direction, **attributes))
    return model(nodes, inputs, outputs, weights)


def check(proto, shape, **more):
    module = tvm_rammer.compile(proto, cache=False)
    for chosen in CHOICES:
        arrays = {"x": random(*shape), "chosen": np.array(chosen, bool), **more}
        for got, want in zip(module.run(None, arrays), by_onnxruntime(proto, **arrays), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
def test_layers(kind, direction):
    check(layer(kind, direction), (5, BATCH, INPUT))


@pytest.mark.parametrize("kind", GATES)
def test_lengths_and_states_of_each_sequence(kind):
    lengths = np.array([0, 3, 5, 1], "int32")
    check(layer(kind, "reverse", more=True), (5, BATCH, INPUT), lengths=lengths, s=random(1, BATCH, HIDDEN, seed=7))


def test_two_layers():
    proto = layer("GRU")
    weights = [tensor("w2", random(1, 3 * HIDDEN, HIDDEN, seed=4)), tensor("axis", np.array([1]))]
    more = [node("Squeeze", ["y", "axis"], ["rows"]), node("GRU", ["rows", "w2", "r"], ["z"], hidden_size=HIDDEN)]
    proto.graph.node.extend(more)
    proto.graph.initializer.extend(weights)
    proto.graph.output.append(value("z", None))
    check(proto, (5, BATCH, INPUT))


def test_the_batch_is_the_first_axis():
    """ONNX Runtime has no such layers on a CPU: the sequences are turned for it."""
    proto = layer("LSTM", batch_axis=0, layout=1)
    module, x = tvm_rammer.compile(proto, cache=False), random(BATCH, 5, INPUT)
    for chosen in CHOICES:
        y, h = module.run(None, {"x": x, "chosen": np.array(chosen, bool)})
        turned = {"x": x.transpose(1, 0, 2), "chosen": np.array(chosen, bool)}
        want_y, want_h = by_onnxruntime(layer("LSTM"), **turned)
        np.testing.assert_allclose(y, want_y.transpose(2, 0, 1, 3), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(h, want_h.transpose(1, 0, 2), rtol=1e-4, atol=1e-5)


def test_states_of_another_number_of_sequences_end_the_call():
    """One state would be broadcast; a layer has one for each sequence."""
    module = tvm_rammer.compile(layer("RNN", states=1, more=True), cache=False)
    arrays = {"x": random(5, BATCH, INPUT), "lengths": np.full(BATCH, 5, "int32"), "s": random(1, 1, HIDDEN)}
    with pytest.raises(ModelError, match=r"got tensors whose sizes.*are not equal"):
        module.run(None, arrays | {"chosen": np.ones(BATCH, bool)})


def test_too_many_steps_are_refused():
    with pytest.raises(UnsupportedOperatorError, match=r"RNN 'y' has 5000 steps of as many sequences.*fix_inputs"):
        tvm_rammer.compile(layer("RNN", steps=5000), cache=False)
