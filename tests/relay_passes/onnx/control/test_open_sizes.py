"""Branches and bodies that read, or return, what is as large as the data say, against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes.onnx.inline import all_nodes

from ...models import by_onnxruntime, model, node, random, tensor, value

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64
ROWS = [
    node("NonZero", ["chosen"], ["found"]),
    node("Squeeze", ["found", "axis"], ["rows"]),
    node("Gather", ["x", "rows"], ["g"]),
    node("ReduceSum", ["x"], ["sum"], keepdims=0),
    node("Greater", ["sum", "nothing"], ["positive"]),
]
"""As many rows of "x" as the data choose, and a condition."""

TENSORS = [
    tensor("axis", np.array([0])),
    tensor("nothing", np.float32(0)),
    tensor("zero", np.array(0)),
    tensor("on", np.array(True)),
    tensor("one", np.array([1])),
    tensor("last", np.array([np.iinfo(np.int64).max])),
    tensor("row", np.ones((1, 3), "float32")),
    tensor("first", np.zeros(3, "float32")),
    tensor("none", np.zeros((0, 3), "float32")),
    tensor("w", random(3, 4)),
    tensor("far", np.array([9])),
]
CHOSEN = ([1, 0, 1, 1, 0], [0] * 5, [1] * 5)


def branch(name, *nodes):
    return helper.make_graph(list(nodes), name, [], [value(nodes[-1].output[0], None)])


def of(*nodes, outputs=("y",)):
    inputs = [value("x", [5, 3]), value("chosen", [5], BOOL), value("count", [], INT64)]
    return model([*ROWS, *nodes], inputs, list(outputs), TENSORS, opset=18)


def by_condition(condition, then, other, *after):
    return of(node("If", [condition], ["y"], then_branch=then, else_branch=other), *after)


TWICE = branch("twice", node("Add", ["g", "g"], ["t"]))
SQUARED = branch("squared", node("Mul", ["g", "g"], ["m"]))
ALL = branch("all", node("Identity", ["x"], ["e"]))
EMPTY = branch("empty", node("Identity", ["none"], ["e"]))
IFS = {
    "a static result": by_condition(
        "positive",
        branch("sum", node("ReduceSum", ["g"], ["s"], keepdims=0)),
        branch("max", node("ReduceMax", ["x"], ["m"], keepdims=0)),
    ),
    "open results": by_condition("positive", TWICE, SQUARED),
    "an open result or a static one": by_condition("positive", TWICE, ALL),
    "two static ones": by_condition("positive", ALL, EMPTY),
    "a product reads it": of(
        node("If", ["positive"], ["i"], then_branch=TWICE, else_branch=EMPTY), node("MatMul", ["i", "w"], ["y"])
    ),
    "whether there are any": of(
        node("Size", ["rows"], ["n"]),
        node("Equal", ["n", "zero"], ["empty"]),
        node("If", ["empty"], ["y"], then_branch=EMPTY, else_branch=SQUARED),
    ),
    "one within another": by_condition(
        "positive", branch("inner", node("If", ["on_"], ["t"], then_branch=TWICE, else_branch=ALL)), SQUARED
    ),
}
LATER = [node("Concat", ["row", "g"], ["c"], axis=0), node("Slice", ["c", "one", "last"], ["e"])]
IFS["all rows but the first one"] = of(
    node("If", ["positive"], ["i"], then_branch=branch("later", *LATER), else_branch=branch("again", *LATER)),
    node("CumSum", ["i", "zero"], ["y"]),
)
IFS["one within another"].graph.node.insert(5, node("Not", ["positive"], ["on_"]))


def check(proto, counts=(2,)):
    module = tvm_rammer.compile(proto, cache=False)
    for chosen in CHOSEN:
        for sign in (1, -1):
            for count in counts:
                arrays = {"x": sign * abs(random(5, 3)), "chosen": np.array(chosen, bool), "count": np.array(count)}
                for got, want in zip(module.run(None, arrays), by_onnxruntime(proto, **arrays), strict=True):
                    assert (got.shape, got.dtype) == (want.shape, want.dtype)
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["/m/g", "a+b", "12"])
def test_names_that_look_like_arithmetic(name):
    """TVM's frontend reads expressions and numbers in the names of sizes, which are made of the names of values."""
    proto = onnx.ModelProto()
    proto.CopyFrom(IFS["open results"])
    for each in all_nodes(proto.graph):
        for names in (each.input, each.output):
            names[:] = [name if old == "g" else old for old in names]
    check(proto)


@pytest.mark.parametrize("name", IFS)
def test_if(name):
    check(IFS[name])


def body(*nodes, collects=()):
    inputs = [value("i", [], INT64), value("before", [], BOOL), value("state", [3])]
    outputs = [value("again", [], BOOL), value("next", [3]), *(value(name, [3]) for name in collects)]
    return helper.make_graph([node("Identity", ["before"], ["again"]), *nodes], "body", inputs, outputs)


def test_loop_reads_rows():
    inner = body(node("ReduceMax", ["x", "axis"], ["r"], keepdims=0), node("Add", ["state", "r"], ["next"]))
    check(of(node("Loop", ["count", "on", "first"], ["y"], body=inner)), counts=(0, 3))


def test_loop_over_rows():
    """As many rounds as there are rows, one after another; what each makes is collected."""
    steps = [node("Gather", ["g", "i"], ["r"]), node("Add", ["state", "r"], ["next"]), node("Neg", ["next"], ["c"])]
    count = [node("Shape", ["g"], ["shape"]), node("Gather", ["shape", "zero"], ["n"])]
    loop = node("Loop", ["n", "on", "first"], ["y", "z"], body=body(*steps, collects=["c"]))
    check(of(*count, loop, outputs=("y", "z")))


def test_a_branch_that_cannot_run_is_refused_when_it_is_chosen():
    """The other one returns what is as large as the data say."""
    bad = branch("bad", node("Split", ["x"], ["a", "b"], num_outputs=2), node("Gemm", ["a", "b"], ["e"]))
    module = tvm_rammer.compile(by_condition("positive", TWICE, bad), cache=False)
    rows = np.array([1, 0, 0, 0, 1], bool)
    assert module(np.ones((5, 3), "float32"), rows, np.array(0)).shape == (2, 3)
    with pytest.raises(ModelError, match="else_branch"):
        module(-np.ones((5, 3), "float32"), rows, np.array(0))


def test_an_index_outside_ends_the_call():
    outside = branch("outside", node("Gather", ["g", "far"], ["t"]))
    module = tvm_rammer.compile(by_condition("positive", outside, TWICE), cache=False)
    rows = np.array([1, 0, 0, 0, 1], bool)
    assert module(-np.ones((5, 3), "float32"), rows, np.array(0)).shape == (2, 3)
    with pytest.raises(ModelError):
        module(np.ones((5, 3), "float32"), rows, np.array(0))


def test_sizes_that_do_not_fit_end_the_call():
    """A branch adds what has as many rows as the data chose to all rows."""
    module = tvm_rammer.compile(
        by_condition("positive", branch("add", node("Add", ["x", "g"], ["t"])), ALL), cache=False
    )
    assert module(np.ones((5, 3), "float32"), np.ones(5, bool), np.array(0)).shape == (5, 3)
    with pytest.raises(ModelError):
        module(np.ones((5, 3), "float32"), np.array([1, 1, 0, 0, 0], bool), np.array(0))


def test_other_ranks_are_refused():
    with pytest.raises(UnsupportedOperatorError, match=r"float32\[\?, 3\] and float32\[3\]"):
        tvm_rammer.compile(
            by_condition("positive", TWICE, branch("r", node("ReduceMax", ["g", "axis"], ["m"], keepdims=0))),
            cache=False,
        )
