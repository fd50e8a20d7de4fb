"""Element types, and old forms of operators, that TVM's frontend lacks or misreads."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

import tvm_rammer
from tests import hostile
from tvm_rammer.errors import UnsupportedOperatorError, last_line
from tvm_rammer.relay_passes import load_model

from ...models import by_onnxruntime, model, node, random, tensor, value
from ..test_load_onnx import agree
from .judge import check


@pytest.mark.parametrize("opset", [9, 10, 11])
def test_how_many_the_largest_are(opset, run):
    """An attribute before opset 10; TVM's frontend went on reading it in opset 10, where there is none."""
    inputs, how = (["x"], {"k": 3}) if opset < 10 else (["x", "k"], {})
    nodes = [node("TopK", inputs, ["v", "i"], **how), node("ReduceSum", ["v"], ["y"], axes=[1])]
    constants = [tensor("k", np.array([3]))] if opset >= 10 else []
    agree(run, model(nodes, [value("x", [3, 7])], ["y"], constants, opset=opset), x=random(3, 7))


@pytest.mark.parametrize("opset", [9, 10, 11])
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_an_axis_that_is_counted_from_the_last(kind, opset, run):
    proto = model([node(kind, ["x"], ["y"], axis=-2, keepdims=0)], [value("x", [3, 4, 5])], [], opset=opset)
    proto.graph.output.append(value("y", None, TensorProto.INT64))
    agree(run, proto, x=random(3, 4, 5))


def test_bytes_that_are_padded_in_opset_10(run):
    image = np.arange(2 * 4 * 9).reshape(2, 4, 3, 3).astype("uint8")
    weights = [np.arange(4 * 4 * 9).reshape(4, 4, 3, 3).astype("uint8"), np.array(3, "uint8"), np.array(11, "uint8")]
    check(run, "ConvInteger", [image], weights, opset=10, pads=[2, 2, 2, 2])


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize(
    ("kind", "how"), [("Elu", {}), ("Elu", {"alpha": 0.25}), ("Selu", {}), ("Selu", {"gamma": 2.0})]
)
def test_exponential_units_of_other_floats(kind, how, dtype, run):
    x = [1, 0, np.inf, -np.inf, np.nan, -0.5 if dtype == "float64" else -0.0]  # halves are rounded once more
    check(run, kind, [np.array(x, dtype)], opset=22, **how)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "float32"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 5)])
def test_slopes_of_integers_and_of_a_single_number(shape, dtype, run):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape) - (0 if dtype[0] == "u" else 3)
    check(run, "PRelu", [x.astype(dtype), np.array(2, dtype).reshape([1] * len(shape))], opset=16)


@pytest.mark.parametrize("kind", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
def test_roots_and_logarithms_of_integers(kind, run):
    proto = model([node(kind, ["x"], ["y"], axes=[1])], [value("x", [3, 4], TensorProto.INT32)], [], opset=13)
    proto.graph.output.append(value("y", None, TensorProto.INT32))
    agree(run, proto, x=(np.arange(12).reshape(3, 4) + 1).astype("int32"))


def test_logarithms_of_integers_along_no_axis(run):
    x = np.array([1, 8, 30], "int32")
    proto = model(
        [node("ReduceLogSum", ["x"], ["y"], noop_with_empty_axes=1)], [value("x", [3], TensorProto.INT32)], []
    )
    proto.opset_import[0].version = 18
    proto.graph.output.append(value("y", None, TensorProto.INT32))
    agree(run, proto, x=x)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_signs_of_unsigned_integers(dtype, run):
    check(run, "Sign", [np.array([0, 1, 7, np.iinfo(dtype).max], dtype)])


def test_a_matrix_of_mel_weights(run):
    constants = [np.array(8), np.array(16), np.array(8000), np.array(0, "float32"), np.array(4000, "float32")]
    names = [f"c{i}" for i in range(5)]
    nodes = [node("MelWeightMatrix", names, ["m"]), node("MatMul", ["x", "m"], ["y"])]
    constants = [tensor(n, c) for n, c in zip(names, constants, strict=True)]
    agree(run, model(nodes, [value("x", [2, 9])], ["y"], constants), x=random(2, 9))


@pytest.mark.parametrize(
    "how",
    [
        {"kernel_shape": [1, 1], "strides": [2, 2]},
        {"kernel_shape": [1, 4], "strides": [3, 3], "dilations": [1, 2]},
        {"kernel_shape": [2, 3], "strides": [3, 2], "pads": [1, 0, 1, 1]},
    ],
)
@pytest.mark.parametrize("kind", ["AveragePool", "LpPool", "MaxPool"])
def test_windows_that_begin_behind_the_image(kind, how, run):
    proto = model([node(kind, ["x"], ["y"], ceil_mode=1, **how)], [value("x", [1, 3, 8, 12])], ["y"], opset=19)
    agree(run, proto, x=random(1, 3, 8, 12))


@pytest.mark.parametrize("kind", ["AveragePool", "LpPool", "MaxPool"])
def test_windows_without_pads_that_reach_beyond_the_image(kind, run):
    how = {"kernel_shape": [4, 3], "strides": [2, 2], "auto_pad": "VALID", "ceil_mode": 1}
    proto = model([node(kind, ["x"], ["y"], **how)], [value("x", [1, 2, 7, 6])], ["y"], opset=18)
    agree(run, proto, x=random(1, 2, 7, 6))


@pytest.mark.parametrize("kind", ["bicubic", "bilinear", "nearest"])
def test_points_of_an_image_of_half_precision(kind, run):
    half = [value("x", [1, 2, 4, 5], TensorProto.FLOAT16), value("g", [1, 3, 2, 2], TensorProto.FLOAT16)]
    proto = model([node("GridSample", ["x", "g"], ["y"], mode=kind)], half, [value("y", None, TensorProto.FLOAT16)])
    x, g = random(1, 2, 4, 5).astype("float16"), (random(1, 3, 2, 2) / 2).astype("float16")
    got, (want,) = run(load_model(proto), x, g), by_onnxruntime(proto, x=x, g=g)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("kind", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (2, 1), (3, 3), (4, 3), (5, 2)])
def test_windows_as_many_as_strides_say(kind, auto, kernel, stride, run):
    """Of an odd number of pads the lower end has one more, or the upper one."""
    how = {"kernel_shape": [kernel, 3], "strides": [stride, 2], "auto_pad": auto}
    proto = model([node(kind, ["x"], ["y"], **how)], [value("x", [1, 2, 11, 5])], ["y"], opset=18)
    agree(run, proto, x=random(1, 2, 11, 5))


@pytest.mark.parametrize(("kind", "what"), [(TensorProto.UINT8, "integers"), (TensorProto.BOOL, "booleans")])
def test_integers_and_booleans_are_not_interpolated(kind, what):
    nodes = [node("Resize", ["x", "", "scales"], ["y"], mode="linear")]
    scales = tensor("scales", np.array([1, 1, 2, 1.5], "float32"))
    proto = model(nodes, [value("x", [1, 1, 4, 4], kind)], ["y"], [scales])
    with pytest.raises(UnsupportedOperatorError, match=rf"Resize 'y' interpolates {what}.*cast them to float32"):
        load_model(proto)


def test_a_crop_of_integers(run):
    nodes = [
        node("Resize", ["x", "roi", "scales"], ["y"], coordinate_transformation_mode="tf_crop_and_resize",
             extrapolation_value=7.0),
    ]  # fmt: skip
    roi, scales = np.array([0, -0.5, 1, 1.5], "float32"), np.array([1, 2], "float32")
    proto = model(nodes, [value("x", [2, 4], TensorProto.INT32)], [], [tensor("roi", roi), tensor("scales", scales)])
    proto.graph.output.append(value("y", None, TensorProto.INT32))
    agree(run, proto, x=np.arange(8, dtype="int32").reshape(2, 4))


def test_an_operator_of_tvm_is_told_by_its_name():
    from tvm import relax

    bb = relax.BlockBuilder()
    with bb.function("main", [x := relax.Var("x", relax.TensorType((2,), "int32"))]):
        with pytest.raises(Exception, match=r"relax\.exp") as raised:
            bb.normalize(relax.op.exp(x))
        bb.emit_func_output(x)
    assert last_line(raised.value).startswith("relax.exp requires")


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin", "Hardmax", "IsNaN", "IsInf"])
def test_places_and_nan_among_numbers_of_bfloat16(kind):
    """As among the same numbers in single precision, which ONNX Runtime compares."""
    x = np.round(random(3, 5) * 8) / 8  # numbers of both types
    x[1, 2] = {"IsNaN": np.nan, "IsInf": -np.inf}.get(kind, 9)
    kinds = {"Hardmax": TensorProto.FLOAT, "IsNaN": TensorProto.BOOL, "IsInf": TensorProto.BOOL}
    result = value("y", None, kinds.get(kind, TensorProto.INT64))
    found = []
    for elem in (TensorProto.BFLOAT16, TensorProto.FLOAT):
        nodes = [node("Cast", ["x"], ["c"], to=elem), node(kind, ["c"], ["f"])]
        nodes.append(node("Cast", ["f"], ["y"], to=result.type.tensor_type.elem_type))
        found.append(model(nodes, [value("x", [3, 5])], [result], opset=20, ir=10))
    (want,) = by_onnxruntime(found[1], x=x)
    np.testing.assert_array_equal(tvm_rammer.compile(found[0])(x), want, strict=True)


REDUCTIONS = ["ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceLogSumExp", "Softmax", "LogSoftmax"]
WEIGHTED = {
    "LayerNormalization": (17, {}, 2), "InstanceNormalization": (22, {}, 2), "LpNormalization": (22, {}, 0),
    "LRN": (13, {"size": 3, "alpha": 0.5}, 0), "Pow": (15, {}, 1), "GlobalMaxPool": (22, {}, 0),
    "LpPool": (22, {"kernel_shape": [2, 2]}, 0),
}  # fmt: skip
"""Operators by their opset, attributes, and the inputs that they have besides."""
FINE = {TensorProto.DOUBLE: 1e-6, TensorProto.FLOAT16: 4e-3, TensorProto.BFLOAT16: 3e-2}
"""The difference to single precision, relative to the largest result."""


def as_in_single_precision(nodes_of, elem, x, opset=13):
    """Compile what `nodes_of` makes of "c", which is `x` as another type, and compare with ONNX Runtime's float32."""
    found = []
    for kind in (elem, TensorProto.FLOAT):
        nodes = [node("Cast", ["x"], ["c"], to=kind), *nodes_of(kind), node("Cast", ["f"], ["y"], to=TensorProto.FLOAT)]
        found.append(model(nodes, [value("x", list(x.shape))], ["y"], opset=opset, ir=10))
    (want,) = by_onnxruntime(found[1], x=x)
    got = tvm_rammer.compile(found[0])(x)
    np.testing.assert_allclose(got, want, rtol=FINE[elem], atol=FINE[elem] * np.abs(want).max(), strict=True)


@pytest.mark.parametrize("elem", FINE, ids=TensorProto.DataType.Name)
@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions_of_other_types_in_vectors(kind, axis, elem):
    x = 1 + random(16, 32) / 32
    attributes = {"axis": axis} if kind.endswith("max") and "Reduce" not in kind else {"axes": [axis]}
    as_in_single_precision(lambda _: [node(kind, ["c"], ["f"], **attributes)], elem, x)


@pytest.mark.parametrize("elem", FINE, ids=TensorProto.DataType.Name)
@pytest.mark.parametrize("kind", WEIGHTED)
def test_layers_of_other_types(kind, elem):
    opset, attributes, count = WEIGHTED[kind]
    size = 6 if kind == "LayerNormalization" else 4
    weights = [np.float32(2.5) if kind == "Pow" else 1 + random(size, seed=n) / 4 for n in range(count)]

    def nodes(elem):
        cast = [node("Constant", [], [f"w{n}"], value=tensor("w", w)) for n, w in enumerate(weights)]
        cast += [node("Cast", [f"w{n}"], [f"c{n}"], to=elem) for n in range(count)]
        return [*cast, node(kind, ["c", *(f"c{n}" for n in range(count))], ["f"], **attributes)]

    as_in_single_precision(nodes, elem, 1 + np.abs(random(2, 4, 5, 6)), opset)


@pytest.mark.parametrize("pad", [0.0, 1.5])
def test_edges_of_bfloat16(pad):
    def nodes(elem):
        edge = [node("Constant", [], ["e"], value=tensor("e", np.float32(pad))), node("Cast", ["e"], ["ce"], to=elem)]
        pads = node("Constant", [], ["p"], value=tensor("p", np.array([0, 16, 0, 16])))
        return [*edge, pads, node("Pad", ["c", "p", "ce"], ["f"])]

    as_in_single_precision(nodes, TensorProto.BFLOAT16, random(4, 16))


def test_an_error_of_tvm_about_constants_says_nothing_of_how_they_are_printed():
    text = 'The LHS # Metadata omitted. Use show_meta=True in script() method to show it.\nmetadata["x"][0] has shape 1'
    assert last_line(ValueError(text)) == 'The LHS metadata["x"][0] has shape 1'


def test_sums_and_squares_of_half_precision_are_those_of_float32_rounded():
    """In half precision squares of 300 are infinite, and a sum stays at 2048 when ones are added."""
    large = np.full((1, 2, 30), 300, "float16")
    arrays = {"x": large, "ones": np.ones((1, 2, 3000), "float16")}
    calls = [("ReduceL2", ["x", "axes"], {}), ("LpNormalization", ["x"], {"axis": 2}), ("GlobalLpPool", ["x"], {})]
    calls += [("LpPool", ["x"], {"kernel_shape": [3]}), ("LRN", ["x"], {"size": 3, "alpha": 1.0})]
    calls += [("CumSum", ["ones", "axis"], {}), ("Einsum", ["ones", "ones"], {"equation": "bij,bij->b"})]
    proto = hostile.model(calls, arrays, {"axes": np.array([2]), "axis": np.array(2)}, opset=18)
    root = 300 * np.sqrt(30)
    normed, pooled = 1 / np.sqrt(30), 300 * np.sqrt(3)
    lrn = 300 / (1 + 2 * 300.0**2 / 3) ** 0.75
    want = [root, normed, root, pooled, lrn, 3000, 6000]
    for (kind, *_), y, right in zip(calls, hostile.results(proto, arrays), want, strict=True):
        assert y.dtype == np.float16
        np.testing.assert_allclose(y.ravel()[-1].astype("float64"), right, rtol=1e-3, err_msg=kind)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_images_matrices_and_remainders_of_half_precision_are_those_of_float32_rounded(dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(1, 9, (1, 2, 4, 4)).astype(dtype) for _ in range(2))
    calls = [("Resize", ["x", "", "", "sizes"], {"mode": mode}) for mode in ("linear", "cubic", "nearest")]
    calls += [("Det", ["x"], {}), ("Mod", ["x", "y"], {"fmod": 1})]
    constants = {"sizes": np.array([1, 2, 7, 6])}
    got = hostile.results(hostile.model(calls, {"x": x, "y": y}, constants, opset=22), {"x": x, "y": y})
    wide = {"x": x.astype("float32"), "y": y.astype("float32")}
    want = ReferenceEvaluator(hostile.model(calls, wide, constants, opset=22)).run(None, wide)
    for (kind, *_), found, right in zip(calls, got, want, strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found.astype("float32"), right, rtol=float(ml_dtypes.finfo(dtype).eps), atol=1e-4, err_msg=kind
        )
