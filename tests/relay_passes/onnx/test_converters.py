"""Operators that go straight to Relax, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import ModelError

from ..models import by_onnxruntime, model, node, random, tensor, value


@pytest.fixture(scope="module")
def detector():
    """The best boxes of those whose scores are above a half, as detectors are exported."""
    return model(
        [
            node("Greater", ["s", "half"], ["good"]),
            node("NonZero", ["good"], ["where"]),
            node("Squeeze", ["where", "zero"], ["kept"]),
            node("Gather", ["b", "kept"], ["boxes"]),
            node("Gather", ["s", "kept"], ["scores"]),
            node("Unsqueeze", ["boxes", "zero"], ["one_image"]),
            node("Unsqueeze", ["scores", "both"], ["one_class"]),
            node("NonMaxSuppression", ["one_image", "one_class", "most", "overlap"], ["found"]),
            node("Gather", ["found", "two"], ["best"], axis=1),
            node("Gather", ["boxes", "best"], ["y"]),
        ],
        [value("b", [20, 4]), value("s", [20])],
        ["y", value("found", None, TensorProto.INT64)],
        [
            tensor("half", np.float32(0.5)),
            tensor("overlap", np.float32([0.3])),
            tensor("most", np.array([4])),
            *(tensor(name, np.array(at)) for name, at in (("zero", [0]), ("both", [0, 1]), ("two", 2))),
        ],
    )


@pytest.fixture(scope="module")
def compiled(detector):
    return tvm_rammer.compile(detector, cache=False)


@pytest.mark.parametrize("most", [0.4, 0.52, 1.0, 9.0])
def test_boxes_are_chosen_of_as_many_as_the_data_leave(most, detector, compiled):
    corners = np.abs(random(20, 2)) * 2
    arrays = {"b": np.concatenate([corners, corners + 1], 1), "s": np.abs(random(20, seed=1)).clip(0, 1) * most}
    for got, want in zip(compiled.run(None, arrays), by_onnxruntime(detector, **arrays), strict=True):
        np.testing.assert_array_equal(got, want)


def test_any_number_of_boxes_may_be_asked_for():
    """PyTorch's exporter asks for the largest integer of 64 bits."""
    corners = np.abs(random(1, 6, 2)) * 2
    arrays = {"b": np.concatenate([corners, corners + 1], 2), "s": np.abs(random(1, 3, 6, seed=1))}
    proto = model(
        [node("NonMaxSuppression", ["b", "s", "most", "overlap"], ["y"])],
        [value(name, list(array.shape)) for name, array in arrays.items()],
        [value("y", None, TensorProto.INT64)],
        [tensor("most", np.array([2**63 - 1])), tensor("overlap", np.float32([0.3]))],
    )
    got = tvm_rammer.compile(proto, cache=False).run(None, arrays)
    np.testing.assert_array_equal(got[0], by_onnxruntime(proto, **arrays)[0])


def by_data(kind, shape, **attributes):
    """A model of one node whose second input says what becomes of the first one's shape."""
    inputs = [value("x", shape), value("n", [len(attributes.pop("like", shape))], TensorProto.INT64)]
    return model([node(kind, ["x", "n"], ["y"], **attributes)], inputs, ["y"], opset=18)


@pytest.mark.parametrize("shape", [(2, 3), (1, 5, 2), (33,), (4, 1, 17)], ids=str)
def test_repeats_that_the_data_say(shape):
    proto, x = by_data("Tile", shape), random(*shape)
    module = tvm_rammer.compile(proto, cache=False)
    for repeats in ([1] * len(shape), [2, 3, 4][: len(shape)], [0] * len(shape), [5] + [1] * (len(shape) - 1)):
        np.testing.assert_array_equal(module(x, np.array(repeats)), np.tile(x, repeats))


@pytest.mark.parametrize(
    ("target", "shape"),
    [((2, 12), (2, 12)), ((-1, 6), (4, 6)), ((0, -1), (2, 12)), ((24, 1), (24, 1)), ((0, 0), None), ((5, -1), None),
     ((7, 3), None), ((-1, -1), None)],
)  # fmt: skip
def test_a_shape_that_the_data_say(target, shape):
    x, module = random(2, 3, 4), tvm_rammer.compile(by_data("Reshape", (2, 3, 4), like=(0, 0)), cache=False)
    if shape is None:
        with pytest.raises(tvm_rammer.ModelError, match="Reshape got tensors whose sizes"):
            module(x, np.array(target))
    else:
        np.testing.assert_array_equal(module(x, np.array(target)), x.reshape(shape))


def test_a_result_whose_shape_only_onnx_knows():
    """Its operand has as many rows as the data say, which can be one number only."""
    nodes = [
        node("NonZero", ["x"], ["places"]),
        node("Cast", ["places"], ["a"], to=TensorProto.FLOAT),
        node("Add", ["a", "x"], ["b"]),
        node("Reshape", ["b", "flat"], ["y"]),
    ]
    flat = tensor("flat", np.array([-1]))
    module = tvm_rammer.compile(model(nodes, [value("x", [3])], [value("y", [3])], [flat]), cache=False)
    np.testing.assert_array_equal(module(np.float32([1, 2, 3])), [1, 3, 5])
    with pytest.raises(tvm_rammer.ModelError, match="Add got tensors whose sizes"):
        module(np.float32([1, 0, 3]))


@pytest.mark.parametrize("kind", ["Max", "Mean", "Min", "Sum"])
def test_tensors_of_as_many_elements_as_the_data_say(kind):
    """Also what reads the result: it has names for its extents."""
    nodes = [
        node("NonZero", ["x"], ["places"]),
        node("Cast", ["places"], ["a"], to=TensorProto.FLOAT),
        node("Neg", ["a"], ["b"]),
        node("Mul", ["b", "a"], ["c"]),
        node(kind, ["a", "b", "c"], ["made"]),
        node("ArgMax", ["made"], ["y"], axis=1, keepdims=0),
    ]
    proto = model(nodes, [value("x", [9])], [value("y", [1], TensorProto.INT64), "made"])
    module = tvm_rammer.compile(proto, cache=False)
    for count in (1, 4, 9):
        x = (np.arange(9) < count).astype("float32")
        for got, want in zip(module(x), by_onnxruntime(proto, x=x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


IMPOSSIBLE = {
    "Expand": [(-2, -3), (-2, 3), (2**40, 2**40), (0, 2**62)],
    "Reshape": [(-2, -3), (2**32, 2**32)],
    "Tile": [(-2, -3), (2**40, 2**40)],
}


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_a_shape_that_no_tensor_can_have(kind):
    """Two that are too large would be small together, as numbers of 64 bits are."""
    x, module = np.ones((1, 1), "float32"), tvm_rammer.compile(by_data(kind, (1, 1)), cache=False)
    for shape in IMPOSSIBLE[kind]:
        with pytest.raises(tvm_rammer.ModelError, match=r"a shape that no tensor can have.*mend the data of 'n'"):
            module(x, np.array(shape))


@pytest.mark.parametrize(("limit", "step"), [(5, 0), (1e30, 1e-3), (np.inf, 1), (np.nan, 1)])
def test_a_range_of_too_many_numbers(limit, step):
    inputs = [value(name, []) for name in ("start", "limit", "step")]
    module = tvm_rammer.compile(model([node("Range", [v.name for v in inputs], ["y"])], inputs, ["y"]), cache=False)
    np.testing.assert_array_equal(module(np.float32(1), np.float32(4), np.float32(2)), [1, 3])
    with pytest.raises(tvm_rammer.ModelError, match="a shape that no tensor can have"):
        module(np.float32(0), np.float32(limit), np.float32(step))


@pytest.mark.parametrize("shape", [[], [1]], ids=str)
def test_limits_of_suppression_that_are_computed(shape):
    corners = np.abs(random(1, 6, 2))
    boxes = {"b": np.concatenate([corners, corners + 1], 2), "s": np.abs(random(1, 2, 6, seed=1))}
    limits = {"most": TensorProto.INT64, "overlap": TensorProto.FLOAT, "least": TensorProto.FLOAT}
    proto = model(
        [node("NonMaxSuppression", ["b", "s", *limits], ["y"])],
        [
            *(value(name, list(array.shape)) for name, array in boxes.items()),
            *(value(name, shape, kind) for name, kind in limits.items()),
        ],
        [value("y", None, TensorProto.INT64)],
    )
    module = tvm_rammer.compile(proto, cache=False)
    for most, overlap, least in ((2, 0.5, 0.1), (100, 0.1, 0.5), (0, 0.5, 0), (1, 0, 0), (2**62, 1, 0)):
        given = [np.full(shape, most), np.full(shape, overlap, "float32"), np.full(shape, least, "float32")]
        arrays = boxes | dict(zip(limits, given, strict=True))
        np.testing.assert_array_equal(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0])
    arrays["most"] = np.full(shape, -(2**62))
    assert module.run(None, arrays)[0].shape == (0, 3)


def test_as_many_boxes_as_the_data_say():
    """At most as many as there are scores above a half."""
    proto = model(
        [
            node("Greater", ["s", "half"], ["good"]),
            node("NonZero", ["good"], ["found"]),
            node("Shape", ["found"], ["shape"]),
            node("Gather", ["shape", "one"], ["count"]),
            node("Min", ["count", "few"], ["most"]),
            node("NonMaxSuppression", ["b", "s", "most", "half"], ["y"]),
        ],
        [value("b", [1, 6, 4]), value("s", [1, 2, 6])],
        [value("y", None, TensorProto.INT64)],
        [tensor("half", np.float32(0.5)), tensor("one", np.array(1)), tensor("few", np.array(3))],
    )
    module = tvm_rammer.compile(proto, cache=False)
    corners = np.abs(random(1, 6, 2))
    for scale in (0.1, 0.6, 2):
        arrays = {"b": np.concatenate([corners, corners + 1], 2), "s": np.abs(random(1, 2, 6, seed=1)) * scale}
        arrays["s"] = arrays["s"].astype("float32")
        np.testing.assert_array_equal(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0])


@pytest.mark.parametrize("opset", [11, 13])
def test_an_axis_is_left_out_that_has_as_many_places_as_the_data_say(opset):
    """One row is chosen, or the call ends."""
    axes, constants = ({"axes": [0]}, []) if opset < 13 else ({}, [tensor("axis", np.array([0]))])
    flat = [node("Squeeze", ["found", *(c.name for c in constants)], ["rows"], **axes)]
    one = [node("Squeeze", ["g", *(c.name for c in constants)], ["r"], **axes), node("Neg", ["r"], ["y"])]
    proto = model(
        [node("NonZero", ["chosen"], ["found"]), *flat, node("Gather", ["x", "rows"], ["g"]), *one],
        [value("x", [5, 3]), value("chosen", [5], TensorProto.BOOL)],
        ["y"],
        constants,
        opset=opset,
    )
    module, x = tvm_rammer.compile(proto, cache=False), random(5, 3)
    for place in range(5):
        feed = {"x": x, "chosen": np.arange(5) == place}
        np.testing.assert_array_equal(module.run(None, feed)[0], by_onnxruntime(proto, **feed)[0])
    for chosen in (np.zeros(5, bool), np.arange(5) < 2):
        with pytest.raises(ModelError, match="Squeeze 'r' got an axis that does not have one element"):
            module.run(None, {"x": x, "chosen": chosen})


@pytest.mark.parametrize("opset", [11, 13])
def test_parts_of_known_sizes_of_an_axis_that_is_as_long_as_the_data_say(opset):
    """They make up the axis, or the call ends: of less than there are, more was read."""
    sizes, constants = ({"split": [2, 1]}, []) if opset < 13 else ({}, [tensor("sizes", np.array([2, 1]))])
    proto = model(
        [
            node("Compress", ["x", "chosen"], ["g"], axis=0),
            node("Split", ["g", *(c.name for c in constants)], ["a", "b"], axis=0, **sizes),
            node("Neg", ["a"], ["y"]),
            node("Neg", ["b"], ["z"]),
        ],
        [value("x", [5, 3]), value("chosen", [5], TensorProto.BOOL)],
        ["y", "z"],
        constants,
        opset=opset,
    )
    module, x = tvm_rammer.compile(proto, cache=False), random(5, 3)
    for rows in range(6):
        feed = {"x": x, "chosen": np.arange(5) < rows}
        if rows == 3:
            for got, want in zip(module.run(None, feed), by_onnxruntime(proto, **feed), strict=True):
                np.testing.assert_array_equal(got, want)
        else:
            with pytest.raises(ModelError, match="Split 'a' got sizes of parts that do not make up its axis"):
                module.run(None, feed)
