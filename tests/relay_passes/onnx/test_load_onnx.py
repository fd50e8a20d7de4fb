"""Import traps: what exporters write and TVM's frontend alone would refuse or misread."""

import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ..models import by_onnxruntime, model, node, op_names, random, tensor, value


def agree(run, proto, shapes=None, **inputs):
    """Load and run a model; compare with ONNX Runtime. Returns the module."""
    mod = load_model(proto, shapes)
    assert [p.name for p in mod["main"].params] == [i.name for i in proto.graph.input if i.name in inputs]
    got = run(mod, *inputs.values())
    expected = by_onnxruntime(proto, **inputs)
    for left, right in zip(got if isinstance(got, list) else [got], expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
    return mod


def flatten_by_shape(batch):
    """Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as torch exports a view."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axes"], ["u"]),
        node("Concat", ["u", "minus"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
    ]
    constants = [tensor("zero", np.int64(0)), tensor("axes", np.array([0])), tensor("minus", np.array([-1]))]
    return model(nodes, [value("x", [batch, 2, 3])], ["y"], constants)


def test_a_shape_computed_by_nodes_is_folded(run):
    mod = agree(run, flatten_by_shape("batch"), {"x": (4, 2, 3)}, x=random(4, 2, 3))
    assert op_names(mod) == ["reshape"]


def test_dynamic_pad(run):
    nodes = [
        node("Constant", [], ["half"], value_ints=[0, 1]),
        node("Concat", ["half", "half"], ["pads"], axis=0),
        node("Pad", ["x", "pads"], ["y"]),
    ]
    agree(run, model(nodes, [value("x", [2, 3])], ["y"]), x=random(2, 3))


def test_initializers_listed_as_inputs(run):
    proto = model([node("Add", ["x", "w"], ["y"])], [value("x", [3]), value("w", [3])], ["y"], [tensor("w", random(3))])
    mod = agree(run, proto, x=random(3, seed=1))
    assert len(mod["main"].params) == 1


def test_batch_norm_after_a_convolution_with_bias(run):
    statistics = {n: np.abs(random(4, seed=i)) + 0.5 for i, n in enumerate(["g", "b", "m", "v"])}
    nodes = [node("Conv", ["x", "w", "c"], ["h"]), node("BatchNormalization", ["h", "g", "b", "m", "v"], ["y"])]
    constants = [tensor("w", random(4, 2, 3, 3)), tensor("c", random(4)), *map(tensor, statistics, statistics.values())]
    agree(run, model(nodes, [value("x", [1, 2, 5, 5])], ["y"], constants), x=random(1, 2, 5, 5))


def branches(condition):
    outer = node("Relu", ["x"], ["h"])
    then = helper.make_graph(
        [node("Mul", ["h", "two"], ["t"])], "then", [], [value("t", None)], [tensor("two", random(1))]
    )
    other = helper.make_graph([node("Identity", ["h"], ["e"])], "else", [], [value("e", None)])
    return [outer, condition, node("If", ["c"], ["y"], then_branch=then, else_branch=other)]


@pytest.mark.parametrize("size", [3, 4])
def test_if_with_a_known_condition_is_inlined(run, size):
    condition = node("Equal", ["n", "four"], ["c"])
    nodes = [node("Size", ["x"], ["n"]), *branches(condition)]
    mod = agree(run, model(nodes, [value("x", [size])], ["y"], [tensor("four", np.int64(4))]), x=random(size))
    assert ("multiply" in op_names(mod)) == (size == 4)


def test_outputs_that_are_inputs_and_repeated_outputs(run):
    proto = model([node("Relu", ["x"], ["y"])], [value("x", [3]), value("unused", [2])], ["y", "x", "y"])
    mod = load_model(proto)
    x = random(3)
    first, second, third = run(mod, x, random(2))
    np.testing.assert_array_equal(second, x)
    np.testing.assert_array_equal(first, third)


def test_an_output_that_is_a_constant(run):
    nodes = [node("Shape", ["x"], ["s"]), node("Relu", ["x"], ["y"])]
    agree(run, model(nodes, [value("x", [3, 2])], ["y", value("s", None, TensorProto.INT64)]), x=random(3, 2))


def test_scalar_and_int64_inputs(run):
    nodes = [node("Cast", ["n"], ["f"], to=TensorProto.FLOAT), node("Mul", ["f", "s"], ["y"])]
    proto = model(nodes, [value("n", [3], TensorProto.INT64), value("s", [])], ["y"])
    agree(run, proto, n=np.array([1, 2, 3]), s=np.array(0.5, "float32"))


def test_names_with_odd_characters_are_kept(run):
    proto = model([node("Relu", ["input.1/a:0"], ["y"])], [value("input.1/a:0", [2])], ["y"])
    agree(run, proto, **{"input.1/a:0": random(2)})


@pytest.mark.parametrize("opset", range(7, 22))
def test_opsets(run, opset):
    new = opset >= 13
    nodes = [
        node("Conv", ["x", "w"], ["h"]),
        node("Squeeze", ["h", "axes"], ["q"]) if new else node("Squeeze", ["h"], ["q"], axes=[3]),
        node("Softmax", ["q"], ["p"], axis=1),
        node("Slice", ["p", "start", "end"], ["y"])
        if opset >= 10
        else node("Slice", ["p"], ["y"], starts=[0], ends=[1]),
    ]
    used = ([tensor("axes", np.array([3]))] if new else []) + (
        [tensor("start", np.array([0])), tensor("end", np.array([1]))] if opset >= 10 else []
    )
    proto = model(nodes, [value("x", [2, 2, 4, 1])], ["y"], [tensor("w", random(3, 2, 2, 1)), *used], opset)
    agree(run, proto, x=random(2, 2, 4, 1))


def test_broadcast_attributes_of_opset_6(run):
    proto = model(
        [node("Add", ["x", "b"], ["y"], axis=1, broadcast=1)],
        [value("x", [2, 3, 4])], ["y"], [tensor("b", random(3))], opset=6, ir=4,
    )  # fmt: skip
    x = random(2, 3, 4)
    mod = load_model(proto)
    np.testing.assert_allclose(run(mod, x), x + random(3)[:, None], rtol=1e-6)


def test_dropout_and_identity_vanish():
    nodes = [
        node("Identity", ["x"], ["a"]), node("Dropout", ["a"], ["b"]), node("Relu", ["b"], ["c"]),
        node("Identity", ["c"], ["y"]), node("Exp", ["x"], ["unused"]),
    ]  # fmt: skip
    mod = load_model(model(nodes, [value("x", [3])], ["y"]))
    assert op_names(mod) == ["nn.relu"]


def test_random_nodes_are_not_folded():
    nodes = [node("RandomNormal", [], ["r"], shape=[3]), node("Add", ["x", "r"], ["y"])]
    with pytest.raises(UnsupportedOperatorError, match="RandomNormal"):
        load_model(model(nodes, [value("x", [3])], ["y"]))


def test_large_weights_of_constant_of_shape_are_folded():
    nodes = [node("ConstantOfShape", ["s"], ["w"]), node("MatMul", ["x", "w"], ["y"])]
    mod = load_model(model(nodes, [value("x", [2, 64])], ["y"], [tensor("s", np.array([64, 64]))]))
    assert op_names(mod) == ["matmul"]


def test_operators_that_onnx_defines_by_others_are_expanded(run):
    agree(run, model([node("Celu", ["x"], ["y"], alpha=2.0)], [value("x", [5])], ["y"]), x=random(5))


def test_the_callers_model_is_not_changed():
    proto = flatten_by_shape("batch")
    before = proto.SerializeToString()
    load_model(proto, {"x": (4, 2, 3)})
    assert proto.SerializeToString() == before


def test_all_unsupported_operators_are_listed_with_counts():
    nodes = [
        node("Odd", ["x"], ["d"], name="volume", domain="mine"),
        node("Odd", ["x"], ["d2"], domain="mine"),
        node("Strange", ["x"], ["z"], domain="mine"),
    ]
    proto = model(nodes, [value("x", [3, 1, 1])], ["d", "d2", "z"])
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    with pytest.raises(UnsupportedOperatorError) as caught:
        load_model(proto)
    text = str(caught.value)
    assert "mine.Odd (2 x, e.g. 'volume')" in text and "mine.Strange (1 x" in text


@pytest.mark.parametrize("of_file", ["", "ai.onnx"])
@pytest.mark.parametrize("of_node", ["", "ai.onnx"])
def test_the_long_name_of_the_domain_of_onnx(of_file, of_node, run):
    nodes = [node("Constant", [], ["c"], value=tensor("c", random(3))), node("Mul", ["x", "c"], ["y"])]
    for each in nodes:
        each.domain = of_node
    proto = model(nodes, [value("x", [2, 3])], ["y"])
    proto.opset_import[0].domain = of_file
    agree(run, proto, x=random(2, 3))


def test_a_custom_domain_is_not_mistaken_for_onnx():
    proto = model([node("Relu", ["x"], ["y"], domain="mine")], [value("x", [3])], ["y"])
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    with pytest.raises(UnsupportedOperatorError, match=r"mine\.Relu"):
        load_model(proto)


@pytest.mark.parametrize(
    ("kind", "sizes", "weight", "attributes"),
    [
        ("Conv", [4], [2, 1, 7], {}),
        ("Conv", [6, 6], [2, 1, 7, 3], {}),  # whose result would have no elements
        ("ConvTranspose", [2], [1, 2, 1], {"pads": [2, 2]}),
        ("MaxPool", [4], None, {"kernel_shape": [7]}),
        ("AveragePool", [4, 4], None, {"kernel_shape": [7, 1]}),
        ("LpPool", [4], None, {"kernel_shape": [7]}),
    ],
)
def test_windows_that_are_larger_than_the_image_are_named(kind, sizes, weight, attributes):
    """They came from code generation, or as a failure to allocate in the first call."""
    weights = [] if weight is None else [tensor("w", np.ones(weight, "float32"))]
    proto = model([node(kind, ["x", "w"][: 1 + len(weights)], ["y"], name="short", **attributes)],
                  [value("x", [1, 1, *sizes])], ["y"], weights)  # fmt: skip
    with pytest.raises(ModelError, match=f"{kind} 'short'.*too large for what it reads"):
        load_model(proto)


def test_quantised_operators_that_nobody_has_are_refused():
    nodes = [node("QLinearReduceMean", ["x", "s", "z", "s", "z"], ["y"], domain="com.microsoft")]
    constants = [tensor("s", np.float32(0.1)), tensor("z", np.uint8(0))]
    proto = model(nodes, [value("x", [1, 4], TensorProto.UINT8)], ["y"], constants)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedOperatorError, match=r"com\.microsoft\.QLinearReduceMean"):
        load_model(proto)


def test_nodes_in_any_order(run):
    """ONNX Runtime takes them, if not within a branch: that reads what is made behind it, too."""
    inner = [node("Exp", ["made"], ["early"]), node("Neg", ["early"], ["y"])]
    branches = {
        name: helper.make_graph(nodes, name, [], [value("y", [3])])
        for name, nodes in (("then_branch", inner), ("else_branch", [node("Identity", ["made"], ["y"])]))
    }
    nodes = [
        node("Add", ["z", "x"], ["out"]),
        node("If", ["c"], ["z"], **branches),
        node("Abs", ["x"], ["made"]),
        node("Greater", ["most", "limit"], ["c"]),
        node("ReduceMax", ["x"], ["most"], keepdims=0),
    ]
    proto = model(nodes, [value("x", [3])], [value("out", [3])], [tensor("limit", np.float32(0.5))])
    for x in (np.float32([1, 2, -3]), np.float32([0.1, -2, 0.2])):
        agree(run, proto, x=x)


def test_what_the_frontend_refuses_has_a_short_message():
    nodes = [node("Reshape", ["x", "s"], ["y"])]
    with pytest.raises(ModelError) as caught:
        load_model(model(nodes, [value("x", [6])], ["y"], [tensor("s", np.array([4, 2]))]))
    assert len(str(caught.value)) < 600 and caught.value.__cause__ is not None


def test_loading_warns_of_nothing(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(flatten_by_shape(2))
    assert capsys.readouterr().out == ""


def test_what_the_frontend_refuses_is_an_error_and_prints_nothing(capfd):
    shape = tensor("shape", np.array([3, 5]))
    proto = model([node("Reshape", ["x", "shape"], ["y"], name="r")], [value("x", [4])], ["y"], [shape])
    with pytest.raises(UnsupportedOperatorError, match="frontend cannot import Reshape 'r'"):
        load_model(proto)
    assert capfd.readouterr().out == ""
