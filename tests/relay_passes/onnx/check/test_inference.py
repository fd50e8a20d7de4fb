"""Where onnx's shape inference ends the process, or never ends: slices of impossible axes, steps, long vectors, types
that nobody knows.
"""

import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.forking import python
from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.onnx.check.inference import infer_node
from tvm_rammer.relay_passes.onnx.infer import infer_types, static_dims

from ...models import model, node, tensor, value

IMPOSSIBLE = {
    "AveragePool": ({"kernel_shape": [7, 7]}, {}),
    "Conv": ({}, {"w": np.zeros((1, 3, 7, 7), "float32")}),
    "ConvTranspose": ({"pads": [9, 9, 9, 9]}, {"w": np.zeros((3, 1, 2, 2), "float32")}),
    "LpPool": ({"kernel_shape": [7, 7]}, {}),
    "MaxPool": ({"kernel_shape": [7, 7]}, {}),
    "Pad": ({}, {"p": np.array([0, 0, -5, -5, 0, 0, -5, -5])}),
    "RoiAlign": ({"output_height": -2}, {"rois": np.zeros((1, 4), "float32"), "images": np.array([0])}),
    "TopK": ({}, {"k": np.array([-3])}),
}


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_a_slice_of_less_than_nothing(kind, typed):
    """A window larger than its image, as of a model that is given too small an input, and a slice of what is left."""
    attributes, given = IMPOSSIBLE[kind]
    given = given | {name: np.array([n]) for name, n in (("begin", 0), ("end", 2), ("axis", 3))}
    inputs = ["x", *list(given)[:-3]]
    nodes = [
        node(kind, inputs, ["m", "i"] if kind == "TopK" else ["m"], **attributes),
        node("Slice", ["m", "begin", "end", "axis"], ["y"]),
    ]
    output = value("y", [1, 3, 3, 2]) if typed else helper.make_empty_tensor_value_info("y")
    proto = model(nodes, [value("x", [1, 3, 3, 3])], [output], [tensor(n, a) for n, a in given.items()], opset=18)
    with pytest.raises(ModelError, match=f"{kind} 'm'"):
        tvm_rammer.compile(proto, cache=False)


FAR = [(4, -(2**63), -(2**63)), (0, 2**63 - 1, 2**63 - 1), (0, 5, 2**32), (1, 5, 2**31), (3, -100, -(2**32)), (3, 1, 1)]


@pytest.mark.parametrize(("begin", "end", "step"), FAR)
def test_steps_beyond_32_bits(begin, end, step):
    constants = {"b": begin, "e": end, "a": 0, "s": step}
    proto = model(
        [node("Slice", ["x", *constants], ["y"])], [value("x", [5])], ["y"],
        [tensor(name, np.array([number])) for name, number in constants.items()],
    )  # fmt: skip
    x = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(tvm_rammer.compile(proto, cache=False)(x), x[begin:end:step])


@pytest.mark.parametrize("last", ["Cast", "Mul", "Gather"])
def test_a_vector_whose_length_follows_from_others(last):
    """Its elements are no sizes: onnx would write down each of 2**31."""
    far = tensor("far", np.array([-(2**31)]))
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Size", ["s"], ["rank"]),
        node("Unsqueeze", ["rank", "zero"], ["one"]),
        node("Sub", ["one", "far"], ["count"]),
        node("ConstantOfShape", ["count"], ["ones"], value=tensor("one", np.array([1]))),
        node(last, ["ones", "zero"][: 1 + (last != "Cast")], ["y"], **({"to": 7} if last == "Cast" else {})),
    ]
    with pytest.raises(ModelError, match="2147483650"):
        load_model(model(nodes, [value("x", [2, 3])], ["y"], [far, tensor("zero", np.array([0]))]))


@pytest.mark.parametrize("reader", ["Reshape", "Expand", "Tile", "ConstantOfShape"])
@pytest.mark.parametrize(
    ("count", "message"),
    [(2**31, "ConstantOfShape 'ones' has 2147483648 elements"), (5_000_000, "a shape of 5000001 extents")],
)
def test_a_shape_of_very_many_extents(count, message, reader):
    one = tensor("one", np.array([1]))
    nodes = [
        node("ConstantOfShape", ["count"], ["ones"], value=one),
        node("Concat", ["rows", "ones"], ["shape"], axis=0),
        node(reader, ["shape"] if reader == "ConstantOfShape" else ["x", "shape"], ["y"]),
    ]
    constants = [tensor("count", np.array([count])), tensor("rows", np.array([6]))]
    with pytest.raises(ModelError, match=message):
        load_model(model(nodes, [value("x", [2, 3])], ["y"], constants))


def test_types_that_nobody_knows():
    """Of operators of other domains; each operator of ONNX reads them once."""
    command = [python(), "-m", "tests.relay_passes.onnx.check.unknown_types"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "all"), done.stderr[-2000:]


@pytest.mark.parametrize("opset", [2, 4])
def test_the_learned_operators_of_a_version_are_inferred_as_such(opset):
    keys = {"keys_floats": [1.0, 2.0]} if opset == 2 else {"keys_tensor": tensor("k", np.array([1.0, 2.0], "float32"))}
    values = {"values_int64s": [5, 7]} if opset == 2 else {"values_tensor": tensor("v", np.array([5, 7]))}
    nodes = [node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **keys, **values)]
    proto = model(nodes, [value("x", [2, 3])], [helper.make_empty_tensor_value_info("y")])
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", opset))
    kind = infer_types(proto)["y"]
    assert (kind.elem_type, static_dims(kind)) == (TensorProto.INT64, [2, 3])


@pytest.mark.parametrize("typed", [True, False])
def test_an_operator_after_one_whose_types_nobody_infers(typed):
    nodes = [
        node("Imputer", ["x"], ["i"], domain="ai.onnx.ml", imputed_value_floats=[1.0]),
        node("Softsign", ["i"], ["s"]),
        node("EyeLike", ["s"], ["y"], dtype=1),
    ]
    output = value("y", [2, 2]) if typed else helper.make_empty_tensor_value_info("y")
    proto = model(nodes, [value("x", [2, 2])], [output], opset=22)
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    module = tvm_rammer.compile(proto, cache=False)
    np.testing.assert_array_equal(module(np.ones((2, 2), "float32")), np.eye(2, dtype="float32"))


@pytest.mark.parametrize("known", [True, False], ids=["of a size that is known", "of any size"])
@pytest.mark.parametrize("reader", ["Shape", "Size"])
@pytest.mark.parametrize("kind", ["AveragePool", "LpPool", "MaxPool"])
def test_windows_behind_an_image(kind, reader, known):
    """onnx counts them where ceil_mode asks for one more: a window of one of two numbers in steps of three."""
    pool = node(kind, ["x"], ["p"], kernel_shape=[1, 2], strides=[3, 2], pads=[0, 0, 0, 0], ceil_mode=1)
    image = value("x", [1, 1, 2 if known else "rows", 5])
    proto = model([pool, node(reader, ["p"], ["y"])], [image], ["y", "p"], opset=18)
    counted, windows = tvm_rammer.compile(proto, cache=False)(np.ones((1, 1, 2, 5), "float32"))
    assert windows.shape == (1, 1, 1, 3)
    np.testing.assert_array_equal(counted, windows.shape if reader == "Shape" else windows.size)
    if known:
        assert static_dims(infer_types(proto)["p"]) == [1, 1, 1, 3]


def test_types_of_a_pool_alone():
    (inferred,) = infer_node(
        node("MaxPool", ["x"], ["y"], kernel_shape=[1], strides=[3], ceil_mode=1),
        {"x": helper.make_tensor_type_proto(TensorProto.FLOAT, [1, 1, 2]).tensor_type}, {}, 18,
    ).values()  # fmt: skip
    assert [dim.dim_value for dim in inferred.tensor_type.shape.dim] == [1, 1, 1]
