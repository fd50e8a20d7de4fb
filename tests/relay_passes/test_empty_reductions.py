"""Reductions over nothing have the value that they start from, whether the sizes or only the data say so."""

import numpy as np
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes.empty_reductions import StartEmptyReductions

from .models import by_onnxruntime, model, node, random, tensor, value

ALONG_ROWS = {
    name: [node(name, ["rows", "axes"], ["y"], keepdims=0)]
    for name in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp")
} | {
    "ReduceSum of all": [node("ReduceSum", ["rows"], ["y"])],
    "Gemm": [node("Gemm", ["rows", "rows"], ["y"], transA=1)],
    "Einsum": [node("Einsum", ["rows", "rows"], ["y"], equation="ij,ik->jk")],
    "fused": [node("Exp", ["rows"], ["e"]), node("ReduceSum", ["e", "axes"], ["s"]), node("Relu", ["s"], ["y"])],
}


def of_selected_rows(nodes):
    """A model that computes something of those rows that a condition selects."""
    inputs = [value("x", [4, 3]), value("c", [4], TensorProto.BOOL)]
    selected = node("Compress", ["x", "c"], ["rows"], axis=0)
    return model([selected, *nodes], inputs, ["y"], [tensor("axes", np.array([0]))], 20, 10)


@pytest.mark.parametrize("name", ALONG_ROWS)
def test_of_rows_that_no_condition_selects(name):
    proto, x = of_selected_rows(ALONG_ROWS[name]), random(4, 3)
    module = tvm_rammer.compile(proto)
    for selected in (0, 0, 2):  # what a call leaves in memory is not the next one's result
        condition = np.arange(4) < selected
        (want,) = by_onnxruntime(proto, x=x, c=condition)
        np.testing.assert_allclose(module(x, condition), want, rtol=1e-5)


@pytest.mark.parametrize("name", ["ReduceMax", "ReduceSum", "Einsum"])
def test_of_a_slice_without_rows(name):
    cut = node("Slice", ["x", "none", "none", "axes"], ["rows"])
    constants = [tensor("axes", np.array([0])), tensor("none", np.array([0]))]
    proto = model([cut, *ALONG_ROWS[name]], [value("x", [4, 3])], ["y"], constants, 20, 10)
    (want,) = by_onnxruntime(proto, x=random(4, 3))
    np.testing.assert_array_equal(tvm_rammer.compile(proto)(random(4, 3)), want)


def test_of_samples_of_a_box_that_is_turned_inside_out():
    """How many samples a window has follows from its box: none where that ends before it begins."""
    boxes = np.array([[1, 1, 5, 5], [5, 5, 1, 1], [5, 1, 1, 5], [2, 2, 2, 2]], "float32")
    where = np.zeros(4, np.int64)
    align = node("RoiAlign", ["x", "boxes", "where"], ["y"], output_height=3, output_width=3)
    inputs = [value("x", [1, 2, 8, 8]), value("boxes", [4, 4]), value("where", [4], TensorProto.INT64)]
    proto, x = model([align], inputs, ["y"], opset=16), random(1, 2, 8, 8)
    (want,) = ReferenceEvaluator(proto).run(None, {"x": x, "boxes": boxes, "where": where})
    assert not want[1:].any() and want[0].all()
    np.testing.assert_allclose(tvm_rammer.compile(proto)(x, boxes, where), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_a_place_among_no_elements_is_an_error(kind):
    module = tvm_rammer.compile(of_selected_rows([node(kind, ["rows"], ["y"], axis=0)]))
    x = random(4, 3)
    with pytest.raises(ModelError, match=f"{kind.lower()} looks for the place of an extreme among no elements"):
        module(x, np.zeros(4, bool))
    np.testing.assert_array_equal(module(x, np.ones(4, bool)), getattr(np, kind.lower())(x, 0)[np.newaxis])


def test_a_place_among_surely_no_elements_is_refused():
    with pytest.raises(ModelError, match="argmax looks for the place of an extreme among no elements"):
        tvm_rammer.compile(relax_module([(0, 3)], lambda x: relax.op.argmax(x, 0)))


def test_products_of_modules_that_have_no_columns():
    def product(x, w):
        return relax.op.matmul(relax.op.strided_slice(x, [1], [0], [0]), w)

    module = tvm_rammer.compile(relax_module([(2, 3), (0, 4)], product))
    np.testing.assert_array_equal(module(random(2, 3), np.zeros((0, 4), "float32")), np.zeros((2, 4)))


def test_reductions_along_axes_that_have_elements_stay_as_they_are():
    mod = relax.transform.LegalizeOps()(relax_module([(4, 3)], lambda x: relax.op.sum(x, 0)))
    assert StartEmptyReductions()(mod).same_as(mod)
