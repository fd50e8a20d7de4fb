"""RoiAlign: samples of any boxes, in a time that no box decides, and of images that there are."""

import numpy as np
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from tvm import relax

import tvm_rammer
from tests.emulation.programs import plan, run_all
from tests.functions import relax_module
from tests.relay_passes.models import model, node, random, value
from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model

ROWS, COLUMNS = 9, 7
BOXES = np.array(
    [
        [0, 0, 6, 8], [1.5, 2.25, 4, 3.5], [-3, -2, 5, 4], [4, 5, 20, 30], [2, 2, 2, 2], [5, 6, 1, 2], [2, 1, 2.4, 8],
        [-9, -9, -5, -5], [0, 0, 0.75, 0.5],
    ],
    "float32",
)  # fmt: skip
HUGE = np.array(
    [[-1e6, -1e6, 1e6, 1e6], [0, 0, 1e5, 3], [-3e5, 1, 4, 3e5], [1e9, 1e9, 1e9, 1e9], [-1e30, -1e30, 1e30, 1e30]],
    "float32",
)


def aligned(boxes, ratio=0, how="half_pixel", scale=1.0, images=2):
    count = len(boxes)
    align = node(
        "RoiAlign", ["x", "boxes", "where"], ["y"], output_height=3, output_width=2, sampling_ratio=ratio,
        coordinate_transformation_mode=how, spatial_scale=scale,
    )  # fmt: skip
    inputs = {"x": [images, 20, ROWS, COLUMNS], "boxes": [count, 4]}
    where = value("where", [count], TensorProto.INT64)
    return model([align], [*(value(name, shape) for name, shape in inputs.items()), where], ["y"], opset=16)


def weights(first, last, bins, size, ratio):
    """[bins, size]: what pixels weigh along an axis, by all samples that there are."""
    length = np.float32(last - first) / np.float32(bins)
    samples = ratio or max(0, int(np.ceil(length)))
    made = np.zeros((bins, size))
    for number in range(bins):
        begin = np.float32(first) + np.float32(number) * length
        places = begin + (np.arange(samples, dtype="float32") + np.float32(0.5)) * length / np.float32(max(1, samples))
        places = np.clip(places[(places >= -1) & (places <= size)].astype(float), 0, size - 1)
        below = np.floor(places).astype(int)
        np.add.at(made[number], below, 1 - (places - below))
        np.add.at(made[number], np.minimum(below + 1, size - 1), places - below)
    return made / max(1, samples)


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("how", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 1, 2, 3])
def test_as_the_standard_says(ratio, how, scale):
    proto, x, where = aligned(BOXES, ratio, how, scale), random(2, 20, ROWS, COLUMNS), np.arange(len(BOXES)) % 2
    (want,) = ReferenceEvaluator(proto).run(None, {"x": x, "boxes": BOXES, "where": where})
    module = tvm_rammer.compile(proto)
    assert "Nothing was left to stock TVM" in module.explain()
    np.testing.assert_allclose(module(x, BOXES, where), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ratio", [0, 2])
def test_boxes_much_larger_than_the_image(ratio):
    """As many samples as the box has pixels would take for ever."""
    x, where = random(2, 20, ROWS, COLUMNS), np.zeros(len(HUGE), np.int64)
    got = np.asarray(tvm_rammer.compile(aligned(HUGE, ratio))(x, HUGE, where))
    for found, (left, top, right, bottom) in zip(got[:3], HUGE[:3] - np.float32(0.5), strict=False):
        of_rows, of_columns = weights(top, bottom, 3, ROWS, ratio), weights(left, right, 2, COLUMNS, ratio)
        np.testing.assert_allclose(found, np.einsum("ri,cj,nij->nrc", of_rows, of_columns, x[0]), rtol=0.02, atol=1e-9)
    assert np.isfinite(got).all()


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("worst", [np.nan, np.inf, -np.inf])
def test_boxes_without_numbers_end_a_call_in_a_result(ratio, worst):
    module, x = tvm_rammer.compile(aligned(BOXES[:2], ratio)), random(2, 20, ROWS, COLUMNS)
    for place in range(4):
        boxes = BOXES[:2].copy()
        boxes[0, place] = worst
        got = np.asarray(module(x, boxes, np.zeros(2, np.int64)))
        np.testing.assert_array_equal(got[1], np.asarray(module(x, BOXES[:2], np.zeros(2, np.int64)))[1])


@pytest.mark.parametrize("wrong", [2, -1, 10**6, -(2**40)])
@pytest.mark.parametrize("ratio", [0, 2])
def test_an_image_that_there_is_not_is_an_error(ratio, wrong):
    module, x = tvm_rammer.compile(aligned(BOXES[:3], ratio)), random(2, 20, ROWS, COLUMNS)
    with pytest.raises(ModelError, match=r"RoiAlign got an index outside of the 2 .* the data of 'boxes', 'where'"):
        module(x, BOXES[:3], np.array([0, wrong, 1]))
    assert np.isfinite(module(x, BOXES[:3], np.array([0, 1, 1]))).all()


@pytest.mark.parametrize("ratio", [0, 2])
def test_boxes_whose_number_the_data_decide(ratio):
    chosen = [
        node("Compress", ["all", "c"], ["boxes"], axis=0),
        node("Compress", ["every", "d"], ["where"], axis=0),
    ]
    proto = aligned(BOXES, ratio)
    flags = [value(name, [len(BOXES)], TensorProto.BOOL) for name in ("c", "d")]
    inputs = [
        value("x", [2, 20, ROWS, COLUMNS]),
        value("all", BOXES.shape),
        value("every", BOXES.shape[:1], TensorProto.INT64),
    ]
    proto = model([*chosen, *proto.graph.node], [*inputs, *flags], ["y"], opset=16)
    module, x, where = tvm_rammer.compile(proto), random(2, 20, ROWS, COLUMNS), np.arange(len(BOXES)) % 2
    for few in (np.arange(len(BOXES)) < 4, BOXES[:, 0] < 0, BOXES[:, 0] > 99):
        given = {"x": x, "all": BOXES, "every": where, "c": few, "d": few}
        (want,) = ReferenceEvaluator(proto).run(None, given)
        np.testing.assert_allclose(module(**given), want, rtol=1e-4, atol=1e-5)
    with pytest.raises(ModelError, match="outside of the 2"):
        module(**given | {"every": where + 9, "c": where == 0, "d": where == 0})
    with pytest.raises(tvm_rammer.RammerError):
        module(**given | {"d": where == 0})


def test_samples_without_end_are_refused():
    with pytest.raises(tvm_rammer.RammerError, match="RoiAlign 'y' asks for 1000000 samples along each axis of a bin"):
        tvm_rammer.compile(aligned(BOXES, 10**6))


OTHERS = {
    "RoiAlign, channels last": lambda x, b: relax.op.vision.roi_align(x, b, 2, 1.0, 2, layout="NHWC"),
    "RoiAlign, maximum": lambda x, b: relax.op.vision.roi_align(x, b, 2, 1.0, 2, mode="max"),
    "MaxRoiPool": lambda x, b: relax.op.vision.roi_pool(x, b, 2, 1.0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_forms_in_a_relax_module(name):
    module = tvm_rammer.compile(relax_module([(2, 6, 6, 6), (3, 5)], OTHERS[name]))
    boxes = np.array([[0, 1, 1, 4, 4], [1, 0, 0, 5, 5], [1, 2, 2, 3, 3]], "float32")
    assert np.isfinite(module(random(2, 6, 6, 6), boxes)).all()
    for wrong in (2, -1, 1e9, np.nan):
        boxes[1, 0] = wrong
        with pytest.raises(ModelError, match=f"{name.split(',')[0]} got an index outside of the 2 that it indexes"):
            module(random(2, 6, 6, 6), boxes)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0, 2])
def test_as_cuda_text(ratio):
    proto, x, where = aligned(BOXES[:4], ratio), random(2, 20, ROWS, COLUMNS), np.array([0, 1, 0, 1])
    (want,) = ReferenceEvaluator(proto).run(None, {"x": x, "boxes": BOXES[:4], "where": where})
    made = run_all(plan(load_model(proto), 4), {"x": x, "boxes": BOXES[:4], "where": where})
    assert (
        min(np.abs(array.reshape(want.shape) - want).max() for array in made.values() if array.size == want.size) < 1e-5
    )
