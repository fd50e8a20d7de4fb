"""Products of integers and quantised products: exact in bytes, or against ONNX Runtime."""

import numpy as np
import pytest
from onnx import numpy_helper

import tvm_rammer
from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, calls, model, node, op_names, random, rng, tensor, value, with_contrib
from ..test_operators import close
from .byte_values import INT8, INT32, NUMPY, UINT8, integers, off_by_one_at_most, weights_of


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


def test_a_vector_that_is_quantised_before_its_product():
    """Both are one function, whose sum reads the vector, its scale and its zero point before the matrix."""
    only = node("DynamicQuantizeMatMul", ["x", "w", "s"], ["y"], domain="com.microsoft")
    constants = [tensor("w", weights_of(4, 5)), tensor("s", np.float32(0.1))]
    proto = with_contrib(model([only], [value("x", [4])], ["y"], constants))
    (got,) = tvm_rammer.compile(proto, cache=False).run(None, {"x": random(4)})
    np.testing.assert_allclose(got, by_onnxruntime(proto, x=random(4))[0], rtol=1e-5, atol=1e-5)


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
