"""Branches that fit nothing: what is wrong with them is told when they are chosen."""

import numpy as np
import pytest

import tvm_rammer
from tvm_rammer.errors import LongLoopError, ModelError
from tvm_rammer.relay_passes import load_model

from ...models import node, random, tensor, value
from .test_control import X, branch, deciding


def _int64(*numbers):
    return np.array(numbers, np.int64)


WRONG = {
    "LSTM": (node("LSTM", ["x", "a", "b"], ["{s}"], hidden_size=6), random(1, 24, 6), random(1, 24, 6)),
    "GRU": (node("GRU", ["x", "a", "b"], ["{s}"], hidden_size=6), random(1, 18, 6), random(1, 18, 6)),
    "Conv": (node("Conv", ["x", "a"], ["{s}"]), random(2, 3, 3, 3)),
    "MaxPool": (node("MaxPool", ["x"], ["{s}"], kernel_shape=[2, 2]),),
    "Concat": (node("Concat", ["x", "a"], ["{s}"], axis=0), random(4, 5)),
    "Reshape": (node("Reshape", ["x", "a"], ["{s}"]), _int64(5, 5)),
    "Squeeze": (node("Squeeze", ["x", "a"], ["{s}"]), _int64(0)),
    "Split": (node("Split", ["x", "a"], ["{s}", "{t}"], axis=0), _int64(3, 3)),
    "Expand": (node("Expand", ["x", "a"], ["{s}"]), _int64(7, 7)),
    "TopK": (node("TopK", ["x", "a"], ["{s}", "{t}"]), _int64(99)),
    "Einsum": (node("Einsum", ["x"], ["{s}"], equation="abc->a"),),
    "Resize": (node("Resize", ["x", "", "a"], ["{s}"]), np.array([-1, 1], np.float32)),
    "Pad": (node("Pad", ["x", "a"], ["{s}"]), _int64(1, 1)),
    "ReduceSum": (node("ReduceSum", ["x", "a"], ["{s}"]), _int64(5)),
    "Transpose": (node("Transpose", ["x"], ["{s}"], perm=[0, 2, 1]),),
    "InstanceNormalization": (node("InstanceNormalization", ["x", "a", "b"], ["{s}"]), random(3), random(3)),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_with_a_branch_is_told_when_it_is_chosen(kind):
    wrong, *constants = WRONG[kind]
    tensors = [tensor(name, constant) for name, constant in zip("ab", constants, strict=False)]
    proto = deciding(branch([node("Neg", ["x"], ["e"])], "e"), branch([wrong], "{s}", tensors=tensors))
    proto.graph.input[0].CopyFrom(value("x", ["rows", 6]))
    proto.opset_import[0].version = 23
    module = tvm_rammer.compile(proto, shapes={"x": (4, 6)}, cache=False)
    np.testing.assert_array_equal(module(x=abs(X)), -abs(X))
    with pytest.raises(ModelError, match=f"the else_branch of If 'which' cannot be compiled .*{kind}"):
        module(x=-abs(X))


def test_a_loop_in_a_branch_that_is_too_long_to_be_unrolled_is_told_at_once():
    """The compiler then keeps the model's loops; a branch that is refused would never run."""
    layer = node("LSTM", ["long", "a", "b"], ["", "{s}"], hidden_size=6)
    arrays = {"long": random(5000, 1, 6), "a": random(1, 24, 6), "b": random(1, 24, 6)}
    proto = deciding(
        branch([node("Neg", ["x"], ["e"])], "e"),
        branch([layer], "{s}", tensors=[tensor(n, a) for n, a in arrays.items()]),
    )
    with pytest.raises(LongLoopError, match="5000"):
        load_model(proto, loops=False)
