"""Deformable convolutions, against ONNX's reference."""

import math

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ...models import model, node, random, value
from .judge import by_reference


def deformed(image, kernel, filters=4, *, bias=False, mask=False, reach=1.5, opset=19, **attributes):
    """A model of one deformable convolution, and its inputs; offsets are some `reach` pixels long."""
    groups, deformed = attributes.get("group", 1), attributes.get("offset_group", 1)
    pads, strides = attributes.get("pads", [0] * 4), attributes.get("strides", [1, 1])
    dilations = attributes.get("dilations", [1, 1])
    sizes = [
        (image[2 + i] + pads[i] + pads[2 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)
    ]
    taps = deformed * math.prod(kernel)
    arrays = {
        "x": random(*image, seed=1),
        "w": random(filters, image[1] // groups, *kernel, seed=2),
        "offset": random(image[0], 2 * taps, *sizes, seed=3) * np.float32(reach),
    }
    if bias:
        arrays["b"] = random(filters, seed=4)
    if mask:
        arrays["mask"] = np.abs(random(image[0], taps, *sizes, seed=5))
    names = ["x", "w", "offset", "b" if bias else "", *(["mask"] if mask else [])]
    inputs = [value(name, array.shape) for name, array in arrays.items()]
    nodes = [node("DeformConv", names, ["y"], kernel_shape=kernel, **attributes)]
    return model(nodes, inputs, ["y"], opset=opset, ir=10), arrays


@pytest.mark.parametrize(
    ("image", "kernel", "options"),
    [
        ((1, 2, 6, 7), [3, 3], {"pads": [1, 1, 1, 1]}),
        ((2, 3, 5, 6), [2, 3], {"pads": [0, 1, 1, 0], "bias": True, "mask": True}),
        ((1, 4, 9, 8), [3, 2], {"strides": [2, 1], "dilations": [1, 2], "mask": True}),
        ((1, 4, 6, 6), [2, 2], {"group": 2, "filters": 6, "bias": True}),
        ((2, 4, 6, 6), [3, 3], {"offset_group": 2, "group": 4, "mask": True, "pads": [1, 1, 1, 1]}),
        ((1, 2, 5, 5), [1, 1], {"reach": 9.0}),
        ((1, 2, 2, 3), [2, 2], {"opset": 22}),
    ],
    ids=str,
)
def test_deformed_convolutions(image, kernel, options, run):
    proto, arrays = deformed(image, kernel, **options)
    by_reference(run, proto, **arrays)


def test_without_offsets_it_is_a_convolution(run):
    proto, arrays = deformed((1, 3, 8, 9), [3, 3], pads=[1, 1, 1, 1], strides=[2, 1], reach=0.0)
    plain = model(
        [node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], strides=[2, 1])],
        [value(name, arrays[name].shape) for name in ("x", "w")], ["y"],
    )  # fmt: skip
    got = run(load_model(proto), *arrays.values())
    np.testing.assert_allclose(got, run(load_model(plain), arrays["x"], arrays["w"]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"group": 3}, "3 groups of"),
        ({"offset_group": 3}, "3 groups of offsets for 4 channels"),
        ({"offset_group": 2}, "offsets of the shape"),
        ({"pads": [1, 1, 1, 1]}, "offsets of the shape"),
        ({"strides": [0, 1]}, "strides"),
        ({"pads": [1, 1]}, "pads"),
        ({"kernel_shape": [3, 2]}, "weights of the shape"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(attributes, message):
    proto, _ = deformed((1, 4, 6, 6), [2, 2])
    del proto.graph.node[0].attribute[:]
    proto.graph.node[0].attribute.extend(node("DeformConv", [], [], **attributes).attribute)
    with pytest.raises(ModelError, match=message):
        load_model(proto)


def of_type(proto, elem):
    """The model with all its numbers of another type."""
    for info in (*proto.graph.input, *proto.graph.output):
        info.type.tensor_type.elem_type = elem
    return proto


@pytest.mark.parametrize("elem", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_half_precision_is_computed_in_single_precision(elem, run):
    proto, arrays = deformed((1, 4, 8, 10), [3, 3], bias=True, mask=True)
    (want,) = ReferenceEvaluator(proto).run(None, arrays)
    dtype = helper.tensor_dtype_to_np_dtype(elem)
    got = run(load_model(of_type(proto, elem)), *(array.astype(dtype) for array in arrays.values()))
    assert got.dtype == dtype
    error = 4 * float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(got.astype("float32"), want, rtol=error, atol=error * np.abs(want).max())


def test_double_precision_is_refused():
    proto, _ = deformed((1, 4, 6, 6), [2, 2])
    with pytest.raises(UnsupportedOperatorError, match="sampled in single precision"):
        load_model(of_type(proto, TensorProto.DOUBLE))


def test_an_image_of_one_row_is_refused():
    proto, _ = deformed((1, 4, 1, 6), [1, 2])
    with pytest.raises(UnsupportedOperatorError, match="pad it to two pixels"):
        load_model(proto)
