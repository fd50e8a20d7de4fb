"""What is done to Scans whose steps have products: taken apart, in blocks, ahead of the loop; the results stay."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.relay_passes.onnx.fold import fold_onnx
from tvm_rammer.relay_passes.onnx.roll_up.ahead import move_ahead
from tvm_rammer.relay_passes.onnx.roll_up.gates import put_gates_in_blocks
from tvm_rammer.relay_passes.onnx.roll_up.gemms import take_gemms_apart

from ...models import by_onnxruntime, model, node, random, tensor, value
from .cells import unrolled
from .rolled import assert_same, bodies, given, kinds, rolled

T, B, X, H = 10, 2, 5, 8


def scan(nodes, inits=(), axis=0, backward=0, state="next", more=(), body_inits=()):
    """A Scan of a state [B, H] that reads slices [B, X] of x; `nodes` make "next", and "seen" for all steps."""
    body = helper.make_graph(
        [*nodes, node("Identity", [state], ["after"])],
        "body",
        [value("h", [B, H]), value("x_t", [B, X])],
        [value("after", [B, H]), value("seen", None)],
        list(body_inits),
    )
    attributes = {"scan_input_axes": [axis], "scan_input_directions": [backward]}
    loop = node("Scan", ["h0", "x"], ["last", "y"], body=body, num_scan_inputs=1, **attributes)
    shape = [B, X]
    shape.insert(axis, T)
    inits = [tensor("wx", random(X, H)), tensor("wh", random(H, H, seed=1)), tensor("b", random(H, seed=2)), *inits]
    outputs = [value("last", [B, H]), "y"]
    return model([loop], [value("x", shape), value("h0", [B, H]), *more], outputs, inits)


def changed(proto, *passes):
    """The model after some passes, each of which changes it, and then finds nothing more to do."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for each in passes:
        assert each(made)
        fold_onnx(made)
        assert not each(made)
    assert_same(proto, made)
    return made


def unchanged(proto, each):
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    assert not each(made) and made == proto


NEXT = [node("MatMul", ["h", "wh"], ["hw"]), node("Add", ["hw", "sum"], ["t"]), node("Tanh", ["t"], ["next"])]
SEEN = node("Neg", ["next"], ["seen"])


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_products_of_what_is_read_go_ahead(axis, backward):
    nodes = [node("MatMul", ["x_t", "wx"], ["xw"]), node("Add", ["xw", "b"], ["sum"]), *NEXT, SEEN]
    made = changed(scan(nodes, axis=axis, backward=backward), move_ahead)
    assert kinds(made)["MatMul"] == 1 and kinds(made)["Add"] == 1
    (body,) = bodies(made)
    assert kinds(body)["MatMul"] == 1 and kinds(body)["Add"] == 1 and len(body.input) == 2


FORMS = {
    "activations of both sides": [
        node("Relu", ["x_t"], ["r"]), node("MatMul", ["r", "wx"], ["xw"]), node("Tanh", ["xw"], ["sum"]),
    ],
    "a shape and back": [
        node("Unsqueeze", ["x_t", "zero"], ["u"]), node("Reshape", ["u", "flat"], ["f"]),
        node("MatMul", ["f", "wx"], ["xw"]), node("Squeeze", ["xw", "zero"], ["sum"]),
    ],
    "parts": [
        node("MatMul", ["x_t", "wide"], ["xw"]), node("Split", ["xw", "halves"], ["l", "r"], axis=-1),
        node("Mul", ["l", "r"], ["sum"]),
    ],
    "side by side": [
        node("MatMul", ["x_t", "wx"], ["l"]), node("MatMul", ["x_t", "w2"], ["r"]),
        node("Concat", ["l", "r"], ["lr"], axis=-1), node("MatMul", ["lr", "narrow"], ["sum"]),
    ],
    "transposed": [
        node("Transpose", ["x_t"], ["xt"]), node("Transpose", ["xt"], ["xtt"], perm=[1, 0]),
        node("MatMul", ["xtt", "wx"], ["sum"]),
    ],
    "numbers of fewer axes": [
        node("ReduceMax", ["x_t"], ["m"], keepdims=0, axes=[0]), node("MatMul", ["x_t", "wx"], ["xw"]),
        node("MatMul", ["m", "wx"], ["mw"]), node("Add", ["xw", "mw"], ["sum"]),
    ],
    "of a bound": [
        node("Clip", ["x_t", "low", ""], ["c"]), node("MatMul", ["c", "wx"], ["sum"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_what_lies_around_products_goes_ahead(form):
    inits = [
        tensor("wide", random(X, 2 * H)), tensor("w2", random(X, H, seed=3)), tensor("narrow", random(2 * H, H)),
        tensor("low", np.float32(-0.5)),
    ]  # fmt: skip
    shapes = [tensor("zero", np.array([0])), tensor("flat", np.array([1, B, X])), tensor("halves", np.array([H, H]))]
    made = changed(scan([*FORMS[form], *NEXT, SEEN], inits, body_inits=shapes), move_ahead)
    (body,) = bodies(made)
    assert kinds(body)["MatMul"] == (2 if "fewer axes" in form else 1)


def test_what_reads_no_weights_or_the_state_stays():
    unchanged(scan([node("Relu", ["x_t"], ["r"]), node("ReduceSum", ["r"], ["sum"]), *NEXT, SEEN]), move_ahead)
    nodes = [node("Transpose", ["x_t"], ["xt"]), node("MatMul", ["x_t", "xt"], ["xx"])]
    unchanged(scan([*nodes, node("ReduceSum", ["xx"], ["sum"]), *NEXT, SEEN]), move_ahead)
    nodes = [node("ReduceMax", ["h"], ["m"]), node("Add", ["x_t", "m"], ["xm"]), node("MatMul", ["xm", "wx"], ["sum"])]
    unchanged(scan([*nodes, *NEXT, SEEN]), move_ahead)


def test_a_product_that_is_a_result_of_each_step_stays_in_it():
    nodes = [node("MatMul", ["x_t", "wx"], ["seen"]), node("Identity", ["seen"], ["sum"]), *NEXT]
    unchanged(scan(nodes), move_ahead)


def test_weights_that_are_an_input():
    nodes = [node("MatMul", ["x_t", "w"], ["sum"]), *NEXT, SEEN]
    made = changed(scan(nodes, more=[value("w", [X, H])]), move_ahead)
    assert kinds(made)["MatMul"] == 1


@pytest.mark.parametrize("attributes", [{}, {"transB": 1}])
@pytest.mark.parametrize("bias", [["b"], []])
def test_gemms(attributes, bias):
    weights = tensor("w", random(*((H, X) if attributes else (X, H)), seed=5))
    nodes = [node("Gemm", ["x_t", "w", *bias], ["sum"], **attributes), *NEXT, SEEN]
    made = changed(scan(nodes, [weights]), take_gemms_apart, move_ahead)
    assert "Gemm" not in kinds(made) + kinds(*bodies(made)) and kinds(made)["MatMul"] == 1


def test_gemms_that_scale_or_transpose_what_they_read_stay():
    for attributes in ({"alpha": 0.5}, {"beta": 2.0}):
        unchanged(scan([node("Gemm", ["x_t", "wx", "b"], ["sum"], **attributes), *NEXT, SEEN]), take_gemms_apart)
    nodes = [node("Transpose", ["x_t"], ["xt"]), node("Gemm", ["xt", "wx", "b"], ["sum"], transA=1)]
    unchanged(scan([*nodes, *NEXT, SEEN]), take_gemms_apart)


def gated(hidden, total=(), width=None):
    """A step whose product is split into three gates."""
    wide = 3 * hidden
    nodes = [
        node("MatMul", ["h", "u"], ["hu"]), *total, node("Split", ["total"], ["i", "j", "k"], axis=1),
        node("Sigmoid", ["i"], ["on"]), node("Tanh", ["j"], ["new"]), node("Mul", ["on", "new"], ["p"]),
        node("Mul", ["k", "h"], ["kept"]), node("Add", ["p", "kept"], ["q"]), node("Tanh", ["q"], ["next"]), SEEN,
    ]  # fmt: skip
    body = helper.make_graph(
        nodes, "body", [value("h", [B, hidden]), value("x_t", [B, wide])], [value("next", None), value("seen", None)]
    )
    loop = node("Scan", ["h0", "x"], ["last", "y"], body=body, num_scan_inputs=1)
    inits = [tensor("u", random(hidden, wide)), tensor("b", random(wide, seed=1)), tensor("one", np.float32(1.5)),
             tensor("w", random(wide, wide, seed=2) / wide)]  # fmt: skip
    given = [value("x", [T, B, wide]), value("h0", [B, hidden])]
    return model([loop], given, [value("last", [B, hidden]), "y"], inits)


SUMS = {
    "a bias": [node("Add", ["hu", "b"], ["total"])],
    "a product of what is read": [node("MatMul", ["x_t", "w"], ["xw"]), node("Add", ["hu", "xw"], ["total"])],
    "a number, and a bias first": [node("Mul", ["hu", "one"], ["m"]), node("Add", ["b", "m"], ["total"])],
}


@pytest.mark.parametrize("hidden", [8, 12, 32, 16])
@pytest.mark.parametrize("form", SUMS)
def test_gates_are_in_blocks(form, hidden):
    made = changed(gated(hidden, SUMS[form]), put_gates_in_blocks)
    (body,) = bodies(made)
    assert "Split" not in kinds(body)
    shapes = [onnx.numpy_helper.to_array(t).tolist() for t in (*body.initializer, *made.graph.initializer)]
    block = next(b for b in (16, 8, 4) if hidden % b == 0)
    assert block == hidden or [-1, hidden // block, 3, block] in shapes


@pytest.mark.parametrize(
    ("hidden", "total"),
    [
        (5, SUMS["a bias"]),
        (8, [node("Add", ["hu", "x_t"], ["total"])]),
        (8, [node("ReduceMax", ["hu"], ["m"]), node("Sub", ["hu", "m"], ["total"])]),
    ],
)
def test_gates_whose_columns_cannot_be_reordered_are_read_where_they_are(hidden, total):
    made = changed(gated(hidden, total), put_gates_in_blocks)
    (body,) = bodies(made)
    assert "Split" not in kinds(body) and kinds(body)["Slice"] == 3 and "Reshape" not in kinds(body)


def test_parts_of_other_shapes_stay_split():
    nodes = [node("Split", ["h", "sizes"], ["l", "r"], axis=1), node("MatMul", ["r", "w6"], ["sum"]), *NEXT, SEEN]
    unchanged(scan(nodes, [tensor("sizes", np.array([2, 6])), tensor("w6", random(6, H))]), put_gates_in_blocks)
    nodes = [node("Split", ["h"], ["l", "r"], axis=0), node("Mul", ["l", "r"], ["sum"]), *NEXT, SEEN]
    unchanged(scan(nodes), put_gates_in_blocks)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_an_unrolled_layer_becomes_what_a_recurrent_operator_does(kind):
    """One product a step, with all gates of some columns together; those of what is read are ahead."""
    made, _ = rolled(unrolled(kind, 12))
    for each in (take_gemms_apart, put_gates_in_blocks, move_ahead):
        assert each(made)
        fold_onnx(made)
    (body,) = bodies(made)
    assert kinds(body)["MatMul"] == 1 and kinds(made)["MatMul"] == 1 and "Split" not in kinds(body)


def test_a_scan_of_a_file_compiles():
    nodes = [node("Gemm", ["x_t", "w", "b"], ["sum"], transB=1), *NEXT, SEEN]
    proto = scan(nodes, [tensor("w", random(H, X, seed=5))])
    inputs = given(proto)
    module = tvm_rammer.compile(proto, cache=False)
    for ours, theirs in zip(module(**inputs), by_onnxruntime(proto, **inputs), strict=True):
        assert relative_error(ours, theirs) <= 1e-5


def test_lengths_that_a_scan_compares_with_stay_integers():
    nodes = [
        node("MatMul", ["x_t", "wx"], ["xw"]), node("Greater", ["xw", "b"], ["more"]),
        node("Cast", ["more"], ["sum"], to=TensorProto.FLOAT), *NEXT, SEEN,
    ]  # fmt: skip
    made = changed(scan(nodes), move_ahead)
    assert kinds(made)["Greater"] == 1
