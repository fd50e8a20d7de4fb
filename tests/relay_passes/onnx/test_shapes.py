"""Static shapes for inputs: taken over, checked, refused."""

import resource

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ModelError, ShapeError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.bindings import static_shape

from ..models import model, node, value


def add(first, second):
    return model([node("Add", ["x", "z"], ["y"])], [value("x", first), value("z", second)], ["y"])


def shapes_of(mod):
    return [static_shape(param.ty) for param in mod["main"].params]


def test_a_symbol_fixed_by_one_input_is_taken_over_by_another():
    assert shapes_of(load_model(add(["n", 3], ["n", 3]), {"x": (2, 3)})) == [(2, 3), (2, 3)]


def test_static_models_need_no_shapes():
    assert shapes_of(load_model(add([2, 3], [1, 3]))) == [(2, 3), (1, 3)]


@pytest.mark.parametrize("dims", [["n", 3], [None, 3], [-1, 3], [0, 3]], ids=str)
def test_an_open_dimension_is_refused_with_the_remedy(dims):
    with pytest.raises(ShapeError, match=r"input 'x' .*shapes=\{'x': \(1, 3\)\} or --shape x=1,3"):
        load_model(add(dims, [1, 3]))


def test_an_input_without_a_rank_is_refused_and_can_be_given():
    with pytest.raises(ShapeError, match="--shape x=1,3,224,224"):
        load_model(add(None, [3]))
    assert shapes_of(load_model(add(None, [3]), {"x": (2, 3)})) == [(2, 3), (3,)]


@pytest.mark.parametrize("shapes", [{"n": 2}, {"n": (2,)}, {"n": np.int64(2)}, {"n": 2, "z": (2, 3)}])
def test_a_symbolic_dimension_has_a_name(shapes):
    assert shapes_of(load_model(add(["n", 3], ["n", 3]), shapes)) == [(2, 3), (2, 3)]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"q": (1,)}, "'q', which is no input; the inputs are x, z"),
        ({"x": (2, 3, 4)}, "of rank 2"),
        ({"x": (2, 4)}, "dimension 3 cannot become 4"),
        ({"x": (-1, 3)}, "sizes are from 0"),
        ({"x": (2**40, 3)}, "sizes are from 0"),
        ({"x": ("a", 3)}, "give integers"),
        ({"x": 3}, "give integers"),
        ({"n": 2, "z": (4, 3)}, "'n' is 2 in shapes and 4 in input 'z'"),
        ({"m": 2}, "'m', which is no input; the inputs are x, z; its symbolic dimensions are n"),
        ({"n": -1}, "sizes are from 0"),
        ({"n": (2, 3)}, "give one integer"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ShapeError, match=message):
        load_model(add(["n", 3], ["n", 3]), shapes)


def test_a_name_for_two_sizes_means_nothing():
    """Exporters name the axes of all inputs alike."""
    dims = {"x": ["rows", "columns"], "z": ["columns", "rows"]}
    proto = model(
        [node("MatMul", ["x", "z"], ["y"])], [value(name, shape) for name, shape in dims.items()], ["y"]
    )  # fmt: skip
    assert shapes_of(load_model(proto, {"x": (2, 3), "z": (3, 5)})) == [(2, 3), (3, 5)]
    with pytest.raises(ModelError, match=r"Add .* Incompatible dimensions"):
        load_model(add(["n", 3], ["n", 3]), {"x": (2, 3), "z": (4, 3)})


def test_a_name_for_two_sizes_says_nothing_of_a_third_input():
    nodes = [node("Concat", ["x", "z"], ["a"], axis=0), node("Add", ["a", "w"], ["y"])]
    proto = model(nodes, [value(name, ["n", 3]) for name in "xzw"], ["y"])
    given = {"x": (2, 3), "z": (4, 3)}
    with pytest.raises(ShapeError, match=r"'n' is 2 in input 'x' and 4 in input 'z'; .* or a shape to each input"):
        load_model(proto, given)
    assert shapes_of(load_model(proto, given | {"w": (6, 3)})) == [(2, 3), (4, 3), (6, 3)]


def test_inputs_that_are_no_numeric_tensors():
    text = model(
        [node("Identity", ["x"], ["y"])], [value("x", [1], TensorProto.STRING)], [value("y", [1], TensorProto.STRING)]
    )
    with pytest.raises(ModelError, match="holds strings"):
        load_model(text)
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [1]))
    graph = [node("SequenceLength", ["x"], ["y"])]
    sequence = model(graph, [helper.make_value_info("x", kind)], [value("y", [], TensorProto.INT64)])
    with pytest.raises(ModelError, match="sequence_type"):
        load_model(sequence)


def test_constant_strings_are_refused_by_name():
    nodes = [node("Constant", [], ["c"], value_strings=["a", "b"]), node("Identity", ["c"], ["y"])]
    with pytest.raises(ModelError, match=r"the output 'y' has STRING values.*keep the part .* without strings"):
        load_model(model(nodes, [], [value("y", [2], TensorProto.STRING)]))


def test_an_input_that_cannot_be_addressed_is_refused():
    """Before onnx's shape inference, which would count the elements of some operators."""
    nodes = [node("NegativeLogLikelihoodLoss", ["x", "target"], ["y"])]
    inputs = [value("x", [1, 1]), value("target", [2**40], TensorProto.INT64)]
    with pytest.raises(ShapeError, match=r"'target' has the shape \(1099511627776\): 1099511627776 elements"):
        load_model(model(nodes, inputs, ["y"]))


def test_vectors_of_a_gigabyte_are_imported_as_fast_as_small_ones():
    """Onnx's propagation of data would list each element: more than this machine's memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert shapes_of(load_model(add([1 << 28], [1 << 28]))) == [(1 << 28,)] * 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # kilobytes


@pytest.mark.parametrize(("kind", "dims"), [(TensorProto.DOUBLE, [2]), (TensorProto.INT64, [1, 2])])
@pytest.mark.parametrize("op", ["Expand", "Reshape", "Tile", "ConstantOfShape"])
def test_what_cannot_be_a_shape_is_refused(op, kind, dims):
    """A damaged file may say so; what its tensor holds is known only when the model runs."""
    inputs = ["s"] if op == "ConstantOfShape" else ["x", "s"]
    proto = model([node(op, inputs, ["y"])], [value(n, d, k) for n, d, k in (("x", [2], 1), ("s", dims, kind))], ["y"])
    with pytest.raises(ModelError, match=f"{op} 'y'|Type Error|type|Shape"):
        load_model(proto)


def test_axes_that_are_no_integers_are_refused():
    proto = model([node("Unsqueeze", ["x", "x"], ["y"])], [value("x", [3])], ["y"])
    with pytest.raises(ModelError):
        load_model(proto)
