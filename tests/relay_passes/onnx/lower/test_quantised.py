"""Integer products and quantised operators, in floating point, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_rammer
from tests.functions import UNOPTIMISED
from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.loop_body import loop_bodies

from ...models import by_onnxruntime, calls, model, node, op_names, random, rng, tensor, value
from .test_operators import close

UINT8, INT8, INT32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32
NUMPY = {UINT8: np.uint8, INT8: np.int8}


def integers(kind, *shape, seed=0):
    info = np.iinfo(NUMPY[kind])
    return rng(seed).integers(info.min, info.max, shape, NUMPY[kind], endpoint=True)


def weights_of(*shape):
    """Weights of 7 bits: ONNX Runtime adds two products in 16 bits on a processor without VNNI, where larger ones
    saturate. Ours are exact, which other tests show."""
    return rng(0).integers(-64, 64, shape, np.int8)


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


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    ("left", "right"), [([3, 4], [4]), ([4], [4, 5]), ([2, 3, 4], [4]), ([4], [2, 4, 5]), ([4], [4])]
)
def test_integer_products_with_vectors(left, right, zeros, run):
    given = [value("a", left, UINT8), value("b", right, UINT8)]
    constants = [tensor("za", np.array(3, "uint8")), tensor("zb", np.array(5, "uint8"))] if zeros else []
    names = ["a", "b", *(constant.name for constant in constants)]
    proto = model([node("MatMulInteger", names, ["y"])], given, [value("y", None, INT32)], constants)
    a, b = (rng(i).integers(0, 256, shape).astype("uint8") for i, shape in enumerate((left, right)))
    shifted = (a.astype("int32") - 3 * zeros) @ (b.astype("int32") - 5 * zeros)
    np.testing.assert_array_equal(run(load_model(proto), a, b), shifted)


@pytest.mark.parametrize("terms", [40, 3000])
@pytest.mark.parametrize("kind", [UINT8, INT8])
@pytest.mark.parametrize("data", [UINT8, INT8])
def test_integer_products_are_exact(terms, kind, data, run):
    proto = model(
        [node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])], [value("a", [3, terms], data)],
        [value("y", None, INT32)],
        [tensor("b", integers(kind, terms, 7)), tensor("za", NUMPY[data](3)), tensor("zb", integers(kind, 7, seed=1))],
    )  # fmt: skip
    a = integers(data, 3, terms)
    a[0] = np.iinfo(NUMPY[data]).max
    got = run(load_model(proto), a)
    np.testing.assert_array_equal(got, _exact_product(a, 3, proto))
    assert got.dtype == np.int32


def _exact_product(a, zero, proto):
    """What ONNX Runtime refuses of some types."""
    b, _, zeros = (numpy_helper.to_array(t).astype("int64") for t in proto.graph.initializer)
    return (a.astype("int64") - zero) @ (b - zeros)


@pytest.mark.parametrize("zeros", [["", ""], ["za", ""], ["", "zb"], ["rows", "zb"]])
def test_zero_points_of_integer_products(zeros, run):
    constants = [tensor("b", integers(UINT8, 24, 5)), tensor("zb", np.uint8(127))]
    constants += [tensor("za", np.array([7], "uint8")), tensor("rows", np.array([1, 9, 255], "uint8"))]
    given = [value("a", [3, 24], UINT8)]
    proto = model([node("MatMulInteger", ["a", "b", *zeros], ["y"])], given, [value("y", None, INT32)], constants)
    a = integers(UINT8, 3, 24)
    left = {"": 0, "za": 7, "rows": np.array([[1], [9], [255]])}[zeros[0]]
    right = integers(UINT8, 24, 5).astype("int64") - (127 if zeros[1] else 0)
    np.testing.assert_array_equal(run(load_model(proto), a), (a.astype("int64") - left) @ right)


def test_a_matrix_without_its_zero_point_stays_bytes():
    """The product is one of bytes, with what a zero point of 120 leaves: nothing is multiplied in floating point."""
    b = np.full((600, 7), 120, "uint8")
    given, constants = [value("a", [3, 600], UINT8)], [tensor("b", b), tensor("z", np.uint8(128))]
    proto = model([node("MatMulInteger", ["a", "b", "", "z"], ["y"])], given, [value("y", [3, 7], INT32)], constants)
    assert op_names(load_model(proto)) == ["matmul"]


@pytest.mark.parametrize("kind", [UINT8, INT8])
def test_quantised_products(kind, run):
    constants = [
        tensor("as", np.float32(0.02)), tensor("az", NUMPY[kind](5)), tensor("b", weights_of(20, 9)),
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
    b = weights_of(20, 9)
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
        *SCALES, *ZEROS, tensor("b", weights_of(20, 9)), tensor("bs", np.linspace(0.01, 0.1, 9).astype("float32")),
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
    constants = [tensor("w", weights_of(64, 32)), tensor("wz", np.int8(0)), tensor("ws", np.float32(0.01))]
    proto = model(nodes, [value("x", [5, 64])], ["y"], [*constants, tensor("bias", np.arange(32, dtype="int32") * 99)])
    close(run, proto, x=random(5, 64))
    assert op_names(load_model(proto)).count("matmul") == 1


def lstm_of_bytes(steps=4, batch=2, read=5, hidden=6, direction="forward", *, each=False, kind="int8", bare=False):
    """A DynamicQuantizeLSTM as ONNX Runtime's quantiser writes it; `each`: with a scale for each gate's column."""
    directions = 1 + (direction == "bidirectional")
    one = (directions, 4 * hidden) if each else (directions,)
    constants = [tensor("b", random(directions, 8 * hidden))]
    for name, terms in (("w", read), ("r", hidden)):
        zero = 0 if each else 7  # ONNX Runtime wants none by column
        constants += [
            tensor(name, weights_of(directions, terms, 4 * hidden).astype(kind)),
            tensor(f"{name}_scale", np.linspace(0.003, 0.006, np.prod(one)).astype("float32").reshape(one)),
            tensor(f"{name}_zero", np.full(one, zero, kind)),
        ]
    quantised = ["", "", "", ""] if bare else ["", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"]
    only = node(
        "DynamicQuantizeLSTM", ["x", "w", "r", "b", *quantised], ["y", "h"], domain="com.microsoft",
        direction=direction, hidden_size=hidden,
    )  # fmt: skip
    given, results = [value("x", [steps, batch, read])], [value("y", None), value("h", None)]
    return with_contrib(model([only], given, results, constants))


def test_a_choice_of_quantised_values(run):
    names = ["c", "a", "s0", "z0", "b", "s1", "z1", "s2", "z2"]
    only = node("QLinearWhere", names, ["y"], domain="com.microsoft")
    given = [value("c", [3, 8], TensorProto.BOOL), value("a", [3, 8], UINT8), value("b", [3, 8], UINT8)]
    proto = with_contrib(model([only], given, [value("y", [3, 8], UINT8)], [*SCALES, *ZEROS]))
    feeds = {"c": integers(UINT8, 3, 8, seed=2) > 100, "a": integers(UINT8, 3, 8), "b": integers(UINT8, 3, 8, seed=1)}
    off_by_one_at_most(run, proto, **feeds)


@pytest.mark.parametrize("attributes", [{"axis": 1, "opset": 13}, {"axis": -1, "opset": 11}])
def test_a_softmax_of_quantised_values(attributes, run):
    """ONNX Runtime looks exponentials up in a table: a ninth of its results are the next number."""
    only = node("QLinearSoftmax", ["x", "s0", "z0", "ys", "z1"], ["y"], domain="com.microsoft", **attributes)
    given, result = [value("x", [2, 9, 6], UINT8)], value("y", None, UINT8)
    proto = with_contrib(model([only], given, [result], [*SCALES, *ZEROS, tensor("ys", np.float32(0.004))]))
    x = integers(UINT8, 2, 9, 6)
    got, (expected,) = run(load_model(proto), x).astype(int), by_onnxruntime(proto, x=x)
    assert len(np.unique(expected)) > 3
    assert np.abs(got - expected).max() <= 1
    powers = np.exp(0.02 * (x.astype("float64") - 100))
    exact = powers / powers.sum(attributes["axis"], keepdims=True) / 0.004 + 128
    assert np.abs(got - exact.clip(0, 255)).max() <= 0.501


def test_a_softmax_along_several_axes_is_refused():
    only = node("QLinearSoftmax", ["x", "s0", "z0", "s1", "z1"], ["y"], domain="com.microsoft", axis=1, opset=11)
    proto = with_contrib(model([only], [value("x", [2, 3, 4], UINT8)], [value("y", None, UINT8)], [*SCALES, *ZEROS]))
    with pytest.raises(UnsupportedOperatorError, match="QLinearSoftmax"):
        load_model(proto)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"direction": "bidirectional", "each": True},
        {"hidden": 16, "read": 40, "each": True, "batch": 1, "steps": 9},
        {"hidden": 24, "direction": "bidirectional", "kind": "uint8", "steps": 9},
    ],
)
def test_an_lstm_of_bytes_quantises_its_state_in_every_step(how, loops, run):
    proto = lstm_of_bytes(**how)
    x = random(*(d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim))
    made = tvm_rammer.compile(proto, target=UNOPTIMISED).run(None, {"x": x}) if loops else run(load_model(proto), x)
    for ours, theirs in zip(made, by_onnxruntime(proto, x=x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_an_lstm_of_bytes_keeps_them_in_its_loop():
    mod = load_model(lstm_of_bytes(steps=9, batch=1, hidden=16), loops=True)
    (body,) = loop_bodies(mod).values()
    products = [str(call) for call in body.script().splitlines() if "matmul" in call]
    assert len(products) == 1 and 'out_dtype="int32"' in products[0]


def test_an_lstm_of_bytes_without_scales_is_refused_by_name():
    with pytest.raises(ModelError, match=r"DynamicQuantizeLSTM '\w+' leaves out its input 8"):
        load_model(lstm_of_bytes(bare=True))


def test_a_product_that_quantises_what_it_reads(run):
    constants = [
        tensor("b", weights_of(40, 9)),
        tensor("bs", np.linspace(0.001, 0.01, 9).astype("float32")),
        tensor("c", random(9)),
    ]
    only = node("DynamicQuantizeMatMul", ["a", "b", "bs", "", "c"], ["y"], domain="com.microsoft")
    proto = with_contrib(model([only], [value("a", [4, 40])], [value("y", [4, 9])], constants))
    a = random(4, 40)
    close(run, proto, a=a)


def between(layer, data, weights, bias, scales, **attributes):
    """A layer of floating-point numbers that are quantised before and after."""
    scale = {"xs": np.float32(0.02), "ys": np.float32(0.4), **scales}
    constants = [tensor(name, np.asarray(array, "float32")) for name, array in scale.items()]
    zeros = np.zeros(scale["ws"].shape, "int8")
    constants += [tensor("z", np.uint8(120)), tensor("wz", zeros), tensor("w", weights), tensor("b", bias)]
    axis = {"axis": attributes.pop("axis")} if "axis" in attributes else {}
    nodes = [
        node("QuantizeLinear", ["x", "xs", "z"], ["q"]),
        node("DequantizeLinear", ["q", "xs", "z"], ["d"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], **axis),
        node("DequantizeLinear", ["b", "bs"], ["bd"], axis=0),
        node(layer, ["d", "wd", *(["bd"] if layer != "MatMul" else [])], ["r"], **attributes),
        node("QuantizeLinear", ["r", "ys", "z"], ["rq"]),
        node("DequantizeLinear", ["rq", "ys", "z"], ["y"]),
    ]
    return model(nodes, [value("x", data)], ["y"], constants)


LAYERS = {
    "Conv": ([1, 8, 7, 6], (12, 8, 3, 3), {"axis": 0, "pads": [1, 1, 1, 1]}),
    "MatMul": ([5, 16], (16, 12), {"axis": 1}),
    "Gemm": ([5, 16], (12, 16), {"axis": 0, "transB": 1}),
}


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_between_quantised_numbers_are_products_of_bytes(layer, each, run):
    data, shape, how = LAYERS[layer]
    scale = np.linspace(0.002, 0.01, 12) if each else np.array(0.005)
    scales = {"ws": scale.astype("float32"), "bs": (scale.astype("float32") * np.float32(0.02))}
    proto = between(layer, data, weights_of(*shape), np.arange(12, dtype="int32") * 99, scales, **how)
    x = 3 * random(*data)
    loaded = load_model(proto)
    assert any(str(call.ty.dtype) == "int32" for call in calls(loaded) if call.op.name == "relax.matmul")
    (want,) = by_onnxruntime(proto, x=x)
    apart = np.abs(run(loaded, x) - want) / 0.4
    assert apart.max() < 1.01 and (apart > 0.5).mean() < 0.02


def test_layers_whose_bias_has_another_scale_stay(run):
    data, shape, how = LAYERS["Gemm"]
    scales = {"ws": np.float32(0.005), "bs": np.float32(0.5)}
    proto = between("Gemm", data, weights_of(*shape), np.arange(12, dtype="int32"), scales, **how)
    assert all(str(call.ty.dtype) != "int32" for call in calls(load_model(proto)) if call.op.name == "relax.matmul")
