"""Integer products and quantised operators, in floating point, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.relay_passes import load_model

from ...models import by_onnxruntime, model, node, op_names, random, rng, tensor, value
from .test_operators import close

UINT8, INT8, INT32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32
NUMPY = {UINT8: np.uint8, INT8: np.int8}


def integers(kind, *shape, seed=0):
    info = np.iinfo(NUMPY[kind])
    return rng(seed).integers(info.min, info.max, shape, NUMPY[kind], endpoint=True)


def off_by_one_at_most(run, proto, **inputs):
    """Load and run a model with a quantised result: where a number lies between two, either is right."""
    got = run(load_model(proto), *inputs.values())
    (expected,) = by_onnxruntime(proto, **inputs)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    assert len(np.unique(expected)) > 3
    apart = np.abs(got.astype(int) - expected.astype(int))
    assert apart.max() <= 1 and (apart > 0).mean() < 0.05


def with_contrib(proto):
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


@pytest.mark.parametrize("terms", [40, 3000])
@pytest.mark.parametrize("kind", [UINT8, INT8])
def test_integer_products_are_exact(terms, kind, run):
    proto = model(
        [node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])], [value("a", [3, terms], UINT8)],
        [value("y", None, INT32)],
        [tensor("b", integers(kind, terms, 7)), tensor("za", np.uint8(3)), tensor("zb", integers(kind, 7, seed=1))],
    )  # fmt: skip
    a = np.full((3, terms), 255, "uint8")
    a[1:] = integers(UINT8, 2, terms)
    got = run(load_model(proto), a)
    np.testing.assert_array_equal(got, by_onnxruntime(proto, a=a)[0])
    assert got.dtype == np.int32


def test_integer_products_take_no_second_product_where_one_is_exact():
    def products(b):
        only = [node("MatMulInteger", ["a", "b"], ["y"])]
        results = [value("y", [3, 7], INT32)]
        proto = model(only, [value("a", [3, 600], UINT8)], results, [tensor("b", b)])
        return op_names(load_model(proto)).count("matmul")

    assert products(np.full((600, 7), 100, "int8")) == 1
    assert products(np.full((600, 7), 120, "int8")) == 2


@pytest.mark.parametrize("channels", [8, 300])
@pytest.mark.parametrize("groups", [1, 2])
def test_integer_convolutions_are_exact(channels, groups, run):
    proto = model(
        [node("ConvInteger", ["x", "w", "zx"], ["y"], pads=[1, 1, 1, 1], strides=[2, 1], group=groups)],
        [value("x", [1, channels, 6, 5], UINT8)], [value("y", None, INT32)],
        [tensor("w", integers(UINT8, 4, channels // groups, 3, 3)), tensor("zx", np.uint8(128))],
    )  # fmt: skip
    x = integers(UINT8, 1, channels, 6, 5)
    np.testing.assert_array_equal(run(load_model(proto), x), by_onnxruntime(proto, x=x)[0])


@pytest.mark.parametrize("each", [False, True])
def test_quantised_convolutions(each, run):
    scale = np.linspace(0.002, 0.01, 6).astype("float32") if each else np.float32(0.005)
    zero = np.zeros(6, "int8") if each else np.int8(0)
    constants = [
        tensor("xs", np.float32(0.02)), tensor("xz", np.uint8(120)), tensor("w", integers(INT8, 6, 4, 3, 3)),
        tensor("ws", scale), tensor("wz", zero), tensor("ys", np.float32(0.03)), tensor("yz", np.uint8(100)),
        tensor("b", np.arange(-3000, 3000, 1000, dtype="int32")),
    ]  # fmt: skip
    only = node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], pads=[1, 1, 1, 1])
    proto = model([only], [value("x", [2, 4, 7, 7], UINT8)], [value("y", None, UINT8)], constants)
    off_by_one_at_most(run, proto, x=integers(UINT8, 2, 4, 7, 7))


@pytest.mark.parametrize("kind", [UINT8, INT8])
def test_quantised_products(kind, run):
    constants = [
        tensor("as", np.float32(0.02)), tensor("az", NUMPY[kind](5)), tensor("b", integers(INT8, 20, 9)),
        tensor("bs", np.float32(0.005)), tensor("bz", np.int8(2)), tensor("ys", np.float32(0.04)),
        tensor("yz", NUMPY[kind](60)),
    ]  # fmt: skip
    only = node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])
    off_by_one_at_most(
        run, model([only], [value("a", [4, 20], kind)], [value("y", None, kind)], constants), a=integers(kind, 4, 20)
    )


SCALES = [tensor(f"s{i}", np.float32(s)) for i, s in enumerate((0.02, 0.015, 0.03))]
ZEROS = [tensor(f"z{i}", np.uint8(z)) for i, z in enumerate((100, 128, 90))]


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
def test_quantised_operators_of_two(kind, run):
    only = node(kind, ["a", "s0", "z0", "b", "s1", "z1", "s2", "z2"], ["y"], domain="com.microsoft")
    given = [value("a", [3, 8], UINT8), value("b", [3, 8], UINT8)]
    proto = with_contrib(model([only], given, [value("y", [3, 8], UINT8)], [*SCALES, *ZEROS]))
    off_by_one_at_most(run, proto, a=integers(UINT8, 3, 8), b=integers(UINT8, 3, 8, seed=1))


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.2}),
        ("QLinearGlobalAveragePool", {}),
        ("QLinearAveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ],
)
def test_quantised_operators_of_one(kind, attributes, run):
    scale = tensor("ys", np.float32(0.004))
    only = node(kind, ["x", "s0", "z0", "ys", "z1"], ["y"], domain="com.microsoft", **attributes)
    given, result = [value("x", [2, 9, 6, 6], UINT8)], value("y", None, UINT8)
    proto = with_contrib(model([only], given, [result], [*SCALES, *ZEROS, scale]))
    off_by_one_at_most(run, proto, x=integers(UINT8, 2, 9, 6, 6))


def test_quantised_concatenation(run):
    only = node("QLinearConcat", ["s2", "z2", "a", "s0", "z0", "b", "s1", "z1"], ["y"], domain="com.microsoft", axis=1)
    given = [value("a", [3, 8], UINT8), value("b", [3, 5], UINT8)]
    proto = with_contrib(model([only], given, [value("y", [3, 13], UINT8)], [*SCALES, *ZEROS]))
    off_by_one_at_most(run, proto, a=integers(UINT8, 3, 8), b=integers(UINT8, 3, 5, seed=1))


@pytest.mark.parametrize("turned", [0, 1])
def test_quantised_gemm(turned, run):
    b = integers(INT8, 20, 9)
    constants = [
        *SCALES, *ZEROS, tensor("b", b.T.copy() if turned else b), tensor("bz", np.int8(0)),
        tensor("c", np.arange(9, dtype="int32") * 500), tensor("ys", np.float32(0.5)),
    ]  # fmt: skip
    only = node(
        "QGemm", ["a", "s0", "z0", "b", "s1", "bz", "c", "ys", "z1"], ["y"], domain="com.microsoft", transB=turned
    )
    proto = with_contrib(model([only], [value("a", [4, 20], UINT8)], [value("y", [4, 9], UINT8)], constants))
    off_by_one_at_most(run, proto, a=integers(UINT8, 4, 20))


@pytest.mark.parametrize("bias", [False, True])
def test_integer_products_to_float(bias, run):
    inputs = ["a", "b", "s0", "bs", "z0", "", "bias"][: 7 if bias else 5]
    constants = [
        *SCALES, *ZEROS, tensor("b", integers(INT8, 20, 9)), tensor("bs", np.linspace(0.01, 0.1, 9).astype("float32")),
        tensor("bias", random(9)),
    ]  # fmt: skip
    only = node("MatMulIntegerToFloat", inputs, ["y"], domain="com.microsoft")
    proto = with_contrib(model([only], [value("a", [4, 20], UINT8)], [value("y", [4, 9])], constants))
    close(run, proto, a=integers(UINT8, 4, 20))


def test_dynamically_quantised_layers(run):
    """As ONNX Runtime's quantiser writes a linear layer of a speech model."""
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", ["q", "w", "z", "wz"], ["i"]),
        node("Add", ["i", "bias"], ["sum"]),
        node("Cast", ["sum"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["s", "ws"], ["both"]),
        node("Mul", ["f", "both"], ["y"]),
    ]
    constants = [tensor("w", integers(INT8, 64, 32)), tensor("wz", np.int8(0)), tensor("ws", np.float32(0.01))]
    proto = model(nodes, [value("x", [5, 64])], ["y"], [*constants, tensor("bias", np.arange(32, dtype="int32") * 99)])
    close(run, proto, x=random(5, 64))
    assert "int32" not in load_model(proto).script()


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("each", [False, True])
def test_an_lstm_of_quantised_weights_is_that_of_the_numbers_they_stand_for(direction, each, run):
    """ONNX Runtime quantises the hidden state in every step, so it is off by more; and wants no zero points by gate."""
    directions, hidden, read = 1 + (direction == "bidirectional"), 6, 5
    one = (directions, 4 * hidden) if each else (directions,)
    weights = {"w": integers(INT8, directions, read, 4 * hidden), "r": integers(INT8, directions, hidden, 4 * hidden)}
    scale, zero = {"w": 0.004, "r": 0.006}, {"w": 0, "r": 0 if each else 7}
    bias = tensor("b", random(directions, 8 * hidden))
    constants, plain = [bias], [bias]
    for name, array in weights.items():
        constants += [
            tensor(name, array),
            tensor(f"{name}_scale", np.full(one, scale[name], "float32")),
            tensor(f"{name}_zero", np.full(one, zero[name], "int8")),
        ]
        stands_for = (array.astype("float32") - zero[name]) * np.float32(scale[name])
        plain.append(tensor(name, stands_for.transpose(0, 2, 1).copy()))
    inputs = ["x", "w", "r", "b"]
    more = {"direction": direction, "hidden_size": hidden}
    quantised = ["", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"]
    only = node("DynamicQuantizeLSTM", [*inputs, *quantised], ["y", "h"], domain="com.microsoft", **more)
    given, results = [value("x", [4, 2, read])], [value("y", None), value("h", None)]
    proto, x = with_contrib(model([only], given, results, constants)), random(4, 2, read)
    got = run(load_model(proto), x)
    exact = by_onnxruntime(model([node("LSTM", inputs, ["y", "h"], **more)], given, results, plain), x=x)
    for ours, theirs, rough in zip(got, exact, by_onnxruntime(proto, x=x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(ours, rough, atol=0.05)


def test_a_product_that_quantises_what_it_reads(run):
    constants = [
        tensor("b", integers(INT8, 40, 9)),
        tensor("bs", np.linspace(0.001, 0.01, 9).astype("float32")),
        tensor("c", random(9)),
    ]
    only = node("DynamicQuantizeMatMul", ["a", "b", "bs", "", "c"], ["y"], domain="com.microsoft")
    proto = with_contrib(model([only], [value("a", [4, 40])], [value("y", [4, 9])], constants))
    a = random(4, 40)
    want = by_onnxruntime(proto, a=a)[0]
    np.testing.assert_allclose(run(load_model(proto), a), want, atol=0.02 * np.abs(want).max())
