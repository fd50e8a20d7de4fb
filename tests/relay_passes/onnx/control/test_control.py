"""Branches and loops that data decide, against ONNX Runtime.

Onnx's own reference runs no round of a Loop without a condition, and joins what rounds collect along their first axis.
"""

import itertools

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tvm_rammer.errors import ModelError, UnsupportedOperatorError

from ...models import model, node, random, tensor, value

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64
WEIGHTS = tensor("w", random(6, 6, seed=3))


def graph(nodes, outputs, inputs=(), tensors=()):
    return helper.make_graph(nodes, "part", list(inputs), [value(name, None, kind) for name, kind in outputs], tensors)


def agree(proto, *feeds, **shapes):
    """Compare with ONNX Runtime, and return the module."""
    module = tvm_rammer.compile(proto, shapes=shapes or None, cache=False)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for feed in feeds:
        for got, want in zip(module.run(None, feed), session.run(None, feed), strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return module


def branch(nodes, *names, tensors=()):
    return graph(nodes, [(name, TensorProto.FLOAT) for name in names], tensors=tensors)


def deciding(then, other, outputs=("y",), cond=()):
    """A model whose branch is decided by the sum of its input."""
    nodes = [
        node("ReduceSum", ["x"], ["total"], keepdims=0),
        node("Reshape", ["total", "shape"], ["number"]),
        node("Greater", ["number", "zero"], ["positive"]),
        node("Relu", ["x"], ["r"]),
        node("If", ["positive"], list(outputs), name="which", then_branch=then, else_branch=other),
    ]
    constants = [tensor("zero", np.float32(0)), tensor("shape", np.array(cond, np.int64)), WEIGHTS]
    return model(nodes, [value("x", [4, 6])], list(outputs), constants)


X = random(4, 6)


@pytest.mark.parametrize("cond", [(), (1,)])
def test_a_branch_is_taken_by_what_is_computed(cond):
    then = branch([node("MatMul", ["r", "w"], ["t"]), node("Tanh", ["t"], ["ty"])], "ty")
    other = branch([node("MatMul", ["x", "own"], ["e"])], "e", tensors=[tensor("own", random(6, 6, seed=4))])
    module = agree(deciding(then, other, cond=cond), {"x": X}, {"x": -X})
    assert module.report()["launches"] == 3
    assert not module.compilation.stock_calls


def test_branches_of_several_results_that_pass_values_through():
    then = branch([node("Sin", ["x"], ["s"]), node("Identity", ["r"], ["r2"])], "s", "r2")
    other = branch([node("Identity", ["x"], ["i"])], "i", "c", tensors=[tensor("c", random(4, 6, seed=5))])
    agree(deciding(then, other, ["y", "z"]), {"x": X}, {"x": -X})


def test_branches_within_branches_and_what_reads_them():
    inner = branch([node("Exp", ["r"], ["a"])], "a"), branch([node("Neg", ["x"], ["b"])], "b")
    then = branch(
        [
            node("ReduceMax", ["x"], ["top"], keepdims=0),
            node("Less", ["top", "two"], ["small"]),
            node("If", ["small"], ["c"], then_branch=inner[0], else_branch=inner[1]),
            node("Add", ["c", "x"], ["d"]),
        ],
        "d",
        tensors=[tensor("two", np.float32(2))],
    )
    proto = deciding(then, branch([node("Softmax", ["x"], ["e"])], "e"))
    proto.graph.node.append(node("MatMul", ["y", "w"], ["z"]))
    proto.graph.output.append(value("z", None))
    agree(proto, {"x": X}, {"x": -X}, {"x": X + 5})


def test_an_index_is_checked_in_the_branch_that_is_taken():
    then = branch([node("Gather", ["x", "at"], ["t"], axis=0)], "t")
    proto = deciding(then, branch([node("Neg", ["x"], ["e"])], "e"))
    proto.graph.input.append(value("at", [4], INT64))
    module = tvm_rammer.compile(proto, cache=False)
    inside, outside = np.array([0, -4, 3, 1]), np.array([0, 1, 2, 10**9])
    np.testing.assert_array_equal(module(x=-abs(X), at=outside), abs(X))
    np.testing.assert_array_equal(module(x=abs(X), at=inside), abs(X)[inside])
    with pytest.raises(ModelError, match="Gather got an index outside of the 4 that it indexes"):
        module(x=abs(X), at=outside)


def test_branches_of_different_ranks_are_refused():
    total = node("ReduceSum", ["x"], ["e"], keepdims=0)
    proto = deciding(branch([node("Sin", ["x"], ["s"])], "s"), branch([total], "e"))
    with pytest.raises(
        UnsupportedOperatorError,
        match=r"branches of If 'which' return float32\[4, 6\] and float32\[\].*make them alike",
    ):
        tvm_rammer.compile(proto, cache=False)


def body(nodes, states, written=(), tensors=(), go="go"):
    """The body of a Loop over float states."""
    given = [value("i", [], INT64), value("before", [], BOOL), *(value(name, None) for name, _ in states)]
    outputs = [(go, BOOL), *((after, TensorProto.FLOAT) for _, after in states)]
    return graph(nodes, [*outputs, *((name, TensorProto.FLOAT) for name in written)], given, tensors)


STEP = [
    node("MatMul", ["s", "w"], ["p"]),
    node("Tanh", ["p"], ["q"]),
    node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
    node("Add", ["q", "f"], ["t"]),
]
UNTIL = [node("ReduceMax", ["t"], ["top"], keepdims=0), node("Less", ["top", "bound"], ["go"])]


def looped(graph_, outputs=("y",), limit="n", condition="c", constants=(), states=("x",)):
    loop = node("Loop", [limit, condition, *states], list(outputs), name="it", body=graph_)
    inputs = [value("x", [4, 6]), value("bound", [])]
    known = {t.name for t in constants}
    inputs += [value(n, [], k) for n, k in ((limit, INT64), (condition, BOOL)) if n and n not in known]
    return model([loop], inputs, [name for name in outputs if name], [WEIGHTS, *constants])


def feeds(**choices):
    """Each combination of what may come."""
    for values in itertools.product(*choices.values()):
        yield {"x": X} | {name: np.array(v) for name, v in zip(choices, values, strict=True)}


BOUNDS = [np.float32(b) for b in (0.5, 3.5, 90)]


@pytest.mark.parametrize("limit", ["n", ""])
@pytest.mark.parametrize("condition", ["c", ""])
def test_a_loop_ends_when_its_data_say_so(limit, condition):
    proto = looped(body([*STEP, *UNTIL], [("s", "t")]), limit=limit, condition=condition)
    given = {"bound": BOUNDS} | ({"n": [0, 1, 2, 7, 33]} if limit else {}) | ({"c": [True, False]} if condition else {})
    module = agree(proto, *feeds(**given))
    assert not module.compilation.stock_calls


def test_a_number_of_rounds_that_comes_with_the_data():
    going = [node("Identity", ["before"], ["go"])]
    proto = looped(body([*STEP, *going], [("s", "t")]), condition="")
    proto.graph.input.remove(next(i for i in proto.graph.input if i.name == "bound"))
    agree(proto, *feeds(n=[0, 1, 5, 300]))


def test_a_bound_that_is_known_and_states_that_stay():
    nodes = [*STEP, *UNTIL, node("Add", ["k", "k"], ["k2"]), node("Identity", ["z0"], ["z2"])]
    known = [tensor("n", np.array(9)), tensor("c", np.array(True))]
    proto = looped(
        body(nodes, [("s", "t"), ("k", "k2"), ("z0", "z2")]), ["y", "k_last", "z"], "n", "c", known, ["x"] * 3
    )
    proto.graph.output.remove(proto.graph.output[1])
    agree(proto, *feeds(bound=BOUNDS))


def test_an_index_is_checked_in_each_round():
    nodes = [node("Gather", ["table", "i"], ["row"], axis=0), node("Add", ["s", "row"], ["t"]), *UNTIL]
    proto = looped(body(nodes, [("s", "t")], tensors=[tensor("table", random(5, 6))]), condition="")
    module = agree(proto, *feeds(bound=[np.float32(99)], n=[0, 1, 5]))
    with pytest.raises(ModelError, match="Gather got an index outside of the 5 that it indexes"):
        module(x=X, bound=np.array(99, "float32"), n=np.array(6))


@pytest.mark.parametrize("condition", ["c", ""])
def test_what_each_round_collects(condition):
    known = [tensor("n", np.array(6))]
    graph_ = body([*STEP, *UNTIL], [("s", "t")], ["q", "top"])
    proto = looped(graph_, ["y", "all", "tops"], "n", condition, known)
    given = {"bound": BOUNDS} | ({"c": [True]} if condition else {})
    agree(proto, *feeds(**given))


def test_rows_of_a_loop_without_a_round():
    proto = looped(body([*STEP, *UNTIL], [("s", "t")], ["q"]), ["y", "all"], "n", "c", [tensor("n", np.array(6))])
    module = tvm_rammer.compile(proto, cache=False)
    y, rows = module(x=X, bound=np.array(9, "float32"), c=np.array(False))
    np.testing.assert_array_equal(y, X)
    assert rows.shape == (0, 4, 6)


def test_loops_and_branches_within_each_other():
    nodes = [node("Sin", ["u"], ["v"]), node("ReduceMax", ["v"], ["m"], keepdims=0), node("Less", ["m", "f"], ["on"])]
    inner = body(nodes, [("u", "v")], go="on")
    then = branch([node("Loop", ["", "", "t"], ["looped"], body=inner)], "looped")
    other = branch([node("Neg", ["t"], ["negated"])], "negated")
    nodes = [
        *STEP,
        node("Less", ["f", "one"], ["early"]),
        node("If", ["early"], ["chosen"], then_branch=then, else_branch=other),
        node("ReduceMax", ["chosen"], ["top"], keepdims=0),
        node("Less", ["top", "bound"], ["go"]),
    ]
    proto = looped(body(nodes, [("s", "chosen")], tensors=[tensor("one", np.float32(1))]))
    agree(proto, *feeds(bound=BOUNDS, n=[0, 1, 4], c=[True]))


def test_a_loop_after_a_branch_with_a_known_number_of_rounds():
    """What a branch returns has a shape, by which the loop behind it is unrolled."""
    proto = deciding(branch([node("Sin", ["x"], ["s"])], "s"), branch([node("Neg", ["x"], ["e"])], "e"))
    step = graph([node("Tanh", ["row"], ["out"])], [("out", TensorProto.FLOAT)], [value("row", None)])
    proto.graph.node.append(node("Scan", ["y"], ["rows"], body=step, num_scan_inputs=1))
    proto.graph.output.append(value("rows", None))
    agree(proto, {"x": X}, {"x": -X})


def test_a_recurrent_layer_in_a_branch_of_many_rounds():
    """The rounds are unrolled then, for a branch has a function of its own only there."""
    layer = [
        node("Unsqueeze", ["s", "zero"], ["steps"]), node("RNN", ["steps", "w", "r"], ["", "h"], hidden_size=4),
        node("Squeeze", ["h", "zero"], ["t"]),
    ]  # fmt: skip
    nodes = [
        node("Gather", ["x", "i"], ["row"]), node("ReduceSum", ["row"], ["sum"], keepdims=0),
        node("Greater", ["sum", "none"], ["c"]),
        node("If", ["c"], ["m"], then_branch=branch(layer, "t"), else_branch=branch([node("Neg", ["s"], ["e"])], "e")),
        node("Add", ["m", "row"], ["next"]), node("Identity", ["go"], ["going"]),
    ]  # fmt: skip
    inner = [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("s", [1, 4])]
    rounds = helper.make_graph(nodes, "rounds", inner, [value("going", [], TensorProto.BOOL), value("next", [1, 4])])
    tensors = [tensor("n", np.array(9)), tensor("yes", np.array(True)), tensor("none", np.float32(0))]
    tensors += [tensor("zero", np.array([0])), tensor("w", random(1, 4, 4)), tensor("r", random(1, 4, 4, seed=1))]
    inputs = [value("x", [9, 4]), value("s0", [1, 4])]
    proto = model([node("Loop", ["n", "yes", "s0"], ["y"], body=rounds)], inputs, ["y"], tensors)
    agree(proto, {"x": random(9, 4), "s0": random(1, 4)})


def test_the_module_is_saved_and_loaded(tmp_path):
    proto = looped(body([*STEP, *UNTIL], [("s", "t")]))
    module = tvm_rammer.compile(proto, cache=False)
    again = tvm_rammer.load(module.save(tmp_path / "m.rammer"))
    for feed in feeds(bound=BOUNDS, n=[0, 3], c=[True]):
        np.testing.assert_array_equal(again.run(None, feed)[0], module.run(None, feed)[0])
    assert "control" not in again.explain()


def test_a_profile_has_what_ran():
    proto = deciding(branch([node("Sin", ["x"], ["s"])], "s"), branch([node("Exp", ["x"], ["e"])], "e"))
    found = tvm_rammer.profile(proto, [abs(X)], runs=2)
    assert [p.name for p in found.compilation.programs] + list(found.not_run) == ["region0_0", "region2_0", "region1_0"]
    assert "region1_0 did not run: these data do not lead to it" in found.text()
    assert found.schedule_svg().startswith("<svg")


def test_numbers_without_axes_beside_other_tensors():
    import tvm

    proto = looped(body([*STEP, node("Identity", ["before"], ["go"])], [("s", "t")]), condition="")
    proto.graph.input.remove(next(i for i in proto.graph.input if i.name == "bound"))
    module = tvm_rammer.compile(proto, cache=False)
    got = module(tvm.runtime.tensor(X), np.array(3)).numpy()
    np.testing.assert_array_equal(got, module(X, np.array(3)))


@pytest.mark.parametrize("then_runs", [False, True])
def test_calls_are_refused_that_choose_a_branch_which_cannot_run(then_runs, tmp_path):
    """One that is for 7 rows, where there are 4."""
    runs = branch([node("Neg", ["x"], ["e"])], "e")
    fails = branch([node("MatMul", ["of7", "x"], ["{s}"])], "{s}", tensors=[tensor("of7", random(4, 7, seed=6))])
    proto = deciding(*((runs, fails) if then_runs else (fails, runs)))
    proto.graph.input[0].CopyFrom(value("x", ["rows", 6]))
    proto.graph.node.append(node("MatMul", ["y", "w"], ["z"]))
    proto.graph.output.append(value("z", None))
    agree(proto, {"x": abs(X) if then_runs else -abs(X)}, rows=4).save(tmp_path / "saved.rammer")
    module = tvm_rammer.load(tmp_path / "saved.rammer")
    name = "else_branch" if then_runs else "then_branch"
    with pytest.raises(ModelError, match=f"the {name} of If 'which' cannot be compiled .*MatMul '{{s}}'"):
        module(x=-abs(X) if then_runs else abs(X))


def test_an_operator_that_is_lacking_inside_both_branches_is_named():
    both = (branch([node("NoSuch", ["x"], ["s"], domain="elsewhere")], "s") for _ in range(2))
    proto = deciding(*both)
    proto.opset_import.append(helper.make_opsetid("elsewhere", 1))
    with pytest.raises(UnsupportedOperatorError, match="NoSuch"):
        tvm_rammer.compile(proto, cache=False)
