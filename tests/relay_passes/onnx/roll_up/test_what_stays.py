"""Steps that are no loop stay as the file has them; where a loop is refused later, its steps come back."""

import importlib

import pytest

import tvm_rammer
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.errors import LoopError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.loops.body import loop_bodies
from tvm_rammer.zoo.nasnet import nasnet

from ...models import by_onnxruntime, model, node, random, tensor, value
from .cells import WIDTH, B, Cell, H, Writer, slices, unrolled
from .rolled import given, kinds, rolled


def test_a_first_step_whose_state_was_folded_stays():
    made, steps = rolled(unrolled(steps=12, zeros=True))
    assert steps == [11] and kinds(made)["Concat"] == 1


def other_bias(at):
    """Gives one step another bias."""

    def change(writer):
        gemms = [
            n for n in writer.nodes if n.op_type == "Gemm" and n.input[0] != "x" and not n.input[0].startswith("Gather")
        ]
        writer.tensors.append(tensor("other", random(*writer_bias(writer, gemms[at]), seed=9)))
        gemms[at].input[2] = "other"

    return change


def writer_bias(writer, gemm):
    return next(list(t.dims) for t in writer.tensors if t.name == gemm.input[2])


@pytest.mark.parametrize(("at", "expected"), [(10, [19, 10]), (3, [26]), (29, [29]), (0, [29])])
def test_a_step_with_another_constant_stays(at, expected):
    _, steps = rolled(unrolled(steps=30, change=other_bias(at)))
    assert sorted(steps, reverse=True) == expected


@pytest.mark.parametrize(("steps", "how"), [(2, "gather"), (7, "gather"), (31, "inputs")])
def test_few_steps_stay(steps, how):
    assert rolled(unrolled(steps=steps, how=how))[1] == []


def test_a_step_that_waits_for_what_is_no_part_of_it_stays():
    """From one step to the next the state goes through another operator each time."""

    writer, operators = Writer(), ["Tanh", "Sigmoid", "Relu", "Neg", "Abs"]
    cell, states = Cell(writer, "RNN", WIDTH, H), ["h0"]
    for t, x in enumerate(slices(writer, "gather", 15)):
        states = cell.step(x, [writer.add(operators[t % 5], states[0])])
    proto = model(writer.nodes, [value("x", [15, B, WIDTH]), value("h0", [B, H])], states, writer.tensors)
    assert rolled(proto)[1] == []


def test_layers_with_the_same_weights_read_no_sequence():
    """Twelve times the same layer on its own result, as ALBERT has it, is no loop over a sequence."""
    writer, at = Writer(), "h0"
    weights = writer.constant(random(H, H))
    for _ in range(12):
        at = writer.add("Tanh", writer.add("Add", writer.add("MatMul", at, weights), at))
    assert rolled(model(writer.nodes, [value("h0", [B, H])], [at], writer.tensors))[1] == []


def test_repeated_cells_with_weights_of_their_own_stay():
    assert rolled(nasnet())[1] == []


def test_what_is_to_be_unrolled_stays():
    proto = unrolled(steps=12)
    assert tvm_rammer.compile(proto, cache=False, loops=False).report()["roperators"] > 50


def test_other_targets_keep_the_steps():
    mod = load_model(unrolled(steps=12), loops=True, join=True)
    assert not loop_bodies(mod)


@pytest.mark.parametrize(
    ("stage", "error"),
    [("onnx.lower_model.import_onnx", UnsupportedOperatorError), ("regions.partition.loop_graph", LoopError)],
)
def test_steps_that_cannot_be_a_loop_stay_steps_and_other_loops_stay_loops(stage, error, monkeypatch):
    """Where the loop is refused when the model is imported, or when it is planned."""
    proto = unrolled("RNN", 12)
    for name, shape in (("w", (1, H, WIDTH)), ("r", (1, H, H))):
        proto.graph.initializer.append(tensor(name, random(*shape)))
    proto.graph.node.append(node("RNN", ["x", "w", "r"], ["seen", "last"], hidden_size=H))
    proto.graph.output.append(value("last", None))
    original, refused = importlib.import_module(f"tvm_rammer.relay_passes.{stage.rpartition('.')[0]}"), []
    name = stage.rpartition(".")[2]
    function = getattr(original, name)

    def refuse_once(*args, **how):
        if not refused:
            refused.append(stage)
            raise error("no such loop")
        return function(*args, **how)

    monkeypatch.setattr(original, name, refuse_once)
    module = tvm_rammer.compile(proto, cache=False)
    inputs = given(proto)
    for ours, theirs in zip(module(**inputs), by_onnxruntime(proto, **inputs), strict=True):
        assert relative_error(ours, theirs) <= 1e-5
    assert refused and module.report()["roperators"] > 30 and "of each of 12 steps" in module.explain()
