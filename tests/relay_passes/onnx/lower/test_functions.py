"""Operators that ONNX defines by others, expanded where TVM's frontend would misread them."""

import numpy as np
import pytest

from tests.marks import newest_onnx
from tvm_rammer.relay_passes import load_model

from ...models import model, node, op_names, random, tensor, value
from .judge import by_reference


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_layer_normalization_also_returns_mean_and_deviation(axis, run):
    nodes = [node("LayerNormalization", ["x", "s", "b"], ["y", "mean", "deviation"], axis=axis)]
    shape = [2, 3, 4][axis:]
    constants = [tensor("s", random(*shape, seed=1)), tensor("b", random(*shape, seed=2))]
    by_reference(run, model(nodes, [value("x", [2, 3, 4])], ["y", "mean", "deviation"], constants), x=random(2, 3, 4))


def test_layer_normalization_of_one_result_stays_one_operator():
    nodes = [node("LayerNormalization", ["x", "s"], ["y"])]
    mod = load_model(model(nodes, [value("x", [2, 4])], ["y"], [tensor("s", random(4))]))
    assert any("layer_norm" in name for name in op_names(mod))


def test_functions_within_functions_are_expanded(run):
    nodes = [node("SoftmaxCrossEntropyLoss", ["x", "t"], ["y"], reduction="sum")]
    proto = model(nodes, [value("x", [3, 5]), value("t", [3], 7)], ["y"])
    by_reference(run, proto, x=random(3, 5), t=np.array([0, 4, 2]))


@newest_onnx
def test_a_left_out_input_in_the_middle(run):
    nodes = [node("Attention", ["q", "k", "v", "", "", "", "n"], ["y"], is_causal=1)]
    inputs = [value("q", [2, 2, 2, 8]), value("k", [2, 2, 6, 8]), value("v", [2, 2, 6, 8]), value("n", [2], 7)]
    arrays = {name: random(2, 2, size, 8, seed=size) for name, size in (("q", 2), ("k", 6), ("v", 6))}
    by_reference(run, model(nodes, inputs, ["y"], opset=24, ir=12), **arrays, n=np.array([6, 4]))


@pytest.mark.parametrize("periodic", [0, 1, 2])
def test_whatever_is_not_zero_is_true(periodic, run):
    nodes = [node("BlackmanWindow", ["n"], ["w"], periodic=periodic), node("Mul", ["w", "x"], ["y"])]
    by_reference(run, model(nodes, [value("x", [5])], ["y"], [tensor("n", np.array(5, "int64"))]), x=random(5))
