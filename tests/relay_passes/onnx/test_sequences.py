"""Sequences of known lengths, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes.onnx.sequences import resolve_sequences

from ..models import by_onnxruntime, model, node, random, tensor, value

X = random(5, 4)


def agree(nodes, outputs, constants=()):
    inputs = [value("x", [5, 4]), value("y", [5, 4])]
    proto = model(nodes, inputs, outputs, [tensor(name, np.array(array)) for name, array in constants])
    feeds = {"x": X, "y": -X}
    module = tvm_rammer.compile(proto, cache=False)
    for got, want in zip(module.run(None, feeds), by_onnxruntime(proto, **feeds), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


PAIR = node("SequenceConstruct", ["x", "y"], ["s"])


@pytest.mark.parametrize("place", [-2, -1, 0, 1])
def test_an_element(place):
    agree([PAIR, node("SequenceAt", ["s", "p"], ["z0"]), node("Sin", ["z0"], ["z"])], ["z"], [("p", place)])


@pytest.mark.parametrize("place", [None, -2, -1, 0, 1, 2])
def test_an_insertion(place):
    inserted = node("SequenceInsert", ["s", "n", *(["p"] if place is not None else [])], ["t"])
    joined = node("ConcatFromSequence", ["t"], ["z"], axis=0)
    known = [("p", place)] if place is not None else []
    agree([node("Exp", ["x"], ["n"]), PAIR, inserted, joined], ["z"], known)


@pytest.mark.parametrize("place", [None, -1, 0])
def test_an_element_that_is_taken_out(place):
    nodes = [PAIR, node("SequenceErase", ["s", *(["p"] if place is not None else [])], ["t"])]
    nodes += [node("SequenceLength", ["t"], ["n"]), node("ConcatFromSequence", ["t"], ["z"], axis=-1, new_axis=1)]
    agree(nodes, ["z", value("n", [], TensorProto.INT64)], [("p", place)] if place is not None else [])


@pytest.mark.parametrize(
    ("split", "attributes"),
    [
        (None, {"axis": 1}),
        (None, {"axis": 0, "keepdims": 0}),
        (2, {"axis": 0}),
        ([1, 4], {"axis": 0}),
        ([1, 3], {"axis": -1}),
    ],
)
def test_parts_of_a_tensor(split, attributes):
    nodes = [node("SplitToSequence", ["x", *(["n"] if split is not None else [])], ["s"], **attributes)]
    nodes += [node("SequenceLength", ["s"], ["count"]), node("SequenceAt", ["s", "last"], ["z"])]
    known = [("last", -1)] + ([("n", split)] if split is not None else [])
    agree(nodes, ["z", value("count", [], TensorProto.INT64)], known)


def test_a_loop_that_collects_into_a_sequence():
    given = [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL)]
    elements = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    after = helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)
    nodes = [node("Identity", ["go"], ["on"]), node("Cast", ["i"], ["f"], to=1), node("Add", ["x", "f"], ["e"])]
    nodes += [node("SequenceInsert", ["s", "e"], ["t"])]
    body = helper.make_graph(nodes, "body", [*given, elements], [value("on", [], TensorProto.BOOL), after])
    main = [
        node("SequenceEmpty", [], ["none"]),
        node("Loop", ["rounds", "true", "none"], ["all"], body=body),
        node("ConcatFromSequence", ["all"], ["z"], axis=0, new_axis=1),
    ]
    agree(main, ["z"], [("rounds", 3), ("true", True)])


def test_a_body_for_each_element():
    body = helper.make_graph(
        [node("Mul", ["a", "w"], ["m"]), node("Add", ["m", "b"], ["c"])],
        "body",
        [value("a", None), value("b", None)],
        [value("c", None)],
        [tensor("w", random(4))],
    )
    mapped = node("SequenceMap", ["s", "x"], ["t"], body=body)
    agree([PAIR, mapped, node("ConcatFromSequence", ["t"], ["z"], axis=0)], ["z"])


def test_a_sequence_that_a_model_returns_becomes_its_elements():
    nodes = [node("Exp", ["x"], ["e"]), node("SequenceConstruct", ["e", "x"], ["s"]), node("Neg", ["e"], ["n"])]
    proto = model(nodes, [value("x", [5, 4])], ["n"])
    proto.graph.output.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    module = tvm_rammer.compile(proto, cache=False)
    assert [spec.name for spec in module.outputs] == ["n", "s[0]", "s[1]"]
    for got, want in zip(module.run(["s[0]", "s[1]", "n"], {"x": X}), (np.exp(X), X, -np.exp(X)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_sequence_whose_length_data_decide_is_refused():
    def part(kind):
        sequence = helper.make_tensor_sequence_value_info(kind, TensorProto.FLOAT, None)
        return helper.make_graph([node("SequenceConstruct", ["x"] * len(kind), [kind])], kind, [], [sequence])

    decided = node("If", ["c"], ["s"], then_branch=part("a"), else_branch=part("bb"))
    nodes = [decided, node("SequenceLength", ["s"], ["z"])]
    proto = model(nodes, [value("x", [5, 4]), value("c", [], TensorProto.BOOL)], [value("z", [], TensorProto.INT64)])
    with pytest.raises(UnsupportedOperatorError, match="output 'a', made by SequenceConstruct, is no tensor but tuple"):
        tvm_rammer.compile(proto, cache=False)


@pytest.mark.parametrize("known", ["then_branch", "else_branch"])
def test_branches_that_use_the_same_name_have_sequences_of_their_own(known):
    def branch(name):
        inserted = node("SequenceInsert", ["q", "x", "place"], ["s"])
        nodes = [PAIR] if name == known else [node("SequenceConstruct", ["y"], ["q"]), inserted]
        nodes.append(node("SequenceAt", ["s", "one"], [name]))
        return helper.make_graph(nodes, name, [], [value(name, [5, 4])])

    names = ("then_branch", "else_branch")
    decided = node("If", ["c"], ["z"], **{name: branch(name) for name in names})
    inputs = [value("x", [5, 4]), value("y", [5, 4]), value("c", [], TensorProto.BOOL)]
    inputs.append(value("place", [], TensorProto.INT64))
    proto = model([decided], inputs, ["z"], [tensor("one", np.array(1))])
    assert resolve_sequences(proto)
    left = {a.name: [n.op_type for n in a.g.node] for a in proto.graph.node[0].attribute}
    assert left.pop(known) == ["SequenceConstruct", "Identity"]
    assert left.popitem()[1] == ["SequenceConstruct", "SequenceInsert", "SequenceAt"]


@pytest.mark.parametrize("place", [-3, 2])
def test_a_position_outside_of_a_sequence_is_refused(place):
    with pytest.raises(ModelError, match=f"position {place} in a sequence of 2"):
        agree([PAIR, node("SequenceAt", ["s", "p"], ["z"])], ["z"], [("p", place)])


@pytest.mark.parametrize("place", [-3, 3])
def test_a_place_for_an_insertion_outside_of_a_sequence_is_refused(place):
    nodes = [PAIR, node("SequenceInsert", ["s", "x", "p"], ["t"]), node("ConcatFromSequence", ["t"], ["z"], axis=0)]
    with pytest.raises(ModelError, match=f"position {place} to insert at in a sequence of 2"):
        agree(nodes, ["z"], [("p", place)])
