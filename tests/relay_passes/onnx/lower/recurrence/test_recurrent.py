"""Recurrent layers, unrolled, against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import tvm_rammer
from tests.marks import one_in, slow_but
from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.onnx.lower.recurrence import recurrent, unrolled

from ....models import by_onnxruntime, calls, model, node, op_names, random, tensor, value
from ...test_load_onnx import agree

T, B, I, H = 5, 2, 3, 4  # noqa: E741 (as ONNX names them)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
COUNT = {"LSTM": 3, "GRU": 2, "RNN": 1}


def weights(kind, directions, inputs=I, at=""):
    g = GATES[kind]
    return [
        tensor(f"w{at}", random(directions, g * H, inputs, seed=1)),
        tensor(f"r{at}", random(directions, g * H, H, seed=2)),
        tensor(f"b{at}", random(directions, 2 * g * H, seed=3)),
    ]


def layer(kind, direction="forward", inputs=("x", "w", "r", "b"), given=(), more=(), opset=17, **attributes):
    """A model of one layer with all of its results."""
    directions = 2 if direction == "bidirectional" else 1
    outputs = ["y", "y_h", "y_c"] if kind == "LSTM" else ["y", "y_h"]
    only = node(kind, list(inputs), outputs, name="it", hidden_size=H, direction=direction, **attributes)
    x = [B, T, I] if attributes.get("layout") else [T, B, I]
    return model([only], [value("x", x), *given], outputs, [*weights(kind, directions), *more], opset=opset)


KINDS = pytest.mark.parametrize("kind", one_in(3, ["LSTM", "GRU", "RNN"]))


@KINDS
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(kind, direction, run):
    agree(run, layer(kind, direction), x=random(T, B, I))


@KINDS
def test_states_at_the_beginning(kind, run):
    names = ["h0", "c0"][: 1 + (kind == "LSTM")]
    proto = layer(kind, "bidirectional", ["x", "w", "r", "b", "", *names], [value(n, [2, B, H]) for n in names])
    agree(run, proto, x=random(T, B, I), **{n: random(2, B, H, seed=i) for i, n in enumerate(names, 7)})


@pytest.mark.parametrize(("kind", "given"), [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1})])
def test_a_gate_that_is_nan_in_the_first_step_stays_so(kind, given):
    """It is multiplied by a state of zero; no other gate is NaN."""
    w = np.ones((1, GATES[kind] * H, I), "float32")
    w[0, {"LSTM": 2, "GRU": 1}[kind] * H, 0] = -1
    only = node(kind, ["x", "w", "r"], ["", "y_h"], hidden_size=H, **given)
    fixed = [tensor("w", w), tensor("r", random(1, GATES[kind] * H, H))]
    x = np.full((1, B, I), np.inf, "float32")
    proto = model([only], [value("x", x.shape)], ["y_h"], fixed)
    (want,) = by_onnxruntime(proto, x=x)
    assert np.isnan(want).any()
    np.testing.assert_allclose(tvm_rammer.compile(proto, cache=False)(x), want, rtol=1e-5)


def test_states_that_are_zero_cost_no_product(run):
    zeros = [tensor(n, np.zeros((1, B, H), "float32")) for n in ("h0", "c0")]
    mod = agree(run, layer("LSTM", inputs=["x", "w", "r", "b", "", "h0", "c0"], more=zeros), x=random(T, B, I))
    assert op_names(mod).count("matmul") == 1 + (T - 1)


@KINDS
@pytest.mark.parametrize("direction", slow_but(["reverse"], ["forward", "reverse", "bidirectional"]))
def test_sequences_of_several_lengths(kind, direction, run):
    proto = layer(kind, direction, ["x", "w", "r", "b", "lengths"], [value("lengths", [B], TensorProto.INT32)])
    agree(run, proto, x=random(T, B, I), lengths=np.array([3, T], "int32"))


@KINDS
@pytest.mark.parametrize("direction", slow_but(["bidirectional"], ["forward", "reverse", "bidirectional"]))
def test_a_sequence_without_a_step_leaves_zeros(kind, direction, run):
    """Not the states that it began with."""
    states = ["h0", "c0"][: 1 + (kind == "LSTM")]
    d = 2 if direction == "bidirectional" else 1
    given = [value("lengths", [B], TensorProto.INT32), *(value(n, [d, B, H]) for n in states)]
    feeds = {n: random(d, B, H, seed=i) for i, n in enumerate(states, 7)}
    proto = layer(kind, direction, ["x", "w", "r", "b", "lengths", *states], given)
    agree(run, proto, x=random(T, B, I), lengths=np.array([0, 3], "int32"), **feeds)


def test_a_known_length_of_zero(run):
    more = [tensor("lengths", np.array([T, 0], "int32")), tensor("h0", random(1, B, H))]
    agree(run, layer("GRU", inputs=["x", "w", "r", "b", "lengths", "h0"], more=more), x=random(T, B, I))


def test_lengths_that_are_all_the_full_one_are_no_lengths():
    full = tensor("lengths", np.full(B, T, "int32"))
    assert "where" not in op_names(load_model(layer("GRU", inputs=["x", "w", "r", "b", "lengths"], more=[full])))


@KINDS
@pytest.mark.parametrize("direction", slow_but(["bidirectional"], ["forward", "bidirectional"]))
def test_batch_first(kind, direction, run):
    """ONNX Runtime has no layout 1: the same layer between transpositions says what is right."""
    proto = layer(kind, direction, layout=1)
    x = random(B, T, I)
    y, *last = by_onnxruntime(layer(kind, direction), x=x.transpose(1, 0, 2))
    got = run(load_model(proto), x)
    want = [y.transpose(2, 0, 1, 3), *(state.transpose(1, 0, 2) for state in last)]
    for left, right in zip(got, want, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def test_peepholes(run):
    names = ["x", "w", "r", "b", "", "h0", "c0", "p"]
    given = [value(n, [2, B, H]) for n in ("h0", "c0")]
    proto = layer("LSTM", "bidirectional", names, given, [tensor("p", random(2, 3 * H, seed=4))])
    agree(run, proto, x=random(T, B, I), h0=random(2, B, H, seed=5), c0=random(2, B, H, seed=6))


def test_input_and_forget_gates_that_are_coupled(run):
    agree(run, layer("LSTM", input_forget=1), x=random(T, B, I))


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_a_reset_after_the_product(direction, run):
    agree(run, layer("GRU", direction, linear_before_reset=1), x=random(T, B, I))


@KINDS
def test_clipped_sums(kind, run):
    agree(run, layer(kind, clip=0.3), x=random(T, B, I))


@pytest.mark.parametrize("name", ["Relu", "Tanh", "Sigmoid", "Softsign", "Softplus", "LeakyRelu", "Elu", "HardSigmoid"])
def test_activation_functions_with_their_usual_parameters(name, run):
    agree(run, layer("RNN", activations=[name]), x=random(T, B, I))


@pytest.mark.parametrize("name", ["LeakyRelu", "ThresholdedRelu", "Elu"])
def test_activation_functions_with_a_parameter(name, run):
    agree(run, layer("RNN", activations=[name], activation_alpha=[0.4]), x=random(T, B, I))


@pytest.mark.parametrize(
    ("name", "function"),
    [("Affine", lambda x: 0.5 * x + 0.1), ("ScaledTanh", lambda x: 0.5 * np.tanh(0.1 * x))],
)
def test_activation_functions_of_two_parameters(name, function, run):
    proto = layer("RNN", activations=[name], activation_alpha=[0.5], activation_beta=[0.1])
    w, r, b = (onnx.numpy_helper.to_array(t)[0] for t in weights("RNN", 1))
    x, h = random(T, B, I), np.zeros((B, H), "float32")
    for step in x:
        h = function(step @ w.T + h @ r.T + b[:H] + b[H:])
    np.testing.assert_allclose(run(load_model(proto), x)[1][0], h, rtol=1e-4, atol=1e-5)


def test_parameters_go_to_the_functions_that_take_some(run):
    proto = layer(
        "LSTM", activations=["HardSigmoid", "Tanh", "LeakyRelu"], activation_alpha=[0.3, 0.2], activation_beta=[0.4]
    )
    agree(run, proto, x=random(T, B, I))


@pytest.mark.parametrize("names", [["Tanh", "Sine"], ["Sigmoid"]])
def test_activation_functions_that_do_not_fit(names):
    with pytest.raises(ModelError, match=rf"GRU 'it' has the activation functions {', '.join(names)}; give 2"):
        load_model(layer("GRU", activations=names))


@pytest.mark.parametrize("missing", range(3))
def test_results_that_nobody_asked_for(missing, run):
    names = ["y", "y_h", "y_c"]
    names[missing] = ""
    only = node("LSTM", ["x", "w", "r"], names, hidden_size=H)
    wanted = [n for n in names if n]
    agree(run, model([only], [value("x", [T, B, I])], wanted, weights("LSTM", 1)[:2]), x=random(T, B, I))


def stacked(direction="forward", steps=T):
    """Two layers, as torch exports them."""
    directions = 2 if direction == "bidirectional" else 1
    between = (
        [node("Squeeze", ["y1", "one"], ["z"])]
        if directions == 1
        else [node("Transpose", ["y1"], ["t"], perm=[0, 2, 1, 3]), node("Reshape", ["t", "flat"], ["z"])]
    )
    nodes = [
        node("LSTM", ["x", "w", "r", "b"], ["y1"], hidden_size=H, direction=direction),
        *between,
        node("LSTM", ["z", "w2", "r2", "b2"], ["y", "h", "c"], hidden_size=H, direction=direction),
    ]
    constants = [tensor("one", np.array([1])), tensor("flat", np.array([0, 0, -1]))]
    constants += [*weights("LSTM", directions), *weights("LSTM", directions, directions * H, "2")]
    return model(nodes, [value("x", [steps, B, I])], ["y", "h", "c"], constants)


@pytest.mark.parametrize("direction", slow_but(["forward"], ["forward", "reverse", "bidirectional"]))
def test_a_layer_on_a_layer(direction, run):
    agree(run, stacked(direction, 2 * unrolled.STEPS + 3), x=random(2 * unrolled.STEPS + 3, B, I))


@pytest.mark.parametrize("flag", [True, False])
def test_branches_that_use_the_same_names(flag, run):
    """The steps of a layer in one branch are not those of another value in the other one."""
    first = node("RNN", ["x", "w", "r"], ["y1"], hidden_size=H)
    second = node("RNN", ["z", "w2", "r2"], ["y"], hidden_size=H)
    other = node("Concat", ["x", "tail"], ["z"], axis=2)
    graphs = {
        side: onnx.helper.make_graph(nodes, side, [], [value("y", [T, 1, B, H])], value_info=[value("z", [T, B, H])])
        for side, nodes in (
            ("then_branch", [first, node("Squeeze", ["y1", "one"], ["z"]), second]),
            ("else_branch", [other, second]),
        )
    }
    constants = [tensor("one", np.array([1])), tensor("tail", random(T, B, H - I))]
    constants += [*weights("RNN", 1)[:2], *weights("RNN", 1, H, "2")[:2]]
    inputs = [value("x", [T, B, I]), value("flag", [], TensorProto.BOOL)]
    proto = model([node("If", ["flag"], ["out"], **graphs)], inputs, ["out"], constants)
    agree(run, proto, x=random(T, B, I), flag=np.array(flag))


def test_a_layer_begins_when_the_one_below_has_done_some_steps():
    mod = load_model(stacked(steps=3 * unrolled.STEPS))
    joined = [len(call.args[0].fields) for call in calls(mod) if call.op.name == "relax.concat"]
    assert joined == [unrolled.STEPS] * 3 + [3 * unrolled.STEPS]


def test_opsets_before_slices_took_inputs(run):
    agree(run, layer("LSTM", opset=7), x=random(T, B, I))


def test_half_precision(run):
    proto = layer("GRU")
    x = random(T, B, I)
    want = by_onnxruntime(proto, x=x)
    half = [tensor(t.name, onnx.numpy_helper.to_array(t).astype("float16")) for t in proto.graph.initializer]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(half)
    for given in (*proto.graph.input, *proto.graph.output):
        given.type.tensor_type.elem_type = TensorProto.FLOAT16
    for left, right in zip(run(load_model(proto), x.astype("float16")), want, strict=True):
        assert left.dtype == "float16"
        np.testing.assert_allclose(left, right, atol=2e-2)


def test_too_many_steps_are_refused(monkeypatch):
    monkeypatch.setattr(recurrent, "MOST_STEPS", 9)
    with pytest.raises(ModelError, match="LSTM 'it' has 5 steps, all recurrent layers together more than 9"):
        load_model(layer("LSTM", "bidirectional"))
