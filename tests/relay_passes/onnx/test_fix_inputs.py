"""Inputs that are always the same become constants."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import fix_inputs, load_model

from ..models import by_onnxruntime, model, node, op_names, random, value


def chosen():
    """A branch by an input, a factor, and an offset of open shape."""
    branches = {
        f"{side}_branch": helper.make_graph([node(kind, ["x"], ["b"])], side, [], [value("b", [2, 3])])
        for side, kind in (("then", "Sin"), ("else", "Tanh"))
    }
    nodes = [
        node("If", ["flag"], ["f"], **branches),
        node("Mul", ["f", "factor"], ["g"]),
        node("Add", ["g", "offset"], ["y"]),
    ]
    inputs = [value("x", [2, 3]), value("flag", [], TensorProto.BOOL), value("factor", [2, 1]), value("offset", ["n"])]
    return model(nodes, inputs, ["y"])


def test_what_depends_on_them_is_decided(run):
    given = {"flag": True, "factor": 2, "offset": random(3, seed=1)}
    proto = chosen()
    fixed = fix_inputs(proto, given)
    assert [i.name for i in fixed.graph.input] == ["x"] and len(proto.graph.input) == 4
    mod = load_model(fixed)
    assert op_names(mod) == ["sin", "multiply", "add"]
    x = random(2, 3)
    want = by_onnxruntime(proto, x=x, flag=np.array(True), factor=np.full((2, 1), 2, "float32"), offset=given["offset"])
    np.testing.assert_allclose(run(mod, x), want[0], rtol=1e-5)


def test_numbers_are_rounded_as_floats_are():
    fixed = fix_inputs(chosen(), {"factor": 0.1, "offset": [np.nan]})
    factor, offset = (numpy_helper.to_array(tensor) for tensor in fixed.graph.initializer)
    assert (factor == np.float32(0.1)).all() and np.isnan(offset).all()


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"sr": 1}, "'sr', which is no input; the inputs are x, flag, factor, offset"),
        ({"flag": 0.5}, "0.5 is no bool"),
        ({"factor": "two"}, "'factor'"),
        ({"factor": [1.0, 2.0]}, r"has the shape \(2,\); the input has \(2, 1\)"),
        ({"offset": 1.0}, r"has the shape \(\); the input has \(\?\)"),
    ],
)
def test_values_that_do_not_fit(values, error):
    with pytest.raises(ModelError, match=error):
        fix_inputs(chosen(), values)
