"""Indices in the data: inside of what they index, or an error that names the operator; never another memory."""

import numpy as np
import pytest
import tvm_ffi
from onnx import TensorProto
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.bindings import is_call
from tvm_rammer.relay_passes.passes.indices import CheckIndices

from ...models import by_onnxruntime, calls, model, node, op_names, random, tensor, value

BAD = [10**9, 2**31, 2**63 - 1, -(2**63), -11, 10]
"""For a dimension of 10: far outside, and one past each end."""


def index(name, *shape, elem=TensorProto.INT64):
    return value(name, shape, elem)


def cases():
    """Models whose input `i` indexes ten rows, and right indices for it."""
    x, w = value("x", [10, 4]), tensor("w", random(10, 4))
    updates = tensor("u", random(3, 4))
    yield "Gather", model([node("Gather", ["w", "i"], ["y"])], [index("i", 3)], ["y"], [w]), np.array([0, 9, -1])
    yield (
        "GatherElements",
        model([node("GatherElements", ["x", "i"], ["y"])], [x, index("i", 2, 4)], ["y"]),
        np.array([[0, 9, -1, 3], [1, 2, -10, 4]]),
    )
    yield (
        "GatherND",
        model([node("GatherND", ["w", "i"], ["y"])], [index("i", 2, 1)], ["y"], [w]),
        np.array([[9], [-1]]),
    )
    yield (
        "ScatterElements",
        model([node("ScatterElements", ["w", "i", "u"], ["y"])], [index("i", 3, 4)], ["y"], [w, updates], opset=16),
        np.array([[0, 1, 2, 3], [4, 5, 6, -1], [7, 8, 9, 5]]),
    )
    yield (
        "ScatterND",
        model([node("ScatterND", ["w", "i", "u"], ["y"])], [index("i", 3, 1)], ["y"], [w, updates], opset=16),
        np.array([[0], [9], [-2]]),
    )


CASES = {name: (proto, good) for name, proto, good in cases()}


@pytest.fixture(scope="module")
def modules():
    return {name: tvm_rammer.compile(proto) for name, (proto, _) in CASES.items()}


def inputs_of(name, indices):
    named = {i.name for i in CASES[name][0].graph.input}
    return {"i": indices} | ({"x": random(10, 4, seed=1)} if "x" in named else {})


@pytest.mark.parametrize("name", CASES)
def test_right_indices_negative_ones_too(modules, name):
    given = inputs_of(name, CASES[name][1])
    (expected,) = by_onnxruntime(CASES[name][0], **given)
    np.testing.assert_array_equal(modules[name](**given), expected)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", CASES)
def test_an_index_outside_is_an_error_that_names_the_operator(modules, name, bad):
    indices = CASES[name][1].copy()
    indices.reshape(-1)[-1] = bad
    with pytest.raises(ModelError, match=f"{name} got an index outside of the 10 that it indexes; mend the data of"):
        modules[name](**inputs_of(name, indices))
    given = inputs_of(name, CASES[name][1])
    (expected,) = by_onnxruntime(CASES[name][0], **given)
    np.testing.assert_array_equal(modules[name](**given), expected)  # and the module goes on


def test_each_coordinate_has_its_own_bounds():
    proto = model([node("GatherND", ["x", "i"], ["y"])], [value("x", [3, 50]), index("i", 1, 2)], ["y"])
    module, x = tvm_rammer.compile(proto), random(3, 50)
    np.testing.assert_array_equal(module(x, np.array([[2, 49]])), x[2, 49:])
    with pytest.raises(ModelError, match="outside of the 3 x 50 that"):
        module(x, np.array([[3, 49]]))


def test_constant_indices_are_checked_when_the_model_is_compiled():
    nodes = [node("Gather", ["x", "i"], ["y"])]
    proto = model(nodes, [value("x", [10, 4])], [value("y", [2, 4])], [tensor("i", np.array([1, 99]))])
    with pytest.raises(ModelError, match=r"index|out of"):
        tvm_rammer.compile(proto)


def test_a_model_without_such_indices_is_left_alone():
    mod = load_model(model([node("Relu", ["x"], ["y"])], [value("x", [3])], ["y"]))
    assert tvm_ffi.structural_equal(CheckIndices()(mod), mod)


def test_indices_are_clipped_once_for_all_that_use_them():
    nodes = [node("Gather", ["w", "i"], ["a"]), node("Gather", ["v", "i"], ["b"]), node("Add", ["a", "b"], ["y"])]
    tensors = [tensor("w", random(10, 4)), tensor("v", random(10, 4, seed=1))]
    checked = CheckIndices()(load_model(model(nodes, [index("i", 3)], ["y"], tensors)))
    assert len([name for name in op_names(checked) if name.startswith("index_outside")]) <= 2


def test_who_comes_second_reads_by_clipped_indices_too():
    """The first error is told at the end; until then a wild index must not have been used by anybody."""
    nodes = [node("Gather", ["w", "i"], ["a"]), node("Gather", ["v", "i"], ["b"]), node("Add", ["a", "b"], ["y"])]
    tensors = [tensor("w", random(10, 4)), tensor("v", random(10, 4, seed=1))]
    checked = CheckIndices()(load_model(model(nodes, [index("i", 3)], ["y"], tensors)))
    takes = [call for call in calls(checked) if is_call(call, ["relax.take"]) and call.attrs.mode == "fast"]
    assert len(takes) == 2 and all(call.args[1].name.endswith("_inside") for call in takes)


def test_an_index_in_a_function_that_others_call_is_reported():
    builder = relax.BlockBuilder()
    x, i = relax.Var("x", relax.TensorType((10, 4), "float32")), relax.Var("i", relax.TensorType((3,), "int64"))
    with builder.function("rows", [x, i], private=True):
        with builder.dataflow():
            out = builder.emit_output(relax.op.take(x, i, axis=0))
        builder.emit_func_output(out)
    rows = builder.get().get_global_var("rows")
    a, k = relax.Var("a", relax.TensorType((10, 4), "float32")), relax.Var("k", relax.TensorType((3,), "int64"))
    with builder.function("main", [a, k]):
        with builder.dataflow():
            double = builder.emit(relax.op.add(a, a))
            taken = builder.emit(relax.Call(rows, [double, k]))
            once = builder.emit(relax.op.negative(taken))
            out = builder.emit_output(relax.op.add(once, taken))
        builder.emit_func_output(out)
    mod = builder.get()
    checked = CheckIndices()(mod)
    assert not checked["main"].is_pure and not checked["rows"].is_pure
    kinds = [isinstance(block, relax.DataflowBlock) for block in checked["main"].body.blocks]
    assert kinds == [True, False, True]
    module = tvm_rammer.compile(mod, cache=False)
    values = random(10, 4)
    np.testing.assert_array_equal(module(values, np.array([0, 9, 1])), np.zeros((3, 4)))
    with pytest.raises(ModelError, match="Gather got an index outside of the 10"):
        module(values, np.array([0, 10, 1]))


BOOL = TensorProto.BOOL


def some_of(name, data, rows):
    """Nodes that take the rows of a tensor that the input `chosen` says: how many there are, only the data know."""
    return [node("Compress", [data, "chosen"], [name], axis=0)], value("chosen", [rows], BOOL)


def dynamic_cases():
    """Models whose input `i` indexes ten rows; only those of the indices, or of the rows, that `chosen` says."""
    for name, (proto, good) in CASES.items():
        if name == "ScatterND":  # TVM's frontend refuses it
            continue
        graph = proto.graph
        updates = [some_of("some_u", "u", 3)[0][0]] if name == "ScatterElements" else []
        choose, chosen = some_of("some_i", "i", len(good))
        nodes = [
            *choose,
            *updates,
            node(name, [graph.node[0].input[0], "some_i", *(["some_u"] if updates else [])], ["y"]),
        ]
        made = model(nodes, [*graph.input, chosen], ["y"], graph.initializer, opset=16)
        yield f"{name}, some of the indices", made, good, len(good)
        choose, chosen = some_of("some", graph.node[0].input[0], 10)
        nodes = [*choose, node(name, ["some", *graph.node[0].input[1:]], ["y"])]
        yield (
            f"{name}, some of the rows",
            model(nodes, [*graph.input, chosen], ["y"], graph.initializer, opset=16),
            good,
            10,
        )


DYNAMIC = {name: rest for name, *rest in dynamic_cases()}


@pytest.mark.parametrize("name", DYNAMIC)
def test_indices_into_sizes_that_only_the_data_know(name):
    proto, indices, count = DYNAMIC[name]
    module = tvm_rammer.compile(proto, cache=False)
    given = {i.name: random(10, 4, seed=1) for i in proto.graph.input if i.name == "x"} | {"i": indices}
    for chosen in (np.ones(count, bool), np.arange(count) % 2 == 0, np.zeros(count, bool)):
        given["chosen"] = chosen
        operator, some = name.split(", some of the ")
        if some == "rows" and not chosen.all():  # nine is outside then
            with pytest.raises(ModelError, match=f"{operator} got an index outside of what it indexes; mend the data"):
                module(**given)
            continue
        (expected,) = by_onnxruntime(proto, **given)
        np.testing.assert_array_equal(module(**given), expected)
    given["chosen"] = np.ones(count, bool)
    for bad in BAD:
        given["i"] = indices.copy()
        given["i"].reshape(-1)[0] = bad
        with pytest.raises(ModelError, match=f"{operator} got an index outside of"):
            module(**given)


def test_elements_on_axes_of_sizes_that_only_the_data_know():
    """An element beyond the other axes of what is indexed is outside, too."""
    choose, chosen = some_of("some", "x", 10)
    proto = model(
        [*choose, node("GatherElements", ["some", "i"], ["y"], axis=1)],
        [value("x", [10, 4]), index("i", 3, 4), chosen], ["y"],
    )  # fmt: skip
    module, x, indices = tvm_rammer.compile(proto, cache=False), random(10, 4), np.ones((3, 4), np.int64)
    np.testing.assert_array_equal(module(x, indices, np.arange(10) > 6), x[7:, [1] * 4])
    with pytest.raises(ModelError, match="GatherElements got an index outside of"):
        module(x, indices, np.arange(10) > 7)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_targets_of_a_loss_may_be_ignored_but_not_wrong(reduction, weighted):
    ignored = -7

    def loss(x, t, *w):
        return relax.op.nn.nll_loss(x, t, *w, reduction=reduction, ignore_index=ignored)

    x, w, targets = random(6, 5), np.abs(random(5, seed=1)), np.array([0, 4, ignored, 2, ignored, 1])
    given = [x, targets, *([w] if weighted else [])]
    shapes, dtypes = [a.shape for a in given], [str(a.dtype) for a in given]
    module = tvm_rammer.compile(relax_module(shapes, loss, dtype=dtypes))
    counted = np.maximum(targets, 0)
    weight = np.where(targets == ignored, 0, w[counted] if weighted else 1)
    losses = -x[np.arange(6), counted] * weight
    want = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / weight.sum()}[reduction]
    np.testing.assert_allclose(module(*given), want, rtol=1e-5)
    for wrong in (5, -1, 2**40, -(2**63)):
        given[1] = np.array([0, 4, wrong, 2, ignored, 1])
        with pytest.raises(ModelError, match="NegativeLogLikelihoodLoss got an index outside of the 5"):
            module(*given)


def test_samples_are_drawn_from_distributions_that_there_are():
    dtypes = ["float32", "float32", "int64"]
    mod = relax_module([(2, 5), (4, 1), (4, 1)], relax.op.multinomial_from_uniform, dtype=dtypes)
    module = tvm_rammer.compile(mod)
    chances, numbers = np.full((2, 5), 0.2, "float32"), np.float32([[0.1], [0.5], [0.7], [0.9]])
    np.testing.assert_array_equal(module(chances, numbers, np.array([[0], [1], [0], [1]])), [[0], [2], [3], [4]])
    for wrong in (2, -1, 10**9, -(2**63)):
        with pytest.raises(ModelError, match="Multinomial got an index outside of the 2"):
            module(chances, numbers, np.array([[0], [1], [wrong], [1]]))


def test_boxes_that_are_kept_are_indices_of_others():
    """How many they are, is not known before: TVM's own type says the most that there may be."""
    corners = random(1, 20, 2).astype("float32")
    boxes = np.concatenate([corners, corners + 1], 2)
    scores = np.abs(random(1, 2, 20, seed=1))
    limits = [tensor("most", np.array([4])), tensor("overlap", np.float32([0.3])), tensor("least", np.float32([0.5]))]
    nodes = [
        node("NonMaxSuppression", ["b", "s", "most", "overlap", "least"], ["found"]),
        node("Gather", ["found", "two"], ["number"], axis=1),
        node("Squeeze", ["number", "one"], ["numbers"]),
        node("Squeeze", ["b", "zero"], ["all"]),
        node("Gather", ["all", "numbers"], ["y"]),
    ]
    places = [tensor(name, np.array([n])) for name, n in (("zero", 0), ("one", 1), ("two", 2))]
    proto = model(
        nodes,
        [value("b", [1, 20, 4]), value("s", [1, 2, 20])],
        ["y", value("found", None, TensorProto.INT64)],
        [*limits, *places],
    )
    got = tvm_rammer.compile(proto, cache=False)(boxes, scores)
    for left, right in zip(got, by_onnxruntime(proto, b=boxes, s=scores), strict=True):
        np.testing.assert_array_equal(left, right)
