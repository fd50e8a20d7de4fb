"""Large results are written into arrays of their own; those that a model does not make itself are copied."""

import numpy as np
import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tests.relay_passes.models import model, node, value

SHAPE = (128, 128)
X = np.random.default_rng(0).standard_normal(SHAPE).astype("float32")


def module_of(build):
    return tvm_rammer.compile(relax_module([SHAPE], build), cache=False)


def test_each_call_has_an_array_of_its_own():
    module = module_of(relax.op.nn.relu)
    first, second = module(X), module(-X)
    np.testing.assert_array_equal(first, np.maximum(X, 0))
    np.testing.assert_array_equal(second, np.maximum(-X, 0))
    assert first.flags.writeable and first.flags.c_contiguous
    first[:] = 7
    np.testing.assert_array_equal(module(X), np.maximum(X, 0))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: relax.Tuple([relax.op.nn.relu(x), x]),
        lambda x: relax.Tuple([x, relax.const(np.ones(SHAPE, "float32")), relax.op.nn.relu(x)]),
    ],
)
def test_inputs_and_constants_that_are_returned_are_copied(build):
    module = module_of(build)
    results = module(X)
    wanted = [np.array(result) for result in results]
    for result in results:
        result[:] = 7
    for again, want in zip(module(X), wanted, strict=True):
        np.testing.assert_array_equal(again, want)


def test_results_keep_their_structure():
    module = module_of(
        lambda x: relax.Tuple([relax.Tuple([relax.op.nn.relu(x), relax.op.negative(x)]), relax.op.exp(x)])
    )
    (left, right), last = module(X)
    np.testing.assert_array_equal(left, np.maximum(X, 0))
    np.testing.assert_array_equal(right, -X)
    np.testing.assert_allclose(last, np.exp(X), rtol=1e-6)


def test_a_tensor_that_is_returned_twice_is_two_arrays():
    def build(x):
        y = relax.op.nn.relu(x)
        return relax.Tuple([y, y])

    first, second = module_of(build)(X)
    first[:] = 7
    np.testing.assert_array_equal(second, np.maximum(X, 0))


def test_beside_an_input_without_elements():
    """Its extents are open for TVM."""
    nodes = [node("Relu", ["x"], ["y"]), node("Neg", ["e"], ["z"])]
    proto = model(nodes, [value("x", SHAPE), value("e", [2, "n"])], ["y", "z"])
    module = tvm_rammer.compile(proto, shapes={"e": (2, 0)}, cache=False)
    empty = np.zeros((2, 0), "float32")
    large, none = module(X, empty)
    np.testing.assert_array_equal(large, np.maximum(X, 0))
    assert none.shape == (2, 0)
    bound = module.bind({"x": X, "e": empty})()
    np.testing.assert_array_equal(bound["y"], large)
