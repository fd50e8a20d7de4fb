"""Loops that count for themselves, as TensorFlow and TorchScript write them, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tvm_rammer.relay_passes.onnx.control.rounds import ROUNDS

from ..relay_passes.models import model, node, random, tensor, value

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64
WIDTH = 8


def loop_of(nodes, states, rows=(), constants=(), condition="go_on"):
    """The body of a Loop: states are (name, shape, element type, name after the round)."""
    given = [value("n", [], INT64), value("go", [], BOOL), *(value(name, dims, kind) for name, dims, kind, _ in states)]
    results = [value(condition, [], BOOL), *(value(after, dims, kind) for _, dims, kind, after in states)]
    return helper.make_graph(nodes, "body", given, [*results, *rows], list(constants))


def cell(row):
    """A recurrent cell: reads a row of x, and hands weights on that never change, as TensorFlow's do."""
    return [
        node("MatMul", ["h", "weights"], ["product"]),
        node("Add", ["product", row], ["sum"]),
        node("Tanh", ["sum"], ["next"]),
        node("Identity", ["weights"], ["same"]),
        node("Mul", ["next", "two"], ["seen"]),
    ]


CELL_STATES = [("h", [1, WIDTH], TensorProto.FLOAT, "next"), ("weights", [WIDTH, WIDTH], TensorProto.FLOAT, "same")]


def counting(rounds, axis=0, first=0, step=1, limit=""):
    """While time < rounds: gather a row by the counter, and collect results and counters."""
    nodes = [
        node("Gather", ["x", "at"], ["row"], axis=axis),
        *cell("row"),
        node("Add", ["at", "step"], ["at2"]),
        node("Add", ["time", "one"], ["time2"]),
        node("Cast", ["time2"], ["real"], to=TensorProto.FLOAT),
        node("Less", ["real", "end"], ["go_on"]),
    ]
    states = [("time", [], INT64, "time2"), ("at", [], INT64, "at2"), *CELL_STATES]
    rows = [value("seen", [1, WIDTH]), value("real", [])]
    inner = [tensor("one", np.array(1)), tensor("step", np.array(step)), tensor("end", np.float32(rounds))]
    loop = node(
        "Loop", [limit, "true", "zero", "first", "h0", "w"], ["time_end", "at_end", "h_end", "w_end", "all", "times"],
        name="it", body=loop_of(nodes, states, rows, [*inner, tensor("two", np.float32(2))]),
    )  # fmt: skip
    constants = [
        tensor("true", np.array(True)), tensor("zero", np.array(0)), tensor("first", np.array(first)),
        tensor("w", random(WIDTH, WIDTH, seed=7)), tensor("limit", np.array(9)),
    ]  # fmt: skip
    shape = [1, WIDTH]
    shape.insert(axis % 3, 12)
    outputs = ["time_end", "at_end", "h_end", "w_end", "all", "times"]
    kinds = {"time_end": INT64, "at_end": INT64}
    made = model([loop], [value("x", shape), value("h0", [1, WIDTH])], [], constants)
    made.graph.output.extend(value(name, None, kinds.get(name, TensorProto.FLOAT)) for name in outputs)
    return made, {"x": random(*shape), "h0": random(1, WIDTH, seed=2)}


def agree(proto, feeds):
    """Compare with ONNX Runtime, and return the steps of each rProgram."""
    module = tvm_rammer.compile(proto, cache=False)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for got, want in zip(module.run(None, feeds), session.run(None, feeds), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert not module.compilation.stock_calls
    return module, [program.steps for program in module.compilation.programs if program.steps > 1]


@pytest.mark.parametrize(
    ("rounds", "how", "steps"),
    [
        (12, {}, [12]),
        (10, {"axis": 1}, [10]),
        (11, {"axis": -1, "first": 1}, [11]),
        (12, {"first": 11, "step": -1}, [12]),
        (10, {"first": -1, "step": -1}, [10]),
        (12, {"first": 5, "step": 0}, [12]),  # one row again and again
        (12, {"first": -12, "step": 2}, [12]),  # each second one, twice
        (12, {"limit": "limit"}, [9]),
        (3, {}, []),  # unrolled
    ],
)
def test_a_loop_that_counts_is_one_of_a_known_length(rounds, how, steps):
    proto, feeds = counting(rounds, **how)
    if how.get("axis") == -1:
        proto.graph.node[0].attribute[0].g.node[0].attribute[0].i = -1
    _, found = agree(proto, feeds)
    assert found == steps


def test_rows_are_read_where_they_are():
    """No index is left that would be checked when the loop runs."""
    proto, feeds = counting(12)
    module, _ = agree(proto, feeds)
    names = [op.name for program in module.compilation.programs for op in program.graph.operators]
    assert not [name for name in names if "take" in name or "outside" in name]


def test_a_loop_whose_length_depends_on_data_is_left_to_the_data():
    """Its counter begins at what is given."""
    nodes = [*cell("h0"), node("Add", ["time", "one"], ["time2"]), node("Less", ["time2", "end"], ["go_on"])]
    states = [("time", [], INT64, "time2"), *CELL_STATES]
    inner = [tensor("one", np.array(1)), tensor("end", np.array(12)), tensor("two", np.float32(2))]
    body = loop_of(nodes, states, (), inner)
    loop = node("Loop", ["", "true", "begin", "h0", "w"], ["time_end", "h_end", "w_end"], name="it", body=body)
    constants = [tensor("true", np.array(True)), tensor("w", random(WIDTH, WIDTH, seed=7))]
    proto = model([loop], [value("h0", [1, WIDTH]), value("begin", [], INT64)], ["h_end"], constants)
    for begin in (0, 7, 40):
        _, found = agree(proto, {"h0": random(1, WIDTH), "begin": np.array(begin)})
        assert found == [ROUNDS]  # as many of its rounds as there may be in a launch


def test_a_counter_that_never_ends_is_left_to_run_time():
    """It would be counted for ever: it goes down and is to reach ten."""
    from tvm_rammer.relay_passes.onnx.lower.recurrence.counted import count

    proto, _ = counting(12, step=1)
    node_ = proto.graph.node[0]
    body = node_.attribute[0].g
    constants = {t.name: t for t in proto.graph.initializer}
    assert count(node_, body, constants, 17).rounds == 12
    next(t for t in body.initializer if t.name == "one").CopyFrom(tensor("one", np.array(-1)))
    assert count(node_, body, constants, 17) is None


def test_a_loop_that_is_known_ahead_is_no_loop():
    """Its state stays as it is, and what it writes is the number of the round."""
    nodes = [node("Identity", ["h"], ["next"]), node("Cast", ["n"], ["real"], to=TensorProto.FLOAT)]
    nodes.append(node("Identity", ["go"], ["go_on"]))
    body = loop_of(nodes, [("h", [1, WIDTH], TensorProto.FLOAT, "next")], [value("real", [])])
    loop = node("Loop", ["rounds", "", "h0"], ["h_end", "numbers"], name="it", body=body)
    proto = model([loop], [value("h0", [1, WIDTH])], ["h_end", "numbers"], [tensor("rounds", np.array(12))])
    _, found = agree(proto, {"h0": random(1, WIDTH)})
    assert not found


@pytest.mark.parametrize(("rounds", "steps"), [((1 << 14) + 1, [(1 << 14) + 1]), ((1 << 20) + 1, [ROUNDS])])
def test_a_loop_of_many_rounds_that_reads_nothing_but_its_state(rounds, steps):
    """Too long to be counted; beyond a million rounds it is one that data end, of so many rounds a launch."""
    nodes = [node("Neg", ["h"], ["next"]), node("Identity", ["go"], ["go_on"])]
    body = loop_of(nodes, [("h", [1, WIDTH], TensorProto.FLOAT, "next")])
    loop = node("Loop", ["rounds", "", "h0"], ["h_end"], name="it", body=body)
    proto = model([loop], [value("h0", [1, WIDTH])], ["h_end"], [tensor("rounds", np.array(rounds))])
    feeds = {"h0": random(1, WIDTH)}
    module = tvm_rammer.compile(proto, cache=False)
    np.testing.assert_array_equal(module.run(None, feeds)[0], -feeds["h0"])
    assert [program.steps for program in module.compilation.programs if program.steps > 1] == steps


def test_a_state_of_which_only_the_first_value_is_not_known_ahead():
    """It becomes what the number of the round makes of a constant."""
    nodes = [
        node("Cast", ["n"], ["real"], to=TensorProto.FLOAT),
        node("Mul", ["w", "real"], ["next"]),
        node("Add", ["s", "h"], ["sum"]),
        node("Identity", ["go"], ["go_on"]),
    ]
    states = [("h", [WIDTH], TensorProto.FLOAT, "next"), ("s", [WIDTH], TensorProto.FLOAT, "sum")]
    loop = node("Loop", ["rounds", "", "h0", "s0"], ["h_end", "s_end"], name="it", body=loop_of(nodes, states))
    constants = [tensor("rounds", np.array(12)), tensor("w", random(WIDTH, seed=1))]
    proto = model([loop], [value("h0", [WIDTH]), value("s0", [WIDTH])], ["h_end", "s_end"], constants)
    _, found = agree(proto, {"h0": random(WIDTH), "s0": random(WIDTH, seed=2)})
    assert found == [12]
