"""Axes that are broadcast, begun before they begin, or chosen when the model runs."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import ModelError

from ....models import model, node, random, tensor, value
from ...test_load_onnx import agree
from ..judge import check

EQUATIONS = [
    ("bij,bjk->bik", (1, 3, 4), (2, 4, 5)), ("bij,bjk->bik", (2, 3, 1), (1, 4, 5)), ("ij,ij->ij", (3, 1), (3, 4)),
    ("ij,ij", (1, 4), (3, 4)), ("bij,bjk", (1, 3, 4), (2, 4, 5)), ("i,ij->ij", (1,), (3, 4)), ("i,i->", (1,), (4,)),
    ("i,i->i", (4,), (1,)), ("a...,a...->a...", (1, 3, 4), (2, 1, 4)), ("B...j,Bj->...B", (2, 3, 1), (1, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("equation", "left", "right"), EQUATIONS)
def test_letters_that_are_one_in_some_term(equation, left, right, run):
    for elem, dtype in ((TensorProto.FLOAT, "float32"), (TensorProto.DOUBLE, "float64")):
        given = [value("a", left, elem), value("b", right, elem)]
        proto = model([node("Einsum", ["a", "b"], ["y"], equation=equation)], given, [value("y", None, elem)])
        agree(run, proto, a=random(*left).astype(dtype), b=random(*right, seed=1).astype(dtype))


def test_a_scale_for_all_of_three_terms(run):
    shapes = {"a": (1,), "b": (4, 1), "c": (4, 3)}
    nodes = [node("Einsum", ["a", "b", "c"], ["y"], equation="i,ij,ij->j")]
    proto = model(nodes, [value(name, shape) for name, shape in shapes.items()], ["y"])
    agree(run, proto, **{name: random(*shape, seed=n) for n, (name, shape) in enumerate(shapes.items())})


def sliced(data, begins, ends, axes, steps, dtype="int64"):
    bounds = {"b": begins, "e": ends, "ax": axes, "st": steps}
    constants = [tensor(name, np.array(numbers, dtype)) for name, numbers in bounds.items() if numbers is not None]
    names = ["b", "e", "ax" if axes is not None else "", "st"]
    return model([node("Slice", [data, *names], ["s"]), node("Neg", ["s"], ["y"])], [], ["y"], constants)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("begins", "ends", "axes", "steps"),
    [
        ([-9], [-20], [0], [-1]), ([-6], [-20], [0], [-2]), ([-6, 9], [-20, 0], None, [-3, -2]),
        ([-9, -7], [-20, -20], [-1, 0], [-1, -1]), ([-9], [2], [0], [-1]), ([-9, -9], [3, -9], [0, 1], [1, -1]),
    ],
)  # fmt: skip
def test_backwards_from_before_an_axis(begins, ends, axes, steps, dtype, constant, run):
    """ONNX begins at the first element, where Python has nothing."""
    proto, x = sliced("x", begins, ends, axes, steps, dtype), random(5, 4)
    feeds = {} if constant else {"x": x}
    if constant:
        proto.graph.initializer.append(tensor("x", x))
    else:
        proto.graph.input.append(value("x", [5, 4]))
    agree(run, proto, **feeds)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
@pytest.mark.parametrize("how", [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
@pytest.mark.parametrize(("kind", "opset"), [("CumSum", 14), ("CumProd", 26)])
def test_along_an_axis_that_is_an_input(kind, opset, how, shape, run):
    for axis in (0, -1):
        check(run, kind, [random(*shape), np.array(axis)], opset=opset, **how)


def test_along_an_axis_that_is_none():
    given = [value("x", [2, 3]), value("axis", [], TensorProto.INT64)]
    module = tvm_rammer.compile(model([node("CumSum", ["x", "axis"], ["y"])], given, ["y"]))
    with pytest.raises(ModelError, match="mend the data of 'axis'"):
        module(random(2, 3), np.array(2))
