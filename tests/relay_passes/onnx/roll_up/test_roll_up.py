"""Recurrence that is written out becomes Scans that compute the same, for each form that files have it in."""

import time

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.marks import one_in
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.relay_passes.onnx.fold import fold_onnx
from tvm_rammer.relay_passes.onnx.roll_up.roll_up import roll_up
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.seq2seq import seq2seq

from ...models import by_onnxruntime, model, node, random, value
from .cells import WIDTH, B, Cell, H, Writer, slices, stacked, unrolled
from .rolled import bodies, given, kinds, rolled


@pytest.mark.parametrize("how", ["gather", "slice", "split", "reshape", "inputs"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_steps_that_read_slices_or_inputs_of_their_own(kind, how):
    count = 32 if how == "inputs" else 12
    made, steps = rolled(unrolled(kind, count, how, "both"))
    assert steps == [count]
    assert kinds(made)["Tanh"] == 0 and sum(kinds(body)["Tanh"] for body in bodies(made)) == (
        2 if kind == "LSTM" else 1
    )


@pytest.mark.parametrize(
    "how",
    [
        {"results": "last"},
        {"reverse": True},
        {"reverse": True, "results": "both", "how": "slice"},
        {"batch_first": True},
        {"batch_first": True, "how": "split", "reverse": True},
        {"copies": True},
        {"layers": 3},
        {"layers": 2, "reverse": True, "batch_first": True},
    ],
)
def test_forms_of_a_loop_in_a_file(how):
    made, steps = rolled(unrolled(steps=9, **how))
    assert steps == [9] * how.get("layers", 1)
    assert not kinds(made).keys() & {"Gemm", "Sigmoid", "Concat"}


def test_cells_with_a_product_for_each_gate():
    made, steps = rolled(lstm_stack(2, 33, 8, fused_gates=False))
    assert steps == [32, 32] and [kinds(body)["MatMul"] for body in bodies(made)] == [8, 8]


def test_what_is_read_is_an_array_again():
    """Nothing takes apart and puts together what one loop hands to the next."""
    made, steps = rolled(unrolled(steps=10, layers=2))
    assert steps == [10, 10] and set(kinds(made)) <= {"Scan", "Identity"}


def both_ways(steps=10, layers=2):
    """Each layer goes both ways, with its results side by side in each step."""
    writer = Writer()
    below, states = slices(writer, "gather", steps), ["h0", "c0"]
    for layer in range(layers):
        found = []
        for way in (0, 1):
            cell = Cell(writer, "LSTM", 2 * H if layer else WIDTH, H, seed=2 * layer + way)
            now, made = states, {}
            for t in range(steps)[:: 1 - 2 * way]:
                now = cell.step(below[t], now)
                made[t] = now[0]
            found.append(made)
        below = [writer.add("Concat", found[0][t], found[1][t], axis=1) for t in range(steps)]
    given = [value("x", [steps, B, WIDTH]), value("h0", [B, H]), value("c0", [B, H])]
    return model(writer.nodes, given, [stacked(writer, below)], writer.tensors)


def test_both_directions():
    made, steps = rolled(both_ways())
    assert steps == [10] * 4
    backward = [
        attribute.ints[0] for n in made.graph.node for attribute in n.attribute if "input_dir" in attribute.name
    ]
    assert sorted(backward) == [0, 0, 1, 1]


def time_outside(steps=12, layers=2, feed=False):
    """Layers within a step; with `feed` the first one reads what the last one made in the step before."""
    writer = Writer()
    cells = [Cell(writer, "LSTM", 2 * H if feed and not n else H, H, seed=n) for n in range(layers)]
    states, seen = [["h0", "c0"]] * layers, []
    xs = slices(writer, "gather", steps)
    for x in xs:
        at = writer.add("Concat", x, states[-1][0], axis=1) if feed else x
        for n, cell in enumerate(cells):
            states[n] = cell.step(at, states[n])
            at = states[n][0]
        seen.append(at)
    given = [value("x", [steps, B, H]), value("h0", [B, H]), value("c0", [B, H])]
    return model(writer.nodes, given, [stacked(writer, seen), *states[0]], writer.tensors)


@pytest.mark.parametrize(("feed", "loops"), [(False, 2), (True, 1)])
def test_layers_within_a_step_are_one_loop_where_they_wait_for_each_other(feed, loops):
    _, steps = rolled(time_outside(feed=feed))
    assert steps == [12] * loops


def test_the_same_weights_for_two_sequences():
    writer = Writer()
    cell, results = Cell(writer, "GRU", WIDTH, H), []
    for x in ("x", "y"):
        states, seen = ["h0"], []
        for part in slices(writer, "gather", 12, x):
            states = cell.step(part, states)
            seen.append(states[0])
        results.append(stacked(writer, seen))
    given = [value("x", [12, B, WIDTH]), value("y", [12, B, WIDTH]), value("h0", [B, H])]
    _, steps = rolled(model(writer.nodes, given, results, writer.tensors))
    assert steps == [12, 12]


def test_an_encoder_is_rolled_up_and_a_decoder_that_reads_nothing_stays():
    made, steps = rolled(seq2seq((2, 33), (2, 10), 8))
    assert steps == [32, 32] and kinds(made)["MatMul"] > 20


def test_slices_that_do_not_lie_side_by_side_are_collected():
    """Every other one, in reverse order."""

    def change(writer):
        for t, gather in enumerate([n for n in writer.nodes if n.op_type == "Gather"]):
            gather.input[1] = writer.constant(np.array(79 - 2 * t))

    proto = unrolled(steps=40, change=change)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 80
    made, steps = rolled(proto)
    assert steps == [40] and kinds(made)["Gather"] == 40 and kinds(made)["Concat"] == 1


def test_single_steps_that_are_read_elsewhere():
    writer = Writer()
    cell, states, seen = Cell(writer, "LSTM", WIDTH, H), ["h0", "c0"], []
    for x in slices(writer, "gather", 12):
        states = cell.step(x, states)
        seen.append(states)
    results = [seen[3][0], seen[7][1], writer.add("Concat", *(seen[t][0] for t in (2, 3, 4, 8)), axis=1), *seen[-1]]
    given = [value("x", [12, B, WIDTH]), value("h0", [B, H]), value("c0", [B, H])]
    made, steps = rolled(model(writer.nodes, given, results, writer.tensors))
    assert steps == [12] and [v.name for v in made.graph.output] == results


def test_states_side_by_side_are_rows_of_the_array():
    """As DeepSpeech has them: no axis of their own, in a Concat along the batch or along the columns."""
    for axis in (0, 1):
        writer = Writer()
        cell, states, seen = Cell(writer, "GRU", WIDTH, H), ["h0"], []
        for x in slices(writer, "gather", 12):
            states = cell.step(x, states)
            seen.append(states[0])
        result = writer.add("Concat", *seen, axis=axis)
        proto = model(writer.nodes, [value("x", [12, B, WIDTH]), value("h0", [B, H])], [result], writer.tensors)
        made, steps = rolled(proto)
        assert steps == [12] and kinds(made)["Concat"] == 0


def test_a_state_that_is_broadcast_at_first():
    writer = Writer()
    cell, states = Cell(writer, "LSTM", WIDTH, H), ["h0", "c0"]
    for x in slices(writer, "gather", 12):
        states = cell.step(x, states)
    given = [value("x", [12, B, WIDTH]), value("h0", [B, H]), value("c0", [1, H])]
    made, steps = rolled(model(writer.nodes, given, states, writer.tensors))
    assert steps == [11] and kinds(made)["Gemm"] == 2


def test_a_branch_that_reads_a_step():
    writer = Writer()
    cell, states, seen = Cell(writer, "RNN", WIDTH, H), ["h0"], []
    for x in slices(writer, "gather", 12):
        states = cell.step(x, states)
        seen.append(states[0])

    def branch(name, of):
        return helper.make_graph([node("Neg", [of], [name])], name, [], [value(name, [B, H])])

    writer.nodes.append(node("ReduceSum", [seen[0]], ["sum"], keepdims=0))
    writer.nodes.append(node("Cast", ["sum"], ["whole"], to=TensorProto.BOOL))
    writer.nodes.append(
        node("If", ["whole"], ["y"], then_branch=branch("a", seen[10]), else_branch=branch("b", seen[9]))
    )
    proto = model(writer.nodes, [value("x", [12, B, WIDTH]), value("h0", [B, H])], ["y"], writer.tensors)
    assert rolled(proto)[1] == [11]  # nobody asks for the last one


@pytest.mark.parametrize("seed", one_in(4, range(40)))
def test_random_cells(seed):
    """Rolled up or not, the results stay; cells that read only the step before are rolled up."""
    rng = np.random.default_rng(seed)
    writer, count, steps = Writer(), int(rng.integers(1, 4)), int(rng.integers(9, 14))
    weights = [writer.constant(0.4 * random(H, H, seed=n)) for n in range(3)]
    plan = [
        (rng.integers(6), rng.integers(100), rng.integers(100), rng.integers(3)) for _ in range(rng.integers(4, 12))
    ]
    picks = rng.integers(1, 6, count)
    states, seen = [f"s{n}" for n in range(count)], []
    for x in slices(writer, str(rng.choice(["gather", "slice", "inputs"])), steps):
        values = [*states, x]
        for kind, a, b, w in plan:
            one, other = values[a % len(values)], values[b % len(values)]
            if kind < 2:
                values.append(writer.add("MatMul", one, weights[w]))
            elif kind < 4:
                values.append(writer.add(("Tanh", "Sigmoid")[kind - 2], one))
            else:
                values.append(writer.add(("Add", "Sub")[kind - 4], one, other))
        states = [writer.add("Tanh", writer.add("Add", values[-pick], values[len(states)])) for pick in picks]
        seen.append(states[0])
    given = [value("x", [steps, B, H]), *(value(f"x{t}", [B, H]) for t in range(steps))]
    read = {name for n in writer.nodes for name in n.input}
    inputs = [v for v in given if v.name in read] + [value(f"s{n}", [B, H]) for n in range(count)]
    rolled(model(writer.nodes, inputs, [stacked(writer, seen), *states], writer.tensors))


@pytest.mark.parametrize(
    "how",
    [{}, {"kind": "GRU", "results": "both"}, {"layers": 2, "how": "inputs", "results": "last"}, {"reverse": True}],
)
def test_compiled(how):
    proto = unrolled(steps=32, sizes=(B, WIDTH, 16), **how)
    module = tvm_rammer.compile(proto, cache=False)
    facts = module.report()
    assert facts["left_to_stock"] == 0 and facts["roperators"] < 20
    inputs = given(proto)
    got = module(**inputs)
    expected = by_onnxruntime(proto, **inputs)
    for ours, theirs in zip(got if isinstance(got, list | tuple) else [got], expected, strict=True):
        assert relative_error(ours, theirs) <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("longer", [(3, 200), (12, 50)])
def test_the_search_takes_as_long_as_the_graph(longer):
    """Four times the steps, or the layers, take some four times as long: sixteen times would be their square."""

    def seconds(layers, steps):
        proto, found = lstm_stack(layers, steps, 4), []
        fold_onnx(proto)
        for _ in range(3):
            begun = time.process_time()
            assert kinds(roll_up(proto))["Scan"] == layers
            found.append(time.process_time() - begun)
        return min(found)

    assert seconds(*longer) <= 9 * seconds(3, 50)
