"""Resize by sizes and scales that come when the model runs, against the same ones as constants, and ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import ModelError, UnsupportedOperatorError

from ...models import by_onnxruntime, model, node, random, tensor, value

INT64, FLOAT, HALF = TensorProto.INT64, TensorProto.FLOAT, TensorProto.FLOAT16


def resize(given, constant=None, shape=(1, 2, 4, 5), kind=FLOAT, opset=19, **attributes):
    """A Resize by "roi", "scales" or "sizes", which is an input, or a constant."""
    names = [name if name in given else "" for name in ("roi", "scales", "sizes")]
    types = {"roi": FLOAT, "scales": FLOAT, "sizes": INT64}
    inputs = [value("x", shape, kind)] + [value(n, [count], types[n]) for n, count in given.items() if constant is None]
    fixed = [tensor(n, array) for n, array in (constant or {}).items()]
    nodes = [node("Resize", ["x", *names], ["y"], **attributes)]
    return model(nodes, inputs, [value("y", None, kind)], fixed, opset=opset, ir=9)


def check(name, arrays, shape=(1, 2, 4, 5), dtype="float32", kind=FLOAT, **attributes):
    x = random(*shape).astype(dtype)
    module = tvm_rammer.compile(resize({name: len(arrays[0])}, shape=shape, kind=kind, **attributes), cache=False)
    for array in arrays:
        array = np.array(array, "int64" if name == "sizes" else "float32")
        fixed = tvm_rammer.compile(resize({name: 0}, {name: array}, shape, kind, **attributes), cache=False)
        got, want = module(x, array), fixed(x)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-2 if dtype == "float16" else 1e-5, atol=1e-5)


CUBIC = {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}


@pytest.mark.parametrize(
    "attributes",
    [
        {"mode": "linear"},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
        CUBIC,
        {"mode": "nearest"},
        {"mode": "nearest", "nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric"},
        {"mode": "nearest", "nearest_mode": "round_prefer_ceil", "coordinate_transformation_mode": "asymmetric"},
    ],
    ids=str,
)
def test_scales(attributes):
    check("scales", [(1, 1, 0.6, 0.8), (1, 1, 2.5, 1.7)], **attributes)


@pytest.mark.parametrize("attributes", [{"mode": "linear"}, {"mode": "nearest"}, CUBIC], ids=str)
@pytest.mark.parametrize("shape", [(5,), (1, 3, 2, 4)], ids=str)
def test_axes(attributes, shape):
    sizes = np.array(shape)
    sizes[-1] = 7
    more = sizes.copy()
    more[0] = 1
    check("sizes", [more, shape], shape, **attributes)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_one_scale_for_some_axes(policy):
    attributes = {"axes": [3, -2], "keep_aspect_ratio_policy": policy, "mode": "linear"}
    check("sizes", [(10, 6)], **attributes)


def test_half_precision():
    check("sizes", [(1, 2, 7, 3)], dtype="float16", kind=HALF, mode="linear")


def test_integers_are_chosen():
    check("sizes", [(1, 2, 7, 3)], dtype="int64", kind=INT64, mode="nearest")


def test_old_scales():
    nodes = [node("Resize", ["x", "scales"], ["y"], mode="linear")]
    proto = model(nodes, [value("x", [1, 2, 3, 4]), value("scales", [4])], ["y"], opset=10, ir=5)
    module = tvm_rammer.compile(proto, cache=False)
    for scales in ((1, 1, 2, 3), (1, 1, 1.5, 0.5)):
        arrays = {"x": random(1, 2, 3, 4), "scales": np.array(scales, "float32")}
        np.testing.assert_allclose(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0], rtol=1e-5)


def test_old_scales_choose_the_element_behind_where_they_shrink():
    nodes = [node("Resize", ["x", "scales"], ["y"], mode="nearest")]
    proto = model(nodes, [value("x", [1, 2, 11, 13]), value("scales", [4])], ["y"], opset=10, ir=5)
    module = tvm_rammer.compile(proto, cache=False)
    for scales in ((1, 1, 0.5, 0.6), (1, 1, 0.7, 1.1)):
        arrays = {"x": random(1, 2, 11, 13), "scales": np.array(scales, "float32")}
        np.testing.assert_array_equal(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0])


@pytest.mark.parametrize("name", ["sizes", "scales"])
def test_as_segmentation_models_have_it(name):
    """Of a shape without its channels; a convolution comes after it."""
    first = [("ones", np.ones(2, "float32")), ("same", np.array([1, 2]))][name == "sizes"]
    given = ["joined"] if name == "scales" else ["", "joined"]
    proto = model(
        [
            node("Concat", [first[0], "image"], ["joined"], axis=0),
            node("Resize", ["x", "", *given], ["r"], mode="linear"),
            node("Conv", ["r", "w"], ["y"], pads=[1, 1, 1, 1]),
        ],
        [value("x", [1, 2, 4, 5]), value("image", [2], INT64 if name == "sizes" else FLOAT)],
        ["y"],
        [tensor(*first), tensor("w", random(3, 2, 3, 3))],
        opset=13,
    )
    module = tvm_rammer.compile(proto, cache=False)
    for image in ((8, 10), (2, 3), (12, 5)):
        numbers = np.array(image) if name == "sizes" else np.array(image, "float32") / 4
        arrays = {"x": random(1, 2, 4, 5), "image": numbers}
        np.testing.assert_allclose(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0], 1e-4, 1e-5)


def test_rows_of_the_data_stay():
    """As many rows as the data choose, also none, at the size of an image that is an input."""
    proto = model(
        [
            node("NonZero", ["chosen"], ["found"]),
            node("Squeeze", ["found", "none"], ["rows"]),
            node("Gather", ["x", "rows"], ["g"]),
            node("Shape", ["g"], ["shape"]),
            node("Slice", ["shape", "none", "two"], ["before"]),
            node("Concat", ["before", "image"], ["sizes"], axis=0),
            node("Resize", ["g", "", "", "sizes"], ["y"], mode="linear"),
        ],
        [value("x", [4, 2, 3, 4]), value("chosen", [4], TensorProto.BOOL), value("image", [2], INT64)],
        ["y"],
        [tensor("none", np.array([0])), tensor("two", np.array([2]))],
        opset=13,
    )
    module = tvm_rammer.compile(proto, cache=False)
    for chosen in ([1, 0, 1, 1], [0, 1, 1, 0]):
        arrays = {"x": random(4, 2, 3, 4), "chosen": np.array(chosen, bool), "image": np.array([5, 2])}
        np.testing.assert_allclose(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0], 1e-5, 1e-6)
    arrays["chosen"][:] = False
    assert module.run(None, arrays)[0].shape == (0, 2, 5, 2)


@pytest.mark.parametrize(
    ("mode", "regions"),
    [
        ("linear", [(0, 0, 0.2, 0.3, 1, 1, 0.7, 0.8), (0, 0, -0.5, 0, 1, 1, 1.5, 2)]),
        ("nearest", [(0, 0, 0.4, 1, 1, 1, 1, 0)]),
    ],
)
def test_a_region_that_is_computed(mode, regions):
    attributes = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0}
    names, sizes = ["x", "roi", "", "sizes"], [tensor("sizes", np.array([1, 2, 3, 6]))]
    inputs = [value("x", [1, 2, 4, 5]), value("roi", [8])]
    proto = model([node("Resize", names, ["y"], **attributes)], inputs, ["y"], sizes, opset=13)
    module = tvm_rammer.compile(proto, cache=False)
    for region in regions:
        arrays = {"x": random(1, 2, 4, 5), "roi": np.array(region, "float32")}
        np.testing.assert_allclose(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0], 1e-4, 1e-5)
    arrays["roi"] = np.full(8, np.nan, "float32")
    assert (module.run(None, arrays)[0] == 9).all()


def test_a_size_in_single_precision():
    """As ONNX Runtime, onnx's shape inference and PyTorch have it: in double precision it would be 6.99..."""
    attributes = {"shape": (1, 1, 1, 10), "mode": "linear"}
    fixed = resize({"scales": 0}, {"scales": np.array([1, 1, 1, 0.7], "float32")}, **attributes)
    x = random(1, 1, 1, 10)
    got, (want,) = tvm_rammer.compile(fixed, cache=False)(x), by_onnxruntime(fixed, x=x)
    assert got.shape == (1, 1, 1, 7)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "sizes", [(1, 2, 0, 3), (1, 2, -1, 3), (1, 2, 2**31, 1), (1, 2, 10**12, 10**12), (-(2**63),) * 4]
)
def test_impossible_sizes_end_the_call(sizes):
    module = tvm_rammer.compile(resize({"sizes": 4}, mode="linear"), cache=False)
    with pytest.raises(ModelError, match="mend the data of 'sizes'"):
        module(random(1, 2, 4, 5), np.array(sizes))


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e12, np.inf, -np.inf, np.nan, 0.1])
def test_impossible_scales_end_the_call(scale):
    module = tvm_rammer.compile(resize({"scales": 4}), cache=False)
    with pytest.raises(ModelError, match="mend the data of 'scales'"):
        module(random(1, 2, 4, 5), np.array([1, 1, 1, scale], "float32"))


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"mode": "linear", "antialias": 1}, FLOAT),
        ({"mode": "linear"}, TensorProto.INT32),
        ({"nearest_mode": "round"}, FLOAT),
        ({"coordinate_transformation_mode": "middle"}, FLOAT),
    ],
)
def test_refused(attributes, kind):
    with pytest.raises(UnsupportedOperatorError, match=r"Resize 'y'.*make 'sizes', or the inputs"):
        tvm_rammer.compile(resize({"sizes": 4}, kind=kind, **attributes), cache=False)


def test_constants_are_left_to_the_compiler():
    """A size that is known after folding costs nothing when the model runs."""
    proto = model(
        [
            node("Shape", ["x"], ["shape"]),
            node("Slice", ["shape", "none", "two"], ["before"]),
            node("Slice", ["shape", "two", "four"], ["image"]),
            node("Mul", ["image", "two"], ["larger"]),
            node("Concat", ["before", "larger"], ["sizes"], axis=0),
            node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear"),
        ],
        [value("x", [1, 2, "h", "w"])],
        ["y"],
        [tensor("none", np.array([0])), tensor("two", np.array([2])), tensor("four", np.array([4]))],
        opset=13,
    )
    module = tvm_rammer.compile(proto, cache=False)
    for shape in ((1, 2, 3, 5), (1, 2, 6, 2)):
        x = random(*shape)
        np.testing.assert_allclose(module(x), by_onnxruntime(proto, x=x)[0], rtol=1e-5, atol=1e-6)
        assert " 0 stock calls" in str(module.modules[-1].explain())
