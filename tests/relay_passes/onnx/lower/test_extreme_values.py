"""Infinities, equal numbers and large ones, where TVM's frontend or ONNX's own definition loses them."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.relay_passes import load_model

from ...models import by_onnxruntime, model, node, random, tensor, value
from .judge import check

INF = np.array([1, np.inf, -np.inf, np.nan, 0], "float32")


@pytest.mark.parametrize("shape", [(), (5,)])
def test_celu_chooses_one_of_its_two_sides(shape, run):
    with np.errstate(over="ignore"):
        check(run, "Celu", [np.resize(np.array([3e38, -1, 0, -np.inf, np.nan], "float32"), shape)], alpha=0.25)


def test_the_first_clip_has_finite_ends(run):
    x = INF[~np.isnan(INF)]
    check(run, "Clip", [x], opset=10)
    check(run, "Clip", [x], opset=10, max=0.5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("bounds", [["", ""], ["low", ""], ["", "high"], ["low"], []])
def test_bounds_of_a_clip_that_are_not_given_are_finite(bounds, known, dtype):
    """So ONNX defines them, and ONNX Runtime has them; onnx's reference evaluator lets infinities pass."""
    kind = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}[dtype]
    x = INF.astype(dtype)
    constants = [tensor("low", np.array(-0.5, dtype)), tensor("high", np.array(0.5, dtype)), tensor("c", x)]
    nodes = [node("Clip", ["c" if known else "x", *bounds], ["z"]), node("Add", ["z", "zero"], ["y"])]
    constants = [t for t in constants if t.name in (*bounds, "c" if known else "")]
    given = [value("zero", [1], kind)] + ([] if known else [value("x", [5], kind)])
    proto = model(nodes, given, [value("y", None, kind)], constants)
    feeds = {"zero": np.zeros(1, dtype)} | ({} if known else {"x": x})
    np.testing.assert_array_equal(tvm_rammer.compile(proto)(**feeds), by_onnxruntime(proto, **feeds)[0])


def test_infinities_of_bfloat16_are_clipped_too():
    kind = TensorProto.BFLOAT16
    nodes = [node("Cast", ["x"], ["b"], to=kind), node("Clip", ["b"], ["c"]), node("Cast", ["c"], ["y"], to=1)]
    largest = (2 - 2**-7) * 2.0**127
    got = tvm_rammer.compile(model(nodes, [value("x", [5])], ["y"]))(INF)
    np.testing.assert_array_equal(got, np.array([1, largest, -largest, np.nan, 0], "float32"))


def test_bounds_of_a_clip_that_are_known(run):
    bounds = [np.array(-0.5, "float32"), np.array(np.nan, "float32"), np.array([2], "float32")]
    for low, high in [(0, 2), (0, 1), (1, 2)]:
        proto = model(
            [node("Clip", ["x", "low", "high"], ["y"])], [value("x", [5])], ["y"],
            [tensor("low", bounds[low]), tensor("high", bounds[high])],
        )  # fmt: skip
        x = np.array([1, -7, 9, -0.25, 2], "float32")
        np.testing.assert_array_equal(run(load_model(proto), x), np.fmin(np.fmax(x, bounds[low]), bounds[high]))
    check(run, "Clip", [np.array([-3, 4, 9], "int64")], [None, np.array(5)])


def test_gelu_in_double_precision_has_the_constants_of_its_definition(run):
    x = np.array([-0.5, 0.25, 3.0])
    mod = check(run, "Gelu", [x], approximate="tanh")
    exact = (
        0.5 * x * (1 + np.tanh(np.sqrt(np.float64(np.float32(2 / np.pi))) * (x + float(np.float32(0.044715)) * x**3)))
    )
    np.testing.assert_allclose(run(mod, x), exact, rtol=1e-14)


@pytest.mark.parametrize("op", ["LayerNormalization", "GroupNormalization", "MeanVarianceNormalization"])
def test_the_deviation_of_large_numbers(op, run):
    x = (1000 + random(2, 4, 6) / 8).astype("float32")
    attributes = {"L": {"axis": 1}, "G": {"num_groups": 1}, "M": {"axes": [1, 2]}}[op[0]]
    scales = {"L": [(4, 6)], "G": [(4,), (4,)], "M": []}[op[0]]
    names, outputs = [f"s{i}" for i in range(len(scales))], ["y", "m", "i"] if op[0] == "L" else ["y"]
    constants = [tensor(n, np.full(shape, n == "s0", "float32")) for n, shape in zip(names, scales, strict=True)]
    proto = model(
        [node(op, ["x", *names], outputs, **attributes)], [value("x", x.shape)], outputs, constants, opset=21, ir=10
    )
    got = run(load_model(proto), x)
    flat = x.reshape(2, -1).astype("float64")
    deviation = np.sqrt(flat.var(1) + 1e-5)
    y = got[0] if op[0] == "L" else got
    np.testing.assert_allclose(y.reshape(2, -1), (flat - flat.mean(1)[:, None]) / deviation[:, None], atol=5e-3)
    if op[0] == "L":
        np.testing.assert_allclose(got[1].ravel(), flat.mean(1), rtol=1e-6)
        np.testing.assert_allclose(got[2].ravel(), 1 / deviation, rtol=1e-4)


def test_equal_numbers_have_no_variance(run):
    x = np.full((1, 2, 3, 4), 2, "float32")
    proto = model([node("MeanVarianceNormalization", ["x"], ["y"])], [value("x", x.shape)], ["y"], opset=13)
    np.testing.assert_array_equal(run(load_model(proto), x), np.zeros_like(x))


def test_numbers_that_are_no_index_are_out_of_range(run):
    index = np.array([1, -np.inf, np.inf, -1, -9, 3, 0.5, -0.5, 2.25, np.nan], "float32")
    proto = model(
        [node("OneHot", ["x", "depth", "values"], ["y"])], [value("x", index.shape)], ["y"],
        [tensor("depth", np.array(3)), tensor("values", np.array([0, 1], "float32"))],
    )  # fmt: skip
    want = np.zeros((10, 3), "float32")
    want[0, 1] = want[3, 2] = 1
    np.testing.assert_array_equal(run(load_model(proto), index), want)


def test_an_infinite_factor_meets_what_it_is_for_alone(run):
    x = np.array([-1, 0, 2, np.nan], "float32")
    proto = model([node("Elu", ["x"], ["y"], alpha=np.inf)], [value("x", x.shape)], ["y"])
    (want,) = by_onnxruntime(proto, x=x)
    np.testing.assert_allclose(run(load_model(proto), x), want, rtol=1e-6)
