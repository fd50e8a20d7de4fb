"""Loops whose steps look at indices stay loops, and tell of an index that was outside in any step."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tvm_rammer.errors import ModelError

from ...models import by_onnxruntime, model, node, random, tensor, value

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
ROWS = 50
FOLLOWING = (np.arange(ROWS) + 1) % ROWS


def chase(rounds, *, twice=False, collect=False):
    """Each round looks up where the next one looks: a Loop with states of two indices."""
    nodes = [node("Gather", ["table", "i"], ["j"]), node("Identity", ["go"], ["on"])]
    nodes.append(node("Gather", ["table", "j"], ["k"]) if twice else node("Neg", ["j"], ["k"]))
    results = [value("on", [], BOOL), value("j", [2], INT64)] + [value("k", [2], INT64)] * collect
    body = helper.make_graph(
        nodes, "body", [value("n", [], INT64), value("go", [], BOOL), value("i", [2], INT64)], results
    )
    names = ["last", "all"][: 1 + collect]
    outputs = [value(name, None, INT64) for name in names]
    inputs = [value("table", [ROWS], INT64), value("first", [2], INT64)]
    limit = tensor("limit", np.array(rounds))
    return model([node("Loop", ["limit", "", "first"], names, body=body)], inputs, outputs, [limit], opset=17)


def embed(steps):
    """A Scan that looks up a row for each number that it reads, and adds them up."""
    nodes = [node("Gather", ["table", "id"], ["row"]), node("Add", ["sum", "row"], ["next"])]
    nodes.append(node("Tanh", ["next"], ["y"]))
    body = helper.make_graph(
        nodes, "body", [value("sum", [8]), value("id", [], INT64)], [value("next", [8]), value("y", [8])]
    )
    scan = node("Scan", ["zero", "ids"], ["last", "ys"], body=body, num_scan_inputs=1)
    constants = [tensor("table", random(ROWS, 8)), tensor("zero", np.zeros(8, np.float32))]
    return model([scan], [value("ids", [steps], INT64)], ["last", "ys"], constants, opset=17)


def steps_of(module):
    return [program.steps for program in module.rprograms]


@pytest.mark.parametrize("rounds", [20, 21])
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("collect", [False, True])
def test_a_loop_with_indices_stays_one(rounds, twice, collect):
    proto = chase(rounds, twice=twice, collect=collect)
    module = tvm_rammer.compile(proto)
    assert rounds in steps_of(module)
    for first in ([0, 1], [7, -50]):
        feeds = {"table": FOLLOWING, "first": np.array(first)}
        for mine, theirs in zip(module.run(None, feeds), by_onnxruntime(proto, **feeds), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("bad", [ROWS, -ROWS - 1, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("at", [5, 9, 23])
def test_an_index_outside_in_any_step_is_told(bad, at):
    """Rounds read rows 5 to 24, each where the one before leads: what row 24 says is never followed."""
    module = tvm_rammer.compile(chase(20))
    table = np.where(np.arange(ROWS) == at, bad, FOLLOWING)
    with pytest.raises(ModelError, match="Gather got an index outside of the 50 that it indexes"):
        module(table=table, first=np.array([5, 0]))
    module(table=FOLLOWING, first=np.array([5, 0]))
    module(table=np.where(np.arange(ROWS) == 24, bad, FOLLOWING), first=np.array([5, 0]))


def test_each_place_has_a_flag_of_its_own():
    """The second look of a round is one row ahead: what only the last one of them reads is told, too."""
    once, twice = (tvm_rammer.compile(chase(20, twice=twice, collect=True)) for twice in (False, True))
    table = np.where(np.arange(ROWS) == 24, ROWS, FOLLOWING)
    once(table=table, first=np.array([5, 5]))
    with pytest.raises(ModelError, match="Gather got an index outside"):
        twice(table=table, first=np.array([5, 5]))
    twice(table=np.where(np.arange(ROWS) == 25, ROWS, FOLLOWING), first=np.array([5, 5]))


def test_one_compilation_for_every_length():
    module = tvm_rammer.compile(embed("time"), shapes={"time": (1, 40)})
    for steps in (40, 9, 23, 1):
        ids = np.arange(steps) * 7 % ROWS
        for mine, theirs in zip(module(ids), by_onnxruntime(embed("time"), ids=ids), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-5)
        outside = np.where(np.arange(steps) == steps - 1, ROWS, ids)
        with pytest.raises(ModelError, match="Gather got an index outside"):
            module(outside)
    assert len(module.modules) == 1
