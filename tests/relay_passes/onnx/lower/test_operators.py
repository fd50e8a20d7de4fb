"""Operators that TVM's frontend lacks, put together from others, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ...models import by_onnxruntime, model, node, op_names, random, tensor, value
from ..test_load_onnx import agree


def close(run, proto, **inputs):
    """Load and run a model whose results are sums of much larger numbers."""
    got = run(load_model(proto), *inputs.values())
    expected = by_onnxruntime(proto, **inputs)
    for left, right in zip(got if isinstance(got, list) else [got], expected, strict=True):
        assert left.shape == right.shape and left.dtype == right.dtype
        np.testing.assert_allclose(left, right, rtol=0, atol=5e-6 * np.abs(right).max())


# Spectra


@pytest.mark.parametrize("attributes", [{}, {"onesided": 1}, {"axis": 2}])
def test_dft_of_a_real_signal(attributes, run):
    proto = model([node("DFT", ["x"], ["y"], **attributes)], [value("x", [2, 12, 10, 1])], ["y"])
    close(run, proto, x=random(2, 12, 10, 1))


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [None, 7, 16])
def test_dft_of_a_complex_signal(inverse, length, run):
    inputs = ["x"] if length is None else ["x", "length"]
    proto = model(
        [node("DFT", inputs, ["y"], inverse=inverse)], [value("x", [2, 11, 2])], ["y"],
        [] if length is None else [tensor("length", np.int64(length))],
    )  # fmt: skip
    close(run, proto, x=random(2, 11, 2))


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_dft_with_its_axis_as_an_input(axis, run):
    proto = model(
        [node("DFT", ["x", "", "axis"], ["y"])], [value("x", [6, 5, 4, 1])], ["y"],
        [tensor("axis", np.int64(axis))], opset=20, ir=9,
    )  # fmt: skip
    close(run, proto, x=random(6, 5, 4, 1))


@pytest.mark.parametrize(("shape", "axis", "length"), [((3, 5, 2), 1, None), ((3, 5, 2), 1, 9), ((4, 3, 2), 0, 6)])
def test_a_real_signal_of_its_spectrum(shape, axis, length, run):
    names = ["x"] if length is None else ["x", "length"]
    constants = [] if length is None else [tensor("length", np.int64(length))]
    nodes = [node("DFT", names, ["y"], inverse=1, onesided=1, axis=axis)]
    close(run, model(nodes, [value("x", shape)], ["y"], constants), x=random(*shape))


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("window", [False, True])
def test_stft(onesided, window, run):
    inputs = ["x", "step", "window" if window else "", "length"]
    constants = [tensor("step", np.int64(5)), tensor("length", np.int64(16))]
    constants += [tensor("window", np.hanning(16).astype("float32"))] if window else []
    nodes = [node("STFT", inputs, ["y"], onesided=onesided)]
    close(run, model(nodes, [value("x", [2, 50, 1])], ["y"], constants), x=random(2, 50, 1))


def test_stft_whose_window_is_computed(run):
    """As exporters write it: the window's length is the frames', and the window is what an operator makes."""
    nodes = [
        node("HannWindow", ["size"], ["window"]),
        node("STFT", ["x", "step", "window"], ["y"], onesided=1),
    ]
    constants = [tensor("size", np.int64(32)), tensor("step", np.int64(8))]
    close(run, model(nodes, [value("x", [1, 100, 1])], ["y"], constants), x=random(1, 100, 1))


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize(
    ("kind", "factors"),
    [("HannWindow", (0.5, 0.5)), ("HammingWindow", (25 / 46, 21 / 46)), ("BlackmanWindow", (0.42, 0.5, 0.08))],
)
def test_a_window_of_double_precision_is_as_exact(kind, factors, periodic, run):
    nodes = [node(kind, ["size"], ["w"], periodic=periodic, output_datatype=11), node("Mul", ["x", "w"], ["y"])]
    double = [value(name, [9], TensorProto.DOUBLE) for name in "xy"]
    mod = load_model(model(nodes, double[:1], double[1:], [tensor("size", np.int64(9))]))
    turns = 2 * np.pi * np.arange(9) / (8 + periodic)
    want = sum((-1) ** n * factor * np.cos(n * turns) for n, factor in enumerate(factors))
    np.testing.assert_allclose(run(mod, np.ones(9)), want, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("size", [10**12, 2**62])
def test_a_window_that_nothing_can_address_is_refused(size):
    nodes = [node("HannWindow", ["size"], ["w"]), node("Mul", ["x", "w"], ["y"])]
    proto = model(nodes, [value("x", [1])], ["y"], [tensor("size", np.int64(size))])
    with pytest.raises(ModelError, match="can be addressed; give smaller sizes"):
        load_model(proto)


def test_a_spectrum_whose_length_is_an_input_is_reported():
    proto = model([node("DFT", ["x", "n"], ["y"])], [value("x", [1, 8, 1]), value("n", [], TensorProto.INT64)], ["y"])
    with pytest.raises(UnsupportedOperatorError, match="DFT"):
        load_model(proto)


CONSTANTS = {"zero": 0, "four": 4, "sixteen": 16, "five": np.ones(5, "float32")}


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("STFT", ["x", "four", "", "sixteen"], {}, "frames of 16 samples every 4"),
        ("STFT", ["x", "zero", "", "four"], {}, "every 0"),
        ("STFT", ["x", "four", "five", "four"], {}, r"window of the shape \[5\] for frames of 4"),
        ("DFT", ["x", "zero"], {}, "length 0"),
        ("DFT", ["x"], {"axis": 7}, "axis 7"),
        ("DFT", ["x"], {"axis": 2}, "axis 2"),
        ("ReverseSequence", ["x", "n"], {"time_axis": 0, "batch_axis": 0}, "axes 0 and 0"),
        ("LpNormalization", ["x"], {"axis": 3}, "axis 3"),
    ],
)
def test_what_is_impossible_is_refused(op, inputs, attributes, message):
    constants = [tensor(n, v if n == "five" else np.int64(v)) for n, v in CONSTANTS.items()]
    given = [value("x", [1, 8, 1]), value("n", [1], TensorProto.INT64)]
    with pytest.raises(ModelError, match=message):
        load_model(model([node(op, inputs, ["y"], **attributes)], given, ["y"], constants))


# Sequences, norms, images, casts


@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0)])
@pytest.mark.parametrize("known", [False, True])
def test_reverse_sequence(batch, time, known, run):
    shape = [4, 5, 3] if batch == 0 else [5, 4, 3]
    lengths = np.array([5, 1, 3, 4])
    only = node("ReverseSequence", ["x", "n"], ["y"], batch_axis=batch, time_axis=time)
    if known:
        agree(run, model([only], [value("x", shape)], ["y"], [tensor("n", lengths)]), x=random(*shape))
    else:
        given = [value("x", shape), value("n", [4], TensorProto.INT64)]
        agree(run, model([only], given, ["y"]), x=random(*shape), n=lengths)


@pytest.mark.parametrize("opset", [10, 11])
def test_reverse_sequence_of_old_opsets(opset, run):
    nodes = [node("ReverseSequence", ["x", "n"], ["y"], batch_axis=1, time_axis=0)]
    given = [value("x", [5, 3]), value("n", [3], TensorProto.INT64)]
    agree(run, model(nodes, given, ["y"], opset=opset, ir=5), x=random(5, 3), n=np.array([2, 5, 1]))


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("opset", [17, 22])
def test_lp_normalization(power, opset, run):
    x = random(3, 4, 5)
    x[1, :, 2] = 0
    proto = model(
        [node("LpNormalization", ["x"], ["y"], p=power, axis=1)], [value("x", [3, 4, 5])], ["y"], opset=opset, ir=10
    )
    agree(run, proto, x=x)


@pytest.mark.parametrize("more", [{}, {"pads": [1, 0, 1, 2]}, {"strides": [2, 3]}, {"dilations": [2, 1]}])
def test_col2im(more, run):
    image, block = (9, 8), (2, 3)
    pads, strides = more.get("pads", [0] * 4), more.get("strides", [1, 1])
    reach = [d * (k - 1) + 1 for d, k in zip(more.get("dilations", [1, 1]), block, strict=True)]
    places = [(image[i] + pads[i] + pads[i + 2] - reach[i]) // strides[i] + 1 for i in range(2)]
    x = random(2, 3 * 6, places[0] * places[1])
    x[0, 1, 2] = np.inf  # it may not be multiplied by 0
    proto = model(
        [node("Col2Im", ["x", "image", "block"], ["y"], **more)], [value("x", x.shape)], ["y"],
        [tensor("image", np.array(image)), tensor("block", np.array(block))], opset=18, ir=10,
    )  # fmt: skip
    agree(run, proto, x=x)


@pytest.mark.parametrize("kind", [TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.INT32])
def test_numbers_become_narrow_integers(kind, run):
    x = np.array([0.0, -0.7, 1.9, 100.5, 77.0], "float32")
    x = abs(x) if kind == TensorProto.UINT8 else x
    proto = model([node("Cast", ["x"], ["y"], to=kind)], [value("x", x.shape)], [value("y", None, kind)])
    mod = agree(run, proto, x=x)
    assert op_names(mod) == ["isfinite", "logical_not", "where", "astype", "astype"]


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("how", ["half_pixel", "output_half_pixel"])
def test_boxes_of_a_scaled_image(run, scale, how):
    """Moved by half a pixel of the image, not of what they were found in."""
    boxes, where = np.array([[1.5, 0.5, 13, 9], [2, 3, 9.5, 14]], "float32"), np.array([0, 0])
    nodes = [
        node("RoiAlign", ["x", "boxes", "where"], ["y"], spatial_scale=scale, coordinate_transformation_mode=how,
             output_height=2, output_width=3),
    ]  # fmt: skip
    proto = model(nodes, [value("x", [1, 2, 6, 7])], ["y"], [tensor("boxes", boxes), tensor("where", where)], opset=16)
    agree(run, proto, x=random(1, 2, 6, 7))


def repeated(count):
    """A Tile whose repeats are a constant, but only once the operator of ONNX Runtime before it is lowered."""
    nodes = [node("QuickGelu", ["x"], ["h"], domain="com.microsoft"), *count, node("Tile", ["h", "n"], ["y"])]
    proto = model(nodes, [value("x", [2])], ["y"])
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


def test_repeats_that_are_known_once_others_are_lowered(run):
    agree(run, repeated([node("Shape", ["h"], ["n"])]), x=random(2))


@pytest.mark.parametrize("shape", [(2, 3, 7, 10), (1, 4, 56, 56), (2, 3, 4, 5, 6), (3, 4, 1, 1)], ids=str)
def test_images_are_normalised_as_rows(run, shape):
    """Sums over one long axis are in full vectors."""
    weights = [tensor("scale", random(shape[1])), tensor("bias", random(shape[1], seed=1))]
    norm = node("InstanceNormalization", ["x", "scale", "bias"], ["y"], epsilon=1e-3)
    proto = model([norm], [value("x", list(shape))], ["y"], weights)
    mod = load_model(proto)
    assert op_names(mod)[0] == op_names(mod)[-1] == "reshape"
    x = random(*shape, seed=2)
    np.testing.assert_allclose(run(mod, x), by_onnxruntime(proto, x=x)[0], rtol=1e-4, atol=1e-5)
