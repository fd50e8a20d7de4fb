"""The judges tell wrong from right, and leave open what nobody says."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from ..models import model_of
from .compare import difference
from .onnx_judges import Judgement, judge, undefined


def test_the_judge_tells_wrong_from_right():
    verdict = judge(model_of("Exp"), {"x": np.float32([0, 1, 200])})
    assert isinstance(verdict, Judgement)
    right = np.exp(np.float32([0, 1])).tolist()
    assert verdict.fault([np.float32([*right, np.inf])]) is None
    assert verdict.fault([np.float32([*right, np.nan])]).startswith("NaN")
    assert verdict.fault([np.float32([*right, 3e38])]).startswith("inf")
    assert verdict.fault([np.float32([1, 2.719, np.inf])]).startswith("value")
    assert verdict.fault([np.float64([*right, np.inf])]).startswith("dtype")
    assert verdict.fault([np.float32([right])]).startswith("shape")
    assert verdict.fault([]).startswith("count")


def test_roundings_excuse_what_they_explain_only():
    nodes = [helper.make_node("Sin", ["x"], ["s"]), helper.make_node("Floor", ["s"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph(nodes, "step", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    verdict = judge(model, {"x": np.float32([np.pi / 2, 0.5])})
    assert verdict.fault([np.float32([verdict.results[0][0] - 1, 0])]) == "unstable"
    assert verdict.fault([np.float32([verdict.results[0][0], 1])]).startswith("value")


def test_roundings_are_seen_through_sequences():
    """The inverse hyperbolic tangent of what is nearly one: a rounding of that is thousands of its own."""
    steps = [("Erf", ["x"], "e"), ("Atanh", ["e"], "a"), ("SequenceConstruct", ["a", "a"], "s")]
    nodes = [helper.make_node(kind, inputs, [output]) for kind, inputs, output in steps]
    nodes.append(helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [n]) for name, n in (("x", 1), ("y", 2))]
    graph = helper.make_graph(nodes, "sequence", ends[:1], ends[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    verdict = judge(proto, {"x": np.array([-2.79], "float32")})
    assert not isinstance(verdict, str)
    (right,) = verdict.results
    assert verdict.fault([right + np.float32(4e-4)]) == "unstable"
    assert verdict.fault([right + np.float32(0.5)]).startswith("value")


def test_the_judges_say_why_nobody_knows():
    assert "onnxruntime" in judge(model_of("Gelu"), {"x": np.zeros(3, "float32")})
    assert difference([np.array([1])], [np.array([2])], 1.0, 1e9) is not None, "integers are exact"


def test_onnx_runtime_judges_alone_what_the_other_lacks():
    """DequantizeLinear of opset 13, in the middle of a model."""
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["f"]), helper.make_node("Exp", ["f"], ["y"])]
    q = helper.make_tensor_value_info("q", TensorProto.INT8, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph(nodes, "bytes", [q], [y], [helper.make_tensor("s", TensorProto.FLOAT, [], [0.5])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=10)
    verdict = judge(model, {"q": np.int8([2, -4])})
    assert verdict.fault([np.exp(np.float32([1, -2]))]) is None
    assert verdict.fault([np.exp(np.float32([1, -2.1]))]).startswith("value")


def test_powers_of_integers_are_left_open():
    """Beside an operator that the other judge lacks, ONNX Runtime would say alone what their sums are."""
    node = helper.make_node("ReduceLogSumExp", ["x"], ["y"])
    ends = [helper.make_tensor_value_info(name, TensorProto.INT32, None) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "sums", ends[:1], ends[1:]))
    assert undefined(model, {"x": np.int32([-1, -3]), "y": np.int32(-1)})


@pytest.mark.parametrize(("number", "open_"), [(-(2**31), True), (5, False)])
@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceL1"])
def test_sums_that_overflow_are_left_open(kind, number, open_):
    ends = [helper.make_tensor_value_info(name, TensorProto.INT32, None) for name in "xy"]
    model = helper.make_model(helper.make_graph([helper.make_node(kind, ["x"], ["y"])], "sums", ends[:1], ends[1:]))
    assert undefined(model, {"x": np.int32([-2, -3, number]), "y": np.int32(0)}) == open_


@pytest.mark.parametrize(
    ("gaps", "padding", "open_"), [(2, "SAME_LOWER", True), (1, "SAME_LOWER", False), (2, "VALID", False)]
)
def test_pads_of_pools_with_gaps_are_left_open(gaps, padding, open_):
    pool = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3], dilations=[gaps], auto_pad=padding)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    model = helper.make_model(helper.make_graph([pool], "pool", ends[:1], ends[1:]))
    assert undefined(model, {"x": np.zeros((1, 1, 9), "float32"), "y": np.zeros((1, 1, 9), "float32")}) == open_


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_interpolation_among_infinities_is_left_open(mode):
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 1, n]) for name, n in (("x", 2), ("y", 4))]
    scale = [helper.make_tensor("s", TensorProto.FLOAT, [4], [1, 1, 1, 2])]
    model = helper.make_model(
        helper.make_graph([node], "grown", ends[:1], ends[1:], scale),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=10,
    )  # fmt: skip
    assert isinstance(judge(model, {"x": np.float32([[[[1, 2]]]])}), Judgement)
    verdict = judge(model, {"x": np.float32([[[[1, np.inf]]]])})
    assert str(verdict).startswith("undefined") == (mode == "linear")


@pytest.mark.parametrize(("base", "exponent", "open_"), [(9, 2.5, False), (8166, 2.5, True), (-2, 0.5, True)])
def test_a_fractional_power_that_is_no_integer_is_left_open(base, exponent, open_):
    ends = [helper.make_tensor_value_info(name, TensorProto.INT32, [1]) for name in "xy"]
    power = [helper.make_tensor("p", TensorProto.FLOAT, [1], [exponent])]
    graph = helper.make_graph([helper.make_node("Pow", ["x", "p"], ["y"])], "power", ends[:1], ends[1:], power)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    verdict = judge(model, {"x": np.array([base], "int32")})
    assert str(verdict).startswith("undefined") == open_


@pytest.mark.parametrize(("value", "bias", "open_"), [(3, 1.0, False), (3, np.nan, True), (2**62, 2.0**62, True)])
def test_an_integer_that_shrinks_by_what_it_cannot_hold_is_left_open(value, bias, open_):
    ends = [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Shrink", ["x"], ["y"], bias=bias)], "less", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    verdict = judge(model, {"x": np.array([value], "int64")})
    assert str(verdict).startswith("undefined") == open_


@pytest.mark.parametrize("indices", [[], ["i"]])
def test_where_the_largest_is_beside_a_nan_is_left_open(indices):
    kinds = {"x": (TensorProto.FLOAT, 3), "y": (TensorProto.FLOAT, 2), "i": (TensorProto.INT64, 2)}
    x, *ends = (helper.make_tensor_value_info(n, kinds[n][0], [1, 1, kinds[n][1]]) for n in ("x", "y", *indices))
    node = helper.make_node("MaxPool", ["x"], ["y", *indices], kernel_shape=[2])
    model = helper.make_model(
        helper.make_graph([node], "pooled", [x], ends), opset_imports=[helper.make_opsetid("", 17)], ir_version=10
    )
    assert isinstance(judge(model, {"x": np.float32([[[1, 2, 3]]])}), Judgement)
    verdict = judge(model, {"x": np.float32([[[1, np.nan, 3]]])})
    assert str(verdict).startswith("undefined")
