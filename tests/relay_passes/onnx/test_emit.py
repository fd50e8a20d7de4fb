"""Messages speak of what is in the file, and not of names that were made here."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.onnx.check.names import in_file
from tvm_rammer.relay_passes.onnx.emit import Emitter

from ..models import model, node, tensor, value


def test_the_name_behind_a_name():
    within = Emitter(node("Gelu", ["x"], ["y"]), 17, how="lowered")
    first = within("Add", "x", "x")
    again = Emitter(node("Add", ["x"], [first]), 17, how="sizes")("Reshape", "x")
    assert first != again
    assert [in_file(name) for name in ("y", first, again, within.inner()("Mul", "x"))] == ["y"] * 4


def test_the_name_behind_a_copy_of_a_round():
    rounds = Emitter(node("Loop", ["n"], ["last"]), 17)
    assert in_file(f"{rounds.prefix}12/layer/row") == "layer/row"
    assert in_file(Emitter(node("Gelu", ["x"], [f"{rounds.prefix}12/z"]), 17, how="lowered")("Add", "x")) == "z"


@pytest.mark.parametrize("name", ["/encoder/blocks/0/attn/Add", "a/lowered/1/b", "/:0", "x:0"])
def test_names_of_files_are_kept(name):
    assert in_file(name) == name


def test_a_part_of_a_node_is_told_as_that():
    only = node("MultiHeadAttention", ["q", "q", "q", "", "", "bias"], ["out"], domain="com.microsoft", num_heads=2)
    proto = model([only], [value("q", [1, 3, 8]), value("bias", [1, 2, 3, 5])], ["out"])
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(ModelError, match=r"Add \(a part of 'out'\)"):
        load_model(proto)


def test_what_a_round_of_a_loop_refuses_is_told_as_in_the_file():
    nodes = [
        node("Identity", ["go"], ["go_on"]),
        node("RandomNormalLike", ["s"], ["noise"]),
        node("Add", ["s", "noise"], ["next"]),
    ]
    given = [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("s", [2, 3])]
    results = [value("go_on", [], TensorProto.BOOL), value("next", [2, 3])]
    loop = node("Loop", ["rounds", "true", "x"], ["y"], body=helper.make_graph(nodes, "body", given, results))
    constants = [tensor("rounds", np.array(2)), tensor("true", np.array(True))]
    with pytest.raises(ModelError, match="RandomNormalLike 'noise' draws random numbers"):
        load_model(model([loop], [value("x", [2, 3])], ["y"], constants))


def test_axes_that_are_a_size():
    """The frontend has a tensor for the size, under another name."""
    proto = model(
        [
            node("Range", ["zero", "n", "one"], ["rows"]),
            node("Shape", ["rows"], ["axes"]),
            node("Pad", ["x", "pads", "", "axes"], ["y"]),
        ],
        [value("n", [], TensorProto.INT64), value("x", [2, 3])],
        ["y"],
        [tensor("zero", np.array(0)), tensor("one", np.array(1)), tensor("pads", np.array([1, 1]))],
        opset=18,
    )
    with pytest.raises(ModelError, match="Pad 'y'") as caught:
        load_model(proto)
    assert "/" not in str(caught.value)
