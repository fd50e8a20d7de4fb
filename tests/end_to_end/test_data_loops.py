"""Loops that end when the data say so, within rPrograms: against NumPy and ONNX Runtime, for every number of rounds."""

import itertools
import threading

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tvm_rammer.errors import ModelError
from tvm_rammer.persistent_codegen.reference import interpret
from tvm_rammer.persistent_codegen.reference_rtasks import compile_rtasks
from tvm_rammer.relay_passes.onnx.control.rounds import ROUNDS
from tvm_rammer.zoo.open_shapes.decoder import decoder

from ..persistent_codegen.regions import planned_loop
from ..relay_passes.models import by_onnxruntime, model, node, random, tensor, value

BOOL, INT64, FLOAT = TensorProto.BOOL, TensorProto.INT64, TensorProto.FLOAT
NUMBERS = [0, 1, 2, 3, ROUNDS - 1, ROUNDS, ROUNDS + 1, 2 * ROUNDS, 2 * ROUNDS + 1, 200]


def body_of(nodes, states, condition, collected=()):
    """The body of a Loop: states are (name, shape, element type, name after the round)."""
    given = [value("n", [], INT64), value("go", [], BOOL), *(value(name, dims, kind) for name, dims, kind, _ in states)]
    results = [value(condition, [], BOOL), *(value(after, dims, kind) for _, dims, kind, after in states)]
    return helper.make_graph(nodes, "body", given, [*results, *collected])


def countdown(units, batch=1, *, limit="", collects=False):
    """While left > 0: a recurrent cell; its state is `h`."""
    nodes = [
        node("MatMul", ["h", "w"], ["product"]),
        node("Add", ["product", "x"], ["sum"]),
        node("Tanh", ["sum"], ["next"]),
        node("Sub", ["left", "one"], ["less"]),
        node("Greater", ["less", "zero"], ["on"]),
    ]
    states = [("left", [], INT64, "less"), ("h", [batch, units], FLOAT, "next")]
    rows = []
    if collects:
        nodes.append(node("ReduceSum", ["next"], ["sums"], keepdims=0))
        rows.append(value("sums", []))
    loop = node("Loop", [limit, "any", "count", "h0"], ["end", "last", "all"][: 2 + collects],
                body=body_of(nodes, states, "on", rows))  # fmt: skip
    constants = [tensor("one", np.array(1)), tensor("zero", np.array(0)), tensor("limit", np.array(150))]
    constants.append(tensor("endless", np.array(2**63 - 1)))
    constants.append(tensor("w", random(units, units, seed=3) * np.float32(0.5 / units**0.5)))
    inputs = [value("count", [], INT64), value("h0", [batch, units]), value("x", [batch, units])]
    outputs = [value("end", [], INT64), value("last", [batch, units])] + [value("all", ["k"])] * collects
    return model([node("Greater", ["count", "zero"], ["any"]), loop], inputs, outputs, constants)


def steps_of(module):
    return [program.steps for program in module.rprograms if program.steps > 1]


def check(module, proto, **feeds):
    feeds = {name: np.asarray(array) for name, array in feeds.items()}
    for mine, theirs in zip(module.run(None, feeds), by_onnxruntime(proto, **feeds), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("limit", ["", "limit"])
@pytest.mark.parametrize(("units", "batch", "threads"), [(8, 1, 1), (32, 2, 2), (512, 8, 2), (512, 8, 3)])
def test_any_number_of_rounds(units, batch, threads, limit):
    proto = countdown(units, batch, limit=limit)
    module = tvm_rammer.compile(proto, threads=threads, cache=False)
    assert steps_of(module) == [ROUNDS]
    (loop,) = (program for program in module.rprograms if program.steps > 1)
    assert (len(loop.lanes) > 1) == (threads > 1)
    for count in NUMBERS:
        check(module, proto, count=np.array(count), h0=random(batch, units), x=random(batch, units, seed=5))


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("limit", ["limit", "", "endless"])
def test_what_rounds_collect(limit, loops):
    """At most so many rows, any number of them, and so many that nobody could hold them."""
    proto = countdown(16, limit=limit, collects=True)
    module = tvm_rammer.compile(proto, loops=loops)
    assert steps_of(module) == [ROUNDS] * loops
    for count in (0, 1, 2, ROUNDS, ROUNDS + 1, 149, 150, 151, 1000):
        check(module, proto, count=np.array(count), h0=random(1, 16), x=random(1, 16, seed=5))


@pytest.mark.parametrize("most", [150, 2**63 - 1])
def test_what_rounds_collect_in_rows_and_hand_on(most):
    """A decoder collects the token that it reads in the next round; here also the state, and a row of several axes."""
    proto = decoder(16, 20, most)
    body = proto.graph.node[0].attribute[0].g
    body.node.append(node("Reshape", ["after", "square"], ["matrix"]))
    body.output.extend([value("after", [1, 16]), value("matrix", [2, 1, 8])])
    proto.graph.initializer.append(tensor("square", np.array([2, 1, 8])))
    proto.graph.node[0].output.extend(["states", "matrices"])
    proto.graph.output.extend([value("states", ["number", 1, 16]), value("matrices", ["number", 2, 1, 8])])
    module = tvm_rammer.compile(proto)
    assert steps_of(module) == [ROUNDS]
    for end, limit in ((-1, 1), (-1, ROUNDS), (-1, ROUNDS + 1), (-1, 150), (-1, 999), (3, 150), (7, 150), (11, 5)):
        feeds = {"token": np.array([3]), "h": random(1, 16), "end": np.array([end]), "limit": np.array(limit)}
        check(module, proto, **feeds)


def test_a_condition_that_is_a_state_and_states_that_stay():
    """`alive` is handed on and says whether to go on; `same` is handed on as it is, and `twice` under two names."""
    nodes = [
        node("Add", ["a", "same"], ["b"]), node("Less", ["b", "end"], ["alive2"]),
        node("Identity", ["same"], ["same2"]), node("Identity", ["b"], ["b2"]),
    ]  # fmt: skip
    states = [("alive", [], BOOL, "alive2"), ("a", [], FLOAT, "b"), ("same", [], FLOAT, "same2"),
              ("twice", [], FLOAT, "b2")]  # fmt: skip
    outputs = ["alive_", "a_", "same_", "twice_"]
    loop = node("Loop", ["", "", "yes", "a0", "step", "a0"], outputs, body=body_of(nodes, states, "alive2"))
    inputs = [value(name, []) for name in ("a0", "step", "end")]
    proto = model([loop], inputs, [value("alive_", [], BOOL), *(value(name, []) for name in outputs[1:])],
                  [tensor("yes", np.array(True))])  # fmt: skip
    module = tvm_rammer.compile(proto)
    assert steps_of(module) == [ROUNDS]
    for end in (-1, 0.5, 1, 30, 63, 64, 65, 130):
        check(module, proto, a0=np.float32(0), step=np.float32(1), end=np.float32(end))


def test_states_that_change_places_and_rows_that_are_collected_twice():
    """A round hands on, and collects, what it was given, and the same under two names; nor is its condition its own."""
    nodes = [node("Add", ["a", "b"], ["c"]), node("Less", ["c", "end"], ["on"]), node("Identity", ["b"], ["b2"])]
    nodes += [node("Identity", [name], [f"{name}_row"]) for name in ("a", "n")]
    nodes += [node("Identity", ["c"], [f"c_row{n}"]) for n in range(3)]
    nodes += [node("Identity", ["was"], ["going"]), node("Not", ["going"], ["on_row"])]
    states = [("a", [], FLOAT, "b2"), ("b", [], FLOAT, "c"), ("was", [], BOOL, "on")]
    rows = [value("a_row", []), value("n_row", [], INT64), *(value(f"c_row{n}", []) for n in range(3))]
    rows.append(value("on_row", [], BOOL))
    outputs = ["a_", "b_", "was_", "as", "ns", "c0", "c1", "c2", "ons"]
    loop = node("Loop", ["limit", "", "one", "one", "yes"], outputs, body=body_of(nodes, states, "going", rows))
    kinds = [FLOAT, FLOAT, BOOL, FLOAT, INT64, FLOAT, FLOAT, FLOAT, BOOL]
    results = [value(name, [] if n < 3 else ["k"], kinds[n]) for n, name in enumerate(outputs)]
    constants = [tensor("one", np.float32(1)), tensor("yes", np.array(True)), tensor("limit", np.array(90))]
    proto = model([loop], [value("end", [])], results, constants)
    module = tvm_rammer.compile(proto)
    assert steps_of(module) == [ROUNDS]
    for end in (0, 2, 100, 1e6, 1e30):
        check(module, proto, end=np.float32(end))


def test_a_state_that_becomes_a_constant_is_called_round_by_round():
    nodes = [node("Add", ["a", "b"], ["c"]), node("Less", ["c", "end"], ["on"])]
    nodes.append(node("Constant", [], ["five"], value=tensor("", np.float32(5))))
    states = [("a", [], FLOAT, "five"), ("b", [], FLOAT, "c")]
    loop = node("Loop", ["", "", "one", "one"], ["a_", "b_"], body=body_of(nodes, states, "on"))
    results = [value("a_", []), value("b_", [])]
    proto = model([loop], [value("end", [])], results, [tensor("one", np.float32(1))])
    module = tvm_rammer.compile(proto)
    assert not steps_of(module)
    for end in (0, 2, 100, 1000):
        check(module, proto, end=np.float32(end))


@pytest.mark.parametrize("taken", [True, False])
def test_within_a_branch_and_within_a_loop(taken):
    """An If, one of whose branches is such a loop; all of it in another such loop."""
    cell = [node("Mul", ["v", "half"], ["w"]), node("Greater", ["w", "low"], ["on"])]
    inner = helper.make_graph(
        cell, "inner", [value("n", [], INT64), value("go", [], BOOL), value("v", [])],
        [value("on", [], BOOL), value("w", [])],
    )  # fmt: skip
    then = helper.make_graph([node("Loop", ["", "", "y"], ["t"], body=inner)], "then", [], [value("t", [])])
    other = helper.make_graph([node("Neg", ["y"], ["e"])], "else", [], [value("e", [])])
    outer = [
        node("Add", ["s", "x"], ["y"]), node("If", ["flag"], ["z"], then_branch=then, else_branch=other),
        node("Add", ["z", "y"], ["s2"]), node("Abs", ["s2"], ["size"]), node("Less", ["size", "high"], ["more"]),
    ]  # fmt: skip
    loop = node("Loop", ["limit", "", "x"], ["r"], body=body_of(outer, [("s", [], FLOAT, "s2")], "more"))
    constants = [tensor("half", np.float32(0.5)), tensor("low", np.float32(1e-3)), tensor("high", np.float32(400))]
    constants.append(tensor("limit", np.array(90)))
    proto = model([loop], [value("x", []), value("flag", [], BOOL)], [value("r", [])], constants)
    module = tvm_rammer.compile(proto)
    assert steps_of(module) == [ROUNDS]
    for x in (0.1, 7.0, 390.0):
        check(module, proto, x=np.float32(x), flag=np.array(taken))


def test_beside_a_loop_of_a_known_length_and_a_loop_that_never_runs():
    """The names of their functions are apart."""
    proto = countdown(16)
    step = helper.make_graph(
        [node("Add", ["s", "xi"], ["s2"]), node("Tanh", ["s2"], ["yi"])],
        "step", [value("s", [16]), value("xi", [16])], [value("s2", [16]), value("yi", [16])],
    )  # fmt: skip
    turns = [
        node("Sin", ["v"], ["v2"]),
        node("ReduceMin", ["v2"], ["v3"], keepdims=0),
        node("Less", ["v3", "low"], ["go2"]),
    ]
    never = body_of(turns, [("v", [1], FLOAT, "v2")], "go2")
    proto.graph.node.extend([
        node("Scan", ["start", "xs"], ["scanned", "ys"], body=step, num_scan_inputs=1),
        node("ReduceSum", ["scanned"], ["s_last"]),
        node("Loop", ["", "no", "s_last"], ["kept"], body=never),
    ])  # fmt: skip
    proto.graph.initializer.extend([tensor("start", random(16, seed=8)), tensor("no", np.array(False))])
    proto.graph.initializer.append(tensor("low", np.float32(0.5)))
    proto.graph.input.append(value("xs", [12, 16]))
    proto.graph.output.extend([value("ys", [12, 16]), value("kept", [1])])
    module = tvm_rammer.compile(proto)
    assert {12, ROUNDS} == set(steps_of(module))
    for loops in (module, tvm_rammer.compile(proto, loops=False)):
        check(loops, proto, count=70, h0=random(1, 16), x=random(1, 16, seed=5), xs=random(12, 16, seed=6))


def test_an_index_outside_in_any_round():
    """Each round looks up where the next one looks, until that is 0."""
    nodes = [node("Gather", ["table", "i"], ["j"]), node("Greater", ["j", "zero"], ["on"])]
    loop = node("Loop", ["", "", "first"], ["last"], body=body_of(nodes, [("i", [], INT64, "j")], "on"))
    inputs = [value("table", [300], INT64), value("first", [], INT64)]
    proto = model([loop], inputs, [value("last", [], INT64)], [tensor("zero", np.array(0))])
    module = tvm_rammer.compile(proto)
    assert steps_of(module) == [ROUNDS]
    table = (np.arange(300) + 1) % 300
    for first, outside in itertools.product((0, 17, 299 - ROUNDS, 298, 299), (300, -301, 2**62)):
        check(module, proto, table=table, first=np.array(first))
        for at in (0, 18, 299):  # rows from the first on are read, and followed while they say something positive
            feeds = {"table": np.where(np.arange(300) == at, outside, table), "first": np.array(first)}
            if at >= first and outside > 0:
                with pytest.raises(ModelError, match="Gather got an index outside of the 300"):
                    module(**feeds)
            else:
                assert module(**feeds) == (outside if at >= first else 0)


def test_saved_exported_and_called_from_several_threads(tmp_path):
    proto = countdown(64, 4)
    module = tvm_rammer.compile(proto, cache=False)
    module.save(tmp_path / "m.rammer")
    loaded = tvm_rammer.load(tmp_path / "m.rammer")
    feeds = [{"count": np.array(n), "h0": random(4, 64, seed=n), "x": random(4, 64, seed=n + 9)} for n in NUMBERS]
    expected = [module.run(None, each) for each in feeds]
    wrong = []

    def call(mine):
        for _ in range(30):
            for each, right in zip(feeds, expected, strict=True):
                wrong.extend(a for a, b in zip(mine.run(None, each), right, strict=True) if not np.array_equal(a, b))

    threads = [threading.Thread(target=call, args=[mine]) for mine in (module, loaded, module)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("count", [1, 2, 7, ROUNDS, ROUNDS + 5])
def test_the_reference_interpreter_ends_with_the_same_round(count):
    """In random orders, with memory that nobody has written."""
    region = planned_loop(countdown(16), units=2, data_loops=True)
    h0, x = random(1, 16), random(1, 16, seed=5)
    values = {**region.constants, "end_outlined_round": np.array(0), "left": np.array(count), "h": h0, "x": x}
    rounds = min(count, ROUNDS)
    for order in range(4):
        rtasks = compile_rtasks(region.kernels, region.device)
        found = interpret(region.program, rtasks, values, packs=[k.packs for k in region.kernels], seed=order)
        (told,) = [array for array in found.values() if array.shape == (ROUNDS,)]
        assert told.astype(bool)[:rounds].tolist() == [True] * (rounds - 1) + [count > ROUNDS]
        (ring,) = [array for array in found.values() if array.shape == (2, 1, 16)]
        expected = h0
        for _ in range(rounds):
            expected = np.tanh(expected @ random(16, 16, seed=3) * np.float32(0.5 / 4) + x)
        np.testing.assert_allclose(ring[rounds % 2], expected, rtol=1e-4, atol=1e-5)


def test_each_round_is_a_call_where_loops_are_not_kept():
    proto = countdown(16)
    module = tvm_rammer.compile(proto, loops=False)
    assert not steps_of(module)
    check(module, proto, count=np.array(70), h0=random(1, 16), x=random(1, 16))
