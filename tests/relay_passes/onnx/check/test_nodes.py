"""What ONNX does not allow is refused, with the node's name, and what is wrong with it."""

import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto

import tvm_rammer
from tvm_rammer.errors import ModelError
from tvm_rammer.open_shapes.signature import read_signature
from tvm_rammer.relay_passes import load_model

from ...models import model, node, tensor, value


def ints(*numbers):
    return np.array(numbers, np.int64)


def ones(*shape):
    return np.ones(shape, np.float32)


def one_node(kind, shape, constants, results=1, **attributes):
    """A model of one node, which reads "x" and constants."""
    names = "abcd"[: len(constants)]
    made = node(kind, ["x", *names], [f"y{i}" for i in range(results)], name="it", **attributes)
    tensors = [tensor(name, array) for name, array in zip(names, constants, strict=True)]
    return model([made], [value("x", shape)], [f"y{i}" for i in range(results)], tensors, opset=21, ir=10)


IMPOSSIBLE = [
    ("TopK", (4, 6), [ints(99)], 2, {}),
    ("TopK", (4, 6), [ints(-1)], 2, {}),
    ("Split", (4, 6), [ints(3, 3)], 2, {"axis": 0}),
    ("Split", (4, 6), [ints(5, -1)], 2, {"axis": 0}),
    ("Split", (4, 6), [ints(1, 1)], 2, {"axis": 0}),
    ("Split", (4, 6), [ints(2, 1, 1)], 2, {"axis": 0}),
    ("Split", (4, 6), [], 4, {"axis": 1, "num_outputs": 3}),
    ("Split", (4, 6), [], 6, {"axis": 0, "num_outputs": 6}),
    ("Expand", (4, 6), [ints(-1, 1)], 1, {}),
    ("Expand", (4, 6), [ints(3, 1)], 1, {}),
    ("PRelu", (4, 6), [ones(5)], 1, {}),
    ("PRelu", (4, 6), [ones(2, 4, 6)], 1, {}),
    ("CumSum", (4, 6), [np.array(7)], 1, {}),
    ("GlobalAveragePool", (4,), [], 1, {}),
    ("GlobalMaxPool", (4, 6), [], 1, {}),
    ("Einsum", (4, 6), [], 1, {"equation": "ab->c"}),
    ("Einsum", (4, 6), [], 1, {"equation": "ab->aa"}),
    ("Einsum", (4, 6), [], 1, {"equation": "abc->a"}),
    ("Einsum", (4, 6), [], 1, {"equation": "ab,bc->ac"}),
    ("Einsum", (4, 6), [], 1, {"equation": "a?->a"}),
    ("Einsum", (4, 6), [], 1, {"equation": "ab->...a"}),
    ("Einsum", (4, 6), [ones(5, 2)], 1, {"equation": "ab,bc->ac"}),
    ("Einsum", (4, 6), [], 1, {"equation": "a...b...->a"}),
    ("Concat", (4, 6), [ones(4, 5)], 1, {"axis": 0}),
    ("Squeeze", (4, 6), [ints(0)], 1, {}),
    ("Flatten", (4, 6), [], 1, {"axis": 5}),
    ("Tile", (4, 6), [ints(2)], 1, {}),
    ("Trilu", (4,), [], 1, {}),
    ("Transpose", (4, 6), [], 1, {"perm": [0, 0]}),
    ("Conv", (1, 4, 5, 5), [ones(4, 3, 1, 1)], 1, {}),
    ("MaxPool", (1, 4, 5, 5), [], 1, {"kernel_shape": [9, 9]}),
    ("AveragePool", (1, 4, 5, 5), [], 1, {"kernel_shape": [3]}),
    ("LRN", (1, 4, 5, 5), [], 1, {"size": 0}),
    ("BatchNormalization", (4, 6), [ones(5)] * 4, 1, {}),
    ("SoftmaxCrossEntropyLoss", (4, 6), [ints(0, 1)], 1, {}),
    ("NegativeLogLikelihoodLoss", (4, 6), [ints(0, 1)], 1, {}),
    ("ConstantOfShape", (4, 6), [], 1, {}),
    ("LSTM", (5, 2, 6), [ones(1, 12, 6), ones(1, 12, 3)], 1, {"hidden_size": 4}),
    ("LSTM", (5, 2, 6), [ones(1, 12, 6), ones(1, 12, 3)], 1, {"hidden_size": 3, "direction": "bidirectional"}),
    ("GRU", (5, 2, 6), [ones(1, 9, 6), ones(1, 9, 3), ones(1, 9)], 1, {"hidden_size": 3}),
    ("RNN", (5, 2, 6), [ones(1, 3, 7), ones(1, 3, 3)], 1, {"hidden_size": 3}),
]


@pytest.mark.parametrize(("kind", "shape", "constants", "results", "attributes"), IMPOSSIBLE)
def test_what_is_impossible_is_refused(kind, shape, constants, results, attributes):
    with pytest.raises(ModelError, match=kind):
        load_model(one_node(kind, shape, constants, results, **attributes))


POSSIBLE = [
    ("TopK", (4, 6), [ints(6)], 2, {}),
    ("TopK", (4, 6), [ints(0)], 2, {}),
    ("Split", (4, 6), [ints(4, 0)], 2, {"axis": 0}),
    ("Split", (4, 6), [], 4, {"axis": 1, "num_outputs": 4}),
    ("Split", (4, 6), [], 3, {"axis": -1, "num_outputs": 3}),
    ("Expand", (4, 6), [ints(2, 1, 6)], 1, {}),
    ("PRelu", (4, 6), [ones(1)], 1, {}),
    ("PRelu", (4, 6), [ones(4, 1)], 1, {}),
    ("CumSum", (4, 6), [np.array(-2)], 1, {}),
    ("Einsum", (4, 6), [], 1, {"equation": " a b -> b a "}),
    ("Einsum", (4, 6), [], 1, {"equation": "...b->b..."}),
    ("Einsum", (4, 6), [ones(1, 6)], 1, {"equation": "ab,ab"}),
    ("Einsum", (4, 4), [], 1, {"equation": "ii"}),
    ("Einsum", (2, 4, 6), [ones(6, 5)], 1, {"equation": "...ab,bc->...ac"}),
]


@pytest.mark.parametrize(
    ("query", "key", "values", "attributes"),
    [
        ((2, 3, 4, 8), (1, 3, 6, 8), (2, 3, 6, 8), {}),
        ((2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 5, 8), {}),
        ((2, 3, 4, 8), (2, 3, 6, 9), (2, 3, 6, 8), {}),
        ((2, 3, 4, 8), (2, 2, 6, 8), (2, 2, 6, 8), {}),
        ((2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 8), {"qk_matmul_output_mode": 5}),
        ((2, 4, 24), (2, 6, 24), (3, 6, 24), {"q_num_heads": 3, "kv_num_heads": 3}),
        ((2, 4, 24), (2, 6, 24), (2, 6, 24), {"q_num_heads": 5, "kv_num_heads": 5}),
        ((2, 4, 24), (2, 6, 24), (2, 6, 24), {}),
        ((1, 2, 4, 24), (2, 6, 24), (2, 6, 24), {"q_num_heads": 3, "kv_num_heads": 3}),
    ],
)
def test_attention_of_what_does_not_fit_is_refused(query, key, values, attributes):
    inputs = [value(name, shape) for name, shape in zip("qkv", (query, key, values), strict=True)]
    made = node("Attention", ["q", "k", "v"], ["y"], **attributes)
    with pytest.raises(ModelError, match="Attention 'y'"):
        load_model(model([made], inputs, ["y"], opset=23, ir=10))


@pytest.mark.parametrize(("kind", "shape", "constants", "results", "attributes"), POSSIBLE)
def test_what_is_possible_is_not_refused(kind, shape, constants, results, attributes):
    load_model(one_node(kind, shape, constants, results, **attributes))


@pytest.mark.parametrize("known", [False, True])
def test_an_empty_list_of_axes_is_refused(known):
    """By ONNX nothing is squeezed, by ONNX Runtime all that can be."""
    proto = one_node("Squeeze", (4, 1), [ints()])
    if known:
        proto.graph.node[0].input[0] = "c"
        proto.graph.initializer.append(tensor("c", ones(4, 1)))
    with pytest.raises(ModelError, match="Squeeze 'it' has an empty list of axes"):
        load_model(proto)


def test_an_empty_list_of_axes_does_not_matter_where_no_axis_can_go():
    load_model(one_node("Squeeze", (4, 2), [ints()]))


def test_an_error_has_what_the_node_reads():
    proto = one_node("Conv", (1, 4, 5, 5), [ones(2, 3)])
    with pytest.raises(ModelError, match=r"Conv 'it' .*'x' of the shape \[1, 4, 5, 5\], 'a' of the shape \[2, 3\]"):
        load_model(proto)


def test_what_shapes_decide_is_folded_before_it_is_asked_about():
    """k is the number of columns."""
    nodes = [
        node("Shape", ["x"], ["k"], start=1, end=2),
        node("TopK", ["x", "k"], ["y", "i"]),
    ]
    load_model(model(nodes, [value("x", [4, 6])], ["y"]))


def test_a_file_is_checked_before_its_types_are_inferred():
    """Onnx's inference of a Split with another number of results ends the process."""
    proto = one_node("Split", (4, 6), [], 3, axis=1, num_outputs=2)
    proto.graph.output[0].CopyFrom(ValueInfoProto(name="y0"))
    assert read_signature(proto) is None
    with pytest.raises(ModelError, match="num_outputs 2"):
        tvm_rammer.compile(proto)


def test_types_that_onnx_lacks_are_no_error():
    proto = model(
        [node("Clip", ["x"], ["y"])], [value("x", [4], TensorProto.BFLOAT16)], [value("y", [4], TensorProto.BFLOAT16)]
    )
    load_model(proto)
