"""Loops whose states change their sizes, as decoders keep all words so far, against ONNX Runtime."""

import itertools

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tvm_rammer.errors import ModelError, UnsupportedOperatorError

from ...models import by_onnxruntime, model, node, random, tensor, value

BOOL, FLOAT, INT64 = TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT64
TENSORS = [
    tensor("words", random(16, 8)),
    tensor("w", random(8, 16, seed=1)),
    tensor("u", random(8, 8, seed=2)),
    tensor("start", np.array([[1]])),
    tensor("nothing", np.zeros((1, 0), np.int64)),
    tensor("no_keys", np.zeros((1, 0, 8), np.float32)),
    tensor("end", np.array([[3]])),
    tensor("axis", np.array([1])),
    tensor("front", np.array([0])),
    tensor("six", np.array(6)),
    tensor("three", random(1, 3, 8, seed=5)),
    tensor("zero", np.float32(0)),
]
UNTIL = [node("ReduceMax", ["h"], ["top"], keepdims=0), node("Less", ["top", "stop"], ["again"])]
"""A round is the last one where a hidden state, "h", passes a bound."""

APPEND = [node("MatMul", ["x", "u"], ["q"]), node("Unsqueeze", ["q", "axis"], ["k"])]
ATTEND = [
    node("Transpose", ["keys2"], ["turned"], perm=[0, 2, 1]),
    node("MatMul", ["k", "turned"], ["scores"]),
    node("Softmax", ["scores"], ["shares"], axis=-1),
    node("MatMul", ["shares", "keys2"], ["mixed"]),
    node("Squeeze", ["mixed", "axis"], ["m"]),
    node("Tanh", ["m"], ["h"]),
]


def body(nodes, states, collects=()):
    """Of states `(name, next name, type, sizes)`."""
    inputs = [value("i", [], INT64), value("before", [], BOOL)]
    inputs += [value(name, sizes, kind) for name, _, kind, sizes in states]
    outputs = [value("again", [], BOOL), *(value(after, sizes, kind) for _, after, kind, sizes in states)]
    return helper.make_graph(list(nodes), "body", inputs, [*outputs, *(value(name, None) for name in collects)])


CHOOSE = [
    node("Greater", ["x0", "zero"], ["positive"]),
    node("Squeeze", ["positive"], ["flags"]),
    node("Compress", ["u", "flags"], ["rows"], axis=0),
    node("Unsqueeze", ["rows", "front"], ["chosen"]),
]
"""As many keys to begin with as the data say."""


def looped(inner, first, outputs, *after, results=(), rounds="rounds"):
    loop = node("Loop", [rounds, "", *first], list(outputs), name="decode", body=inner)
    inputs = [value("rounds", [], INT64), value("x0", [1, 8]), value("stop", [])]
    return model([*CHOOSE, loop, *after], inputs, list(results or outputs), TENSORS, opset=17)


KEYS, STATE = ("keys", "keys2", FLOAT, [1, None, 8]), ("x", "h", FLOAT, [1, 8])
SAID = value("y", [1, None], INT64)
WORDS = ("said", "said2", INT64, [1, None])
NAMING = [
    node("Gather", ["words", "said"], ["e"]),
    node("ReduceSum", ["e", "axis"], ["all"], keepdims=0),
    node("Add", ["all", "x0"], ["m"]),
    node("Tanh", ["m"], ["h"]),
    node("MatMul", ["h", "w"], ["logits"]),
    node("ArgMax", ["logits"], ["word"], axis=1),
    node("Concat", ["said", "word"], ["said2"], axis=1),
]
"""The next word, of the sum of all words so far."""

KEEPING = [*APPEND, node("Concat", ["keys", "k"], ["keys2"], axis=1), *ATTEND]
LOOPS = {
    "words": looped(body([*NAMING, *UNTIL], [WORDS]), ["start"], ["y"], results=[SAID]),
    "words, from none": looped(body([*NAMING, *UNTIL], [WORDS]), ["nothing"], ["y"], results=[SAID]),
    "words and numbers": looped(
        body([*NAMING, *UNTIL], [WORDS, ("last", "h", FLOAT, [1, 8])]), ["start", "x0"], ["y", "z"], results=[SAID, "z"]
    ),
    "keys": looped(body([*KEEPING, *UNTIL], [KEYS, STATE]), ["no_keys", "x0"], ["y", "z"]),
    "keys, and what is collected": looped(
        body([*KEEPING, *UNTIL, node("Neg", ["h"], ["row"])], [KEYS, STATE], ["row"]),
        ["no_keys", "x0"],
        ["y", "z", "r"],
    ),
    "two that grow together": looped(
        body(
            [
                *APPEND,
                node("Concat", ["keys", "k"], ["keys2"], axis=1),
                node("Neg", ["k"], ["n"]),
                node("Concat", ["others", "n"], ["others2"], axis=1),
                node("Mul", ["keys2", "others2"], ["product"]),
                node("ReduceMean", ["product"], ["m"], axes=[1], keepdims=0),
                node("Sigmoid", ["m"], ["h"]),
                *UNTIL,
            ],
            [KEYS, ("others", "others2", FLOAT, [1, None, 8]), STATE],
        ),
        ["no_keys", "no_keys", "x0"],
        ["y", "z", "last"],
    ),
    "one that is only long after a branch": looped(
        body(
            [
                *APPEND,
                node("ReduceMax", ["x"], ["most"], keepdims=0),
                node("Greater", ["most", "zero"], ["longer"]),
                node(
                    "If",
                    ["longer"],
                    ["keys2"],
                    then_branch=helper.make_graph(
                        [node("Concat", ["keys", "k"], ["t"], axis=1)], "then", [], [value("t", None)]
                    ),
                    else_branch=helper.make_graph([node("Identity", ["keys"], ["e"])], "else", [], [value("e", None)]),
                ),
                node("Neg", ["x"], ["h"]),
                *UNTIL,
            ],
            [KEYS, STATE],
        ),
        ["no_keys", "x0"],
        ["y", "z"],
    ),
    "read behind": looped(
        body([*KEEPING, *UNTIL], [KEYS, STATE]),
        ["no_keys", "x0"],
        ["y", "z"],
        node("ReduceSum", ["y", "axis"], ["s"], keepdims=0),
        node("MatMul", ["s", "w"], ["o"]),
        results=["o", "z"],
    ),
    "twice as large each round": looped(
        body([node("Concat", ["keys", "keys"], ["keys2"], axis=1), node("Neg", ["x"], ["h"]), *UNTIL], [KEYS, STATE]),
        ["three", "x0"],
        ["y", "z"],
    ),
    "keys, and what is collected, of few rounds": looped(
        body([*KEEPING, *UNTIL, node("Neg", ["h"], ["row"])], [KEYS, STATE], ["row"]),
        ["no_keys", "x0"],
        ["y", "z", "r"],
        rounds="six",
    ),
    "one after another": looped(
        body([*KEEPING, *UNTIL], [KEYS, STATE]),
        ["no_keys", "x0"],
        ["y", "z"],
        node(
            "Loop", ["rounds", "", "y", "z"], ["y2", "z2"], name="again", body=body([*KEEPING, *UNTIL], [KEYS, STATE])
        ),
        results=["y2", "z2"],
    ),
    "from rows that the data choose": looped(
        body(
            [*KEEPING, *UNTIL, node("Identity", ["same"], ["same2"])],
            [KEYS, ("same", "same2", FLOAT, [1, None, 8]), STATE],
        ),
        ["chosen", "chosen", "x0"],
        ["y", "s", "z"],
    ),
}


def feeds():
    for rounds, stop in itertools.product((0, 1, 5), (-9, 0.5, 9)):
        yield {"rounds": np.array(rounds), "x0": random(1, 8, seed=9), "stop": np.array(stop, "float32")}


def agree(module, proto):
    for feed in feeds():
        used = {i.name: feed[i.name] for i in proto.graph.input}
        for got, want in zip(module.run(None, used), by_onnxruntime(proto, **used), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LOOPS)
def test_states_grow(name):
    agree(tvm_rammer.compile(LOOPS[name], cache=False), LOOPS[name])


def test_many_rounds():
    proto = LOOPS["keys"]
    feed = {"rounds": np.array(300), "x0": random(1, 8, seed=9), "stop": np.array(9, "float32")}
    got = tvm_rammer.compile(proto, cache=False).run(None, feed)
    assert got[0].shape == (1, 300, 8)
    np.testing.assert_allclose(got[1], by_onnxruntime(proto, **feed)[1], rtol=1e-3, atol=1e-4)


def test_a_saved_module_and_several_threads(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    proto = LOOPS["keys, and what is collected"]
    compiled = tvm_rammer.compile(proto, cache=False)
    module = tvm_rammer.load(compiled.save(tmp_path / "grows.rammer"))
    assert [plan.grows for plan in (compiled.exploration.best, module.exploration.best)] == [True, True]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(agree, module, proto) for _ in range(4)]:
            done.result()


def test_a_loop_that_the_data_end_with_states_of_one_size_does_not_grow():
    """Its memory is kept for the next round, which is faster."""
    module = tvm_rammer.compile(looped(body([*APPEND, node("Tanh", ["q"], ["h"]), *UNTIL], [STATE]), ["x0"], ["y"]))
    assert not module.exploration.best.grows


@pytest.mark.parametrize(
    ("nodes", "what"),
    [
        ([node("Unsqueeze", ["x", "axis"], ["h"])], r"float32\[1, 8\] before a round and float32\[1, 1, 8\]"),
        ([node("Cast", ["x"], ["h"], to=INT64)], r"float32\[1, 8\] before a round and int64\[1, 8\]"),
    ],
    ids=["axes", "type"],
)
def test_other_axes_and_types_are_refused(nodes, what):
    nodes = [*nodes, node("ReduceMax", ["x"], ["top"], keepdims=0), node("Less", ["top", "stop"], ["again"])]
    proto = looped(body(nodes, [("x", "h", FLOAT, None)]), ["x0"], ["y"])
    with pytest.raises(
        UnsupportedOperatorError, match=rf"the states of Loop 'decode' are {what}.*; give them one type"
    ):
        tvm_rammer.compile(proto, cache=False)


def test_sizes_that_do_not_fit_end_the_call():
    """The second round adds a tensor of two rows to one of three."""
    nodes = [*APPEND, node("Concat", ["keys", "k"], ["keys2"], axis=1), node("Add", ["keys2", "two"], ["sum"])]
    nodes += [node("ReduceMean", ["sum"], ["h"], axes=[1], keepdims=0), *UNTIL]
    proto = looped(body(nodes, [KEYS, STATE]), ["one", "x0"], ["y", "z"])
    proto.graph.initializer.extend([tensor("two", random(1, 2, 8)), tensor("one", random(1, 1, 8))])
    module = tvm_rammer.compile(proto, cache=False)
    feed = {"rounds": np.array(1), "x0": random(1, 8, seed=9), "stop": np.array(9, "float32")}
    assert module.run(None, feed)[0].shape == (1, 2, 8)
    with pytest.raises(ModelError):
        module.run(None, feed | {"rounds": np.array(2)})
    assert module.run(None, feed)[0].shape == (1, 2, 8)
