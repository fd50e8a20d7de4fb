"""Operators that are lowered for known sizes, and for as many rows as only the data say; against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import ModelError

from ...models import by_onnxruntime, model, node, random, tensor, value

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64
CHOICES = [(1, 0, 1, 1), (0, 0, 0, 1), (1, 1, 1, 1)]


def chosen(nodes, shape, axis, more=(), constants=()):
    """Nodes that read "r", the rows of "x" that the data choose."""
    rows = node("Compress", ["x", "chosen"], ["r"], axis=axis)
    inputs = [value("x", shape), value("chosen", [shape[axis]], BOOL), *more]
    return model([rows, *nodes], inputs, ["y"], [tensor(name, np.array(n)) for name, n in constants])


def check(proto, shape, **more):
    module = tvm_rammer.compile(proto, cache=False)
    for choice in CHOICES:
        arrays = {"x": random(*shape), "chosen": np.array(choice, bool), **more}
        (got,), (want,) = module.run(None, arrays), by_onnxruntime(proto, **arrays)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return module


@pytest.mark.parametrize("time", [0, 1])
@pytest.mark.parametrize("open_axis", [0, 1])
def test_sequences_backwards(open_axis, time):
    """Steps, or sequences, whose number only the data say."""
    shape = [4, 5, 2] if open_axis == 0 else [5, 4, 2]
    backwards = node("ReverseSequence", ["r", "l"], ["y"], time_axis=time, batch_axis=1 - time)
    if open_axis == time:
        check(chosen([backwards], shape, time, [value("l", [5], INT64)]), shape, l=np.ones(5, np.int64))
        return
    lengths = node("Compress", ["lengths", "chosen"], ["l"], axis=0)
    proto = chosen([lengths, backwards], shape, open_axis, [value("lengths", [4], INT64)])
    module = check(proto, shape, lengths=np.array([1, 2, 5, 4]))
    with pytest.raises(ModelError):  # there are no six steps
        module.run(None, {"x": random(*shape), "chosen": np.ones(4, bool), "lengths": np.array([1, 2, 6, 4])})


@pytest.mark.parametrize("shape", [(4, 3, 3), (4, 2, 1, 1), (4, 2, 2, 2)])
def test_determinants(shape):
    check(chosen([node("Det", ["r"], ["y"])], shape, 0), shape)


@pytest.mark.parametrize("target", [(1, 3, 2), (2, 1, 1, 2), (2,)])
def test_a_known_shape_of_rows_that_stay(target):
    check(chosen([node("Expand", ["r", "to"], ["y"])], (4, 1, 2), 0, constants=[("to", target)]), (4, 1, 2))


def test_a_known_shape_of_rows_that_may_be_one():
    proto = chosen([node("Expand", ["r", "to"], ["y"])], (4, 1), 0, constants=[("to", (3, 2))])
    module, x = tvm_rammer.compile(proto, cache=False), random(4, 1)
    for choice in CHOICES[:2]:
        arrays = {"x": x, "chosen": np.array(choice, bool)}
        np.testing.assert_array_equal(module.run(None, arrays)[0], by_onnxruntime(proto, **arrays)[0])
    with pytest.raises(ModelError, match="sizes"):
        module.run(None, {"x": x, "chosen": np.array(CHOICES[2], bool)})


@pytest.mark.parametrize("how", [{}, {"keepdims": 0}])
def test_parts_of_an_axis_that_is_known(how):
    """The sequence is resolved: its length and each of its elements are known."""
    nodes = [
        *(node("SplitToSequence", ["r"], ["s"], axis=1, **how), node("SequenceAt", ["s", "last"], ["a"])),
        *(node("SequenceErase", ["s", "last"], ["t"]), node("ConcatFromSequence", ["t"], ["b"], axis=1)),
        *(node("Flatten", ["a"], ["u"]), node("Flatten", ["b"], ["v"]), node("Concat", ["u", "v"], ["y"], axis=1)),
    ]
    check(chosen(nodes, (4, 3, 2), 0, constants=[("last", 2)]), (4, 3, 2))


LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@pytest.mark.parametrize(
    "bounds",
    [
        ([-1], [LEAST], [0], [-1]),  # as PyTorch's flip
        ([-1, MOST], [LEAST + 1, LEAST], [0, 1], [-1, -1]),
        ([MOST], [LEAST], [0], [-2]),
        ([-2, 1], [LEAST, 3], [0, 1], [-1, 1]),  # of one row, that one
        ([-1], [0], [0], [-1]),
    ],
)
def test_slices_backwards(bounds):
    names = ["begins", "ends", "axes", "steps"]
    nodes = [node("Slice", ["r", *names], ["s"]), node("Mul", ["s", "two"], ["y"])]
    constants = [*zip(names, bounds, strict=True), ("two", np.float32(2))]
    check(chosen(nodes, (4, 3), 0, constants=constants), (4, 3))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_places_as_many_as_updates_by_another_name(reduction):
    """The indices are a Range up to a size, the updates what the data chose."""
    nodes = [
        *(node("Shape", ["r"], ["n"], end=1), node("Squeeze", ["n"], ["count"])),
        *(node("Range", ["zero", "count", "one"], ["places"]), node("Unsqueeze", ["places", "last"], ["indices"])),
        node("ScatterND", ["base", "indices", "r"], ["y"], reduction=reduction),
    ]
    constants = [("zero", 0), ("one", 1), ("last", [1]), ("base", random(5, 3, seed=1))]
    check(chosen(nodes, (4, 3), 0, constants=constants), (4, 3))


WRONG = {
    "ScatterND 'y'.* got updates of another shape than its indices ask for": [
        node("ScatterND", ["base", "indices", "r"], ["y"])
    ],
    "Squeeze 'y'.* got an axis that does not have one element": [node("Squeeze", ["r", "zero"], ["y"])],
    "Split 'y'.* got sizes of parts that do not make up its axis": [node("Split", ["r", "parts"], ["y", "z"], axis=0)],
}


@pytest.mark.parametrize("message", WRONG)
def test_sizes_that_do_not_fit_end_the_call_by_the_name_of_the_operator(message):
    constants = [("base", random(5, 3)), ("indices", [[0], [1]]), ("zero", [0]), ("parts", [1, 1])]
    module = tvm_rammer.compile(chosen(WRONG[message], (4, 3), 0, constants=constants), cache=False)
    with pytest.raises(ModelError, match=f"{message}; mend the data of 'x'"):
        module.run(None, {"x": random(4, 3), "chosen": np.array(CHOICES[0], bool)})
