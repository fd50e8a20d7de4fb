"""Pad by widths that come when the model runs, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import ModelError, UnsupportedOperatorError

from ...models import by_onnxruntime, model, node, random, tensor, value

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
SHAPE = [2, 3, 4]


def pad(count=6, more=(), inputs=(), tensors=(), **attributes):
    nodes = [node("Pad", ["x", "pads", *more], ["y"], **attributes)]
    return model(nodes, [value("x", SHAPE), value("pads", [count], INT64), *inputs], ["y"], tensors, opset=19, ir=9)


def check(proto, widths, **arrays):
    module = tvm_rammer.compile(proto, cache=False)
    for pads in widths:
        arrays |= {"x": random(*SHAPE), "pads": np.array(pads)}
        (got,), (want,) = module.run(None, arrays), by_onnxruntime(proto, **arrays)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_modes(mode):
    check(pad(mode=mode), [(0, 0, 1, 0, 0, 2), (0,) * 6, (1,) * 6, (0, -1, 0, 0, 0, -2), (0, -1, 2, 1, 1, -1)])


def test_what_is_cut_off_altogether():
    check(
        pad(), [(0, -3, 0, 0, 0, 0), (0, -3, 0, 0, 0, 1), (0, 0, -5, 0, 0, 2), (0, -4, 0, 0, 4, 0), (0, 4, 0, 0, -5, 0)]
    )


def test_edges_as_wide_as_one_likes():
    check(pad(mode="edge"), [(0, 9, 0, 0, 0, 9)])
    check(pad(mode="wrap"), [(0, 9, 0, 0, 0, 9)])


def test_some_axes():
    axes = tensor("axes", np.array([-1, 0]))
    check(pad(4, ["", "axes"], tensors=[axes]), [(0, 2, 1, 0), (1, 0, 0, -1)])
    check(pad(4, ["", "axes"], tensors=[axes], mode="edge"), [(0, 2, 1, 0), (1, 0, 0, -1)])


def test_axes_that_are_computed_are_refused():
    with pytest.raises(UnsupportedOperatorError, match="Pad 'y': its axes are computed; make 'axes'"):
        tvm_rammer.compile(pad(4, ["", "axes"], inputs=[value("axes", [2], INT64)]), cache=False)


def test_a_value_that_is_computed():
    proto = pad(more=["fill"], inputs=[value("fill", [])])
    check(proto, [(0, 1, 1, 0, 0, 2)], fill=np.array(3, "float32"))


def test_to_a_multiple_of_32():
    """Of as many columns as the data choose; a convolution reads what it makes."""
    proto = model(
        [
            node("NonZero", ["chosen"], ["found"]),
            node("Squeeze", ["found", "first"], ["columns"]),
            node("Gather", ["x", "columns"], ["g"], axis=2),
            node("Shape", ["g"], ["shape"]),
            node("Slice", ["shape", "two", "three"], ["width"]),
            node("Neg", ["width"], ["less"]),
            node("Mod", ["less", "many"], ["lacks"]),
            node("Concat", ["zeros", "lacks"], ["pads"], axis=0),
            node("Pad", ["g", "pads"], ["p"]),
            node("Conv", ["p", "w"], ["y"]),
        ],
        [value("x", [1, 2, 40]), value("chosen", [40], BOOL)],
        ["y"],
        [
            *(tensor(name, np.array([n])) for name, n in (("first", 0), ("two", 2), ("three", 3), ("many", 32))),
            tensor("zeros", np.zeros(5, np.int64)),
            tensor("w", random(3, 2, 5)),
        ],
    )
    module = tvm_rammer.compile(proto, cache=False)
    for count in (5, 32, 33, 0):
        arrays = {"x": random(1, 2, 40), "chosen": np.arange(40) < count}
        if count:
            np.testing.assert_allclose(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0], 1e-4, 1e-5)
    with pytest.raises(ModelError):  # there is no image
        module.run(None, arrays)


@pytest.mark.parametrize(
    "pads",
    [(0, -2, 0, 0, -2, 0), (0, 0, 10**12, 0, 0, 0), (0, 0, -(2**63), 0, 0, 2**63 - 1), (2**62, 0, 2**62, 0, 2**62, 0)],
)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_impossible_pads_end_the_call(mode, pads):
    with pytest.raises(ModelError, match="mend the data of 'pads'"):
        MODULES[mode](random(*SHAPE), np.array(pads))


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_there_is_no_edge_of_nothing(mode):
    with pytest.raises(ModelError, match=r"Pad 'y' got pads that leave nothing .*; mend the data of 'pads'"):
        MODULES[mode](random(*SHAPE), np.array((0, -4, 0, 0, 4, 0)))


class _Modules(dict):
    """Modules by their mode, compiled once."""

    def __missing__(self, mode):
        self[mode] = tvm_rammer.compile(pad(mode=mode), cache=False)
        return self[mode]


MODULES = _Modules()
