"""Reductions along axes that come when the model runs, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import ModelError, UnsupportedOperatorError

from ...models import by_onnxruntime, model, node, random, tensor, value

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64
KINDS = [
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
]
SHAPE = [2, 3, 4]


def reduction(kind, count=2, shape=SHAPE, elem=TensorProto.FLOAT, after=(), **attributes):
    """One of so many axes; nodes that follow read "r" and make "y"."""
    nodes = [node(kind, ["x", "axes"], ["r" if after else "y"], **attributes), *after]
    given = [value("x", shape, elem), value("axes", [count], INT64)]
    return model(nodes, given, [value("y", None, elem)], opset=20, ir=9)


def check(proto, x, *every):
    module = tvm_rammer.compile(proto, cache=False)
    for axes in every:
        arrays = {"x": x, "axes": np.array(axes, np.int64)}
        (got,), (want,) = module.run(None, arrays), by_onnxruntime(proto, **arrays)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), 1e-5, 1e-5)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_all_of_them(kind, keepdims):
    check(reduction(kind, keepdims=keepdims), np.abs(random(*SHAPE)), (0, 2), (-1, 1), (1, 0), (-2, -3))


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_as_many_as_there_are(count, keepdims):
    check(reduction("ReduceMean", count, keepdims=keepdims), random(*SHAPE), (2, 0, 1)[:count], (-1, -2, -3)[:count])


@pytest.mark.parametrize("kind", KINDS)
def test_no_axes_that_mean_none(kind):
    check(reduction(kind, 0, noop_with_empty_axes=1), np.abs(random(*SHAPE)), ())


def test_axes_where_none_would_mean_none():
    check(reduction("ReduceSum", 1, noop_with_empty_axes=1, keepdims=0), random(*SHAPE), (1,), (-1,))


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMean", "ReduceL2", "ReduceProd", "ReduceSum"])
def test_whole_numbers(kind):
    x = np.arange(-12, 12, dtype="int32").reshape(SHAPE)
    check(reduction(kind, elem=TensorProto.INT32), x, (0, 2), (1, -1))


def test_truth_values():
    proto = reduction("ReduceMax", 1, elem=BOOL, keepdims=0)
    check(proto, random(*SHAPE) > 0.5, (0,), (1,), (2,))


def test_half_precision_is_summed_in_single():
    x = np.full((2, 4096), 1.0009765625, "float16")
    check(reduction("ReduceSum", 1, x.shape, TensorProto.FLOAT16), x, (1,), (0,))


def test_infinities_in_a_logarithm_of_powers():
    x = np.array([[np.inf, 1.0], [-np.inf, -np.inf], [1000.0, 1001.0]], "float32")
    check(reduction("ReduceLogSumExp", 1, x.shape), x, (0,), (1,))


def test_axes_of_one_element_and_of_none():
    check(reduction("ReduceSum", 1, [1, 3, 1]), random(1, 3, 1), (0,), (1,), (2,))
    check(reduction("ReduceSum", 1, [2, 0, 3]), random(2, 0, 3), (0,), (1,), (2,))


def test_no_axis_of_a_single_number():
    check(reduction("ReduceMean", 0, []), np.array(3, "float32"), ())


def test_what_follows_knows_how_many_axes_there_are():
    after = [node("Transpose", ["r"], ["t"], perm=[1, 0]), node("Softmax", ["t"], ["y"], axis=-1)]
    check(reduction("ReduceMean", 1, keepdims=0, after=after), random(*SHAPE), (0,), (1,), (-1,))


def test_what_was_reduced_is_broadcast_to_the_data():
    """As in a softmax that is spelled out; an exponential and what spreads it for the sum are no one function."""
    after = [
        *(node("Sub", ["x", "r"], ["d"]), node("Exp", ["d"], ["e"]), node("ReduceSum", ["e", "axes"], ["s"])),
        node("Div", ["e", "s"], ["y"]),
    ]
    check(reduction("ReduceMax", after=after), random(*SHAPE), (0, 2), (1, -1), (1, 0))


def test_axes_whose_number_is_computed():
    nodes = [
        node("NonZero", ["chosen"], ["found"]),
        node("Squeeze", ["found", "first"], ["axes"]),
        node("ReduceMean", ["x", "axes"], ["y"]),
    ]
    given = [value("x", SHAPE), value("chosen", [3], BOOL)]
    proto = model(nodes, given, ["y"], [tensor("first", np.array([0]))], opset=20, ir=9)
    module, x = tvm_rammer.compile(proto, cache=False), random(*SHAPE)
    for chosen in np.ndindex(2, 2, 2):
        arrays = {"x": x, "chosen": np.array(chosen, bool)}
        np.testing.assert_allclose(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0], 1e-5, 1e-5)
    nodes[-1].attribute.append(node("ReduceMean", [], [], keepdims=0).attribute[0])
    proto = model(nodes, given, ["y"], [tensor("first", np.array([0]))], opset=20, ir=9)
    with pytest.raises(UnsupportedOperatorError, match=r"ReduceMean 'y': how many axes .*; make 'axes', .*fix_inputs"):
        tvm_rammer.compile(proto, cache=False)


def test_data_whose_sizes_only_the_data_say():
    nodes = [
        node("Compress", ["x", "chosen"], ["rows"], axis=0),
        node("ReduceMax", ["rows", "axes"], ["y"], keepdims=0),
    ]
    given = [value("x", SHAPE), value("chosen", [2], BOOL), value("axes", [2], INT64)]
    proto = model(nodes, given, ["y"], opset=20, ir=9)
    module, x = tvm_rammer.compile(proto, cache=False), random(*SHAPE)
    for axes in ((0, 1), (1, 2), (-1, 0)):
        arrays = {"x": x, "chosen": np.array([False, True]), "axes": np.array(axes)}
        np.testing.assert_array_equal(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0])


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [(0, 3), (-4, 0), (2**40, 1), (-(2**63), 0)])
def test_axes_that_there_are_not_end_the_call(axes, keepdims):
    with pytest.raises(ModelError, match=r"ReduceSum 'y' got an axis that data of 3 axes do not have; .* 'axes'"):
        MODULES[keepdims](random(*SHAPE), np.array(axes))


def test_an_axis_that_is_named_twice():
    """Where axes do not stay nobody would know how many there are left."""
    np.testing.assert_allclose(
        np.asarray(MODULES[1](np.ones(SHAPE, "float32"), np.array((0, -3)))), np.full((1, 3, 4), 2)
    )
    with pytest.raises(ModelError, match="ReduceSum 'y' got an axis twice; mend the data of 'axes'"):
        MODULES[0](random(*SHAPE), np.array((0, -3)))


def test_more_axes_than_there_are():
    with pytest.raises(UnsupportedOperatorError, match="ReduceSum 'y': it reduces 4 axes of 3"):
        tvm_rammer.compile(reduction("ReduceSum", 4, keepdims=0), cache=False)


class _Modules(dict):
    """Modules of a sum by whether axes stay, compiled once."""

    def __missing__(self, keepdims):
        self[keepdims] = tvm_rammer.compile(reduction("ReduceSum", keepdims=keepdims), cache=False)
        return self[keepdims]


MODULES = _Modules()
