"""What ONNX Runtime's optimisers fuse, and products with weights of few bits, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ....models import model, node, random, rng, tensor, value, with_contrib
from ..test_operators import close


def contrib(nodes, inputs, outputs, constants=()):
    return with_contrib(model(nodes, inputs, outputs, constants))


def microsoft(kind, inputs, outputs, **attributes):
    return node(kind, inputs, outputs, domain="com.microsoft", **attributes)


@pytest.mark.parametrize(
    ("attributes", "left", "right"),
    [
        ({"alpha": 0.25, "transB": 1}, (2, 3, 4), (2, 5, 4)),
        ({"transA": 1}, (4, 3), (4, 5)),
        ({"transA": 1, "transB": 1}, (3, 4, 6), (5, 4)),
    ],
)
def test_a_product_of_turned_factors(attributes, left, right, run):
    nodes = [microsoft("FusedMatMul", ["a", "b"], ["y"], **attributes)]
    close(run, contrib(nodes, [value("a", left), value("b", right)], ["y"]), a=random(*left), b=random(*right, seed=1))


@pytest.mark.parametrize(
    ("attributes", "left", "right"),
    [
        ({"transBatchA": 1}, (3, 2, 4), (2, 4, 5)),
        ({"transBatchA": 1, "transBatchB": 1, "transB": 1, "alpha": 0.5}, (3, 2, 4), (5, 2, 4)),
        ({"transBatchA": 1, "transA": 1}, (4, 2, 3), (2, 4, 5)),
        ({"transBatchB": 1}, (2, 5, 3, 4), (4, 2, 5, 3)),
    ],
)
def test_a_product_of_turned_batches(attributes, left, right, run):
    nodes = [microsoft("FusedMatMul", ["a", "b"], ["y"], **attributes)]
    close(run, contrib(nodes, [value("a", left), value("b", right)], ["y"]), a=random(*left), b=random(*right, seed=1))


def test_an_older_name_of_such_a_product(run):
    nodes = [microsoft("TransposeMatMul", ["a", "b"], ["y"], transA=1, alpha=0.5)]
    given = [value("a", [2, 3, 4]), value("b", [2, 3, 5])]
    close(run, contrib(nodes, given, ["y"]), a=random(2, 3, 4), b=random(2, 3, 5, seed=1))


@pytest.mark.parametrize(
    "attributes",
    [
        {"activation": "Relu"},
        {"activation": "LeakyRelu", "activation_params": [0.1]},
        {"activation": "Clip", "activation_params": [-0.5, 0.75]},
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
    ],
)
def test_a_convolution_with_an_activation(attributes, run):
    nodes = [microsoft("FusedConv", ["x", "w", "b"], ["y"], pads=[1, 1, 1, 1], **attributes)]
    constants = [tensor("w", random(5, 3, 3, 3, seed=1)), tensor("b", random(5, seed=2))]
    close(run, contrib(nodes, [value("x", [2, 3, 6, 7])], ["y"], constants), x=random(2, 3, 6, 7))


def test_a_convolution_to_which_something_is_added(run):
    nodes = [microsoft("FusedConv", ["x", "w", "b", "z"], ["y"], activation="Relu")]
    constants = [tensor("w", random(5, 3, 1, 1, seed=1)), tensor("b", random(5, seed=2))]
    proto = contrib(nodes, [value("x", [1, 3, 6, 7]), value("z", [1, 5, 6, 7])], ["y"], constants)
    close(run, proto, x=random(1, 3, 6, 7), z=random(1, 5, 6, 7, seed=3))


def test_a_dense_layer_with_an_activation(run):
    nodes = [
        microsoft(
            "FusedGemm", ["x", "w", "b"], ["y"], transB=1, alpha=0.5, activation="LeakyRelu", activation_alpha=0.2
        )
    ]
    constants = [tensor("w", random(5, 4, seed=1)), tensor("b", random(5, seed=2))]
    close(run, contrib(nodes, [value("x", [3, 4])], ["y"], constants), x=random(3, 4))


@pytest.mark.parametrize("attributes", [{}, {"alpha": 1.0}])
def test_a_gelu_by_a_sigmoid(attributes, run):
    close(
        run, contrib([microsoft("QuickGelu", ["x"], ["y"], **attributes)], [value("x", [3, 7])], ["y"]), x=random(3, 7)
    )


@pytest.mark.parametrize(
    ("kind", "bias"), [("Gelu", False), ("BiasGelu", True), ("FastGelu", False), ("FastGelu", True)]
)
def test_a_gelu_before_an_operator_that_needs_its_shape(kind, bias, run):
    """onnx's shape inference knows nothing of Microsoft's operators."""
    nodes = [
        microsoft(kind, ["x", "b"] if bias else ["x"], ["g"]),
        microsoft("FusedMatMul", ["g", "w"], ["y"], transA=1),
    ]
    constants = [tensor("w", random(3, 5)), *([tensor("b", random(7, seed=2))] if bias else [])]
    close(run, contrib(nodes, [value("x", [3, 7])], ["y"], constants), x=random(3, 7, seed=1))


@pytest.mark.parametrize("depth", [64, 40])
@pytest.mark.parametrize(
    ("bits", "zeros"),
    [(2, "packed"), (2, "floating"), (4, "none"), (4, "packed"), (4, "floating"), (8, "none"), (8, "packed")],
)
def test_weights_in_blocks_of_few_bits(bits, depth, zeros, run):
    size, columns = 16, 6
    blocks = -(-depth // size)
    packed = rng(1).integers(0, 256, (columns, blocks, size * bits // 8)).astype("uint8")
    constants = [tensor("w", packed), tensor("s", rng(2).random((columns, blocks)).astype("float32"))]
    inputs = ["x", "w", "s"]
    if zeros == "packed":
        constants.append(tensor("z", rng(3).integers(0, 256, (columns, -(-blocks * bits // 8))).astype("uint8")))
        inputs.append("z")
    elif zeros == "floating":
        constants.append(tensor("z", rng(3).random((columns, blocks)).astype("float32")))
        inputs.append("z")
    nodes = [microsoft("MatMulNBits", inputs, ["y"], K=depth, N=columns, bits=bits, block_size=size)]
    close(run, contrib(nodes, [value("x", [2, 3, depth])], ["y"], constants), x=random(2, 3, depth))


def test_weights_that_do_not_fit_their_sizes_are_refused():
    constants = [tensor("w", np.zeros((6, 2, 8), "uint8")), tensor("s", np.zeros((6, 2), "float32"))]
    nodes = [microsoft("MatMulNBits", ["x", "w", "s"], ["y"], K=64, N=6, bits=4, block_size=16)]
    with pytest.raises(ModelError, match="do not fit K 64"):
        load_model(contrib(nodes, [value("x", [2, 64])], ["y"], constants))


def test_zero_points_that_do_not_fit_are_refused():
    constants = [tensor("w", np.zeros((6, 4, 8), "uint8")), tensor("s", np.zeros((6, 4), "float32"))]
    constants.append(tensor("z", np.zeros((6, 3), "uint8")))
    nodes = [microsoft("MatMulNBits", ["x", "w", "s", "z"], ["y"], K=64, N=6, bits=4, block_size=16)]
    with pytest.raises(ModelError, match="18 zero points, which are 12"):
        load_model(contrib(nodes, [value("x", [2, 64])], ["y"], constants))


@pytest.mark.parametrize(
    ("kind", "domain", "remedy"),
    [
        ("ZipMap", "ai.onnx.ml", "outside of the model"),
        ("DecodeImage", "com.microsoft.extensions", "keep what is between"),
        ("Conv", "com.microsoft.nchwc", "extended level at most"),
    ],
)
def test_what_is_lacking_is_refused_with_a_remedy(kind, domain, remedy):
    proto = model([node(kind, ["x"], ["y"], domain=domain)], [value("x", [1, 4])], ["y"])
    proto.opset_import.append(helper.make_opsetid(domain, 1))
    with pytest.raises(UnsupportedOperatorError, match=f"{kind}.*{remedy}"):
        load_model(proto)


def test_operators_for_one_processor_are_named_alone():
    """Behind them nobody knows a type, so that others are not lowered either."""
    nodes = [
        node("Conv", ["x"], ["h"], domain="com.microsoft.nchwc"),
        node("QuickGelu", ["h"], ["y"], domain="com.microsoft"),
    ]
    proto = model(nodes, [value("x", [1, 4])], ["y"])
    proto.opset_import.extend(helper.make_opsetid(n.domain, 1) for n in nodes)
    with pytest.raises(UnsupportedOperatorError, match=r"nchwc\.Conv") as caught:
        load_model(proto)
    assert "QuickGelu" not in str(caught.value)


TABLES = {
    "bytes of four": (TensorProto.UINT8, (4, 12), (4, 3), (4, 1), {"bits": 2}),
    "bytes of two": (TensorProto.UINT8, (4, 24), (4, 3), (4, 2), {"bits": 4}),
    "bytes": (TensorProto.UINT8, (4, 48), (4, 3), (4, 3), {"bits": 8, "quantize_axis": -1}),
    "of four bits": (TensorProto.INT4, (4, 40), (4, 3), (4, 3), {}),
    "without signs, on the other axis": (
        TensorProto.UINT4, (20, 4), (2, 4), (2, 4), {"gather_axis": 1, "quantize_axis": 0},
    ),
}  # fmt: skip


def table(kind, shape, scales, zeros, how, dtype="float32"):
    """A GatherBlockQuantized; without zero points where their shape is None."""
    low = -8 if kind == TensorProto.INT4 else 0
    high = 256 if kind == TensorProto.UINT8 else low + 16
    constants = [helper.make_tensor("d", kind, shape, rng(1).integers(low, high, shape).ravel())]
    constants.append(tensor("s", (0.1 + np.abs(random(*scales))).astype(dtype)))
    if zeros:
        constants.append(helper.make_tensor("z", kind, zeros, rng(2).integers(low, high, zeros).ravel()))
    elem = TensorProto.FLOAT if dtype == "float32" else TensorProto.FLOAT16
    nodes = [microsoft("GatherBlockQuantized", ["d", "i", "s", *["z"] * bool(zeros)], ["y"], block_size=16, **how)]
    given, results = [value("i", [2, 3], TensorProto.INT64)], [value("y", None, elem)]
    return with_contrib(model(nodes, given, results, constants, opset=21, ir=10))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_rows_of_a_table_in_blocks_of_few_bits(name, offset, dtype, run):
    kind, shape, scales, zeros, how = TABLES[name]
    close(run, table(kind, shape, scales, zeros if offset else None, how, dtype), i=np.array([[1, 0, 3], [-1, 2, 2]]))


def test_scales_for_another_table_are_refused():
    with pytest.raises(ModelError, match=r"scales of the shape \[4, 2\] and zero points of \[4, 3\]"):
        load_model(table(TensorProto.INT4, (4, 40), (4, 2), None, {}))


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes"),
    [
        ("FusedMatMul", ["x"], {}),
        ("FusedMatMul", ["x", ""], {}),
        ("FusedGemm", ["x"], {}),
        ("FusedConv", ["x"], {}),
        ("SkipLayerNormalization", ["x", "x"], {}),
        ("SkipSimplifiedLayerNormalization", ["x", "x", ""], {}),
        ("MultiHeadAttention", ["x", "x"], {"num_heads": 2}),
        ("Attention", ["x"], {"num_heads": 2}),
        ("RotaryEmbedding", ["x", "", "x"], {}),
        ("QLinearAdd", ["x", "x", "x", "x"], {}),
        ("GroupNorm", ["x"], {"groups": 2, "activation": 0}),
    ],
)
def test_inputs_that_are_left_out_are_refused(kind, inputs, attributes):
    """Nobody has checked how many there are: onnx knows its own operators alone."""
    proto = contrib([microsoft(kind, inputs, ["y"], **attributes)], [value("x", [2, 4, 4])], ["y"])
    with pytest.raises(ModelError, match=kind):
        load_model(proto)
