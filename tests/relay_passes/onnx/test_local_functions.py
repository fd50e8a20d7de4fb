"""Functions that a model brings along are inlined, those for an older opset too where that means the same."""

import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ..models import model, node, random, value
from .test_load_onnx import agree


def with_function(nodes, opset, yes=()):
    """A model whose only node is a function of these nodes, from `a`, and a truth value, to `b`."""
    inputs = [value("x", [3]), *(value(name, [], TensorProto.BOOL) for name in yes)]
    proto = model([node("Own", ["x", *yes], ["y"], domain="own")], inputs, ["y"], opset=18)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    opsets = [helper.make_opsetid("", opset)]
    proto.functions.append(helper.make_function("own", "Own", ["a", *yes], ["b"], nodes, opsets))
    return proto


@pytest.mark.parametrize("opset", [17, 14])
def test_local_functions_are_inlined(opset, run):
    agree(run, with_function([node("Add", ["a", "a"], ["b"])], opset), x=random(3))


def test_a_function_whose_operators_meant_something_else_is_refused():
    softmax = node("Softmax", ["a"], ["b"])
    changed = node("ReduceMax", ["a"], ["b"], axes=[0])
    with pytest.raises(ModelError, match="FunctionOp imports version 12"):  # says onnx's checker
        load_model(with_function([softmax], 12))
    graphs = {f"{name}_branch": helper.make_graph([changed], name, [], [value("b", [1])]) for name in ("then", "else")}
    with pytest.raises(UnsupportedOperatorError, match=r"lacks own\.Own"):
        load_model(with_function([node("If", ["yes"], ["b"], **graphs)], 16, ["yes"]))
