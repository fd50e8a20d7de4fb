"""What TVM's frontend computes wrong for some values, types or forms, against ONNX's reference."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.marks import newest_onnx
from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.onnx.emit import attribute

from ...models import model, node, random, tensor, value
from .judge import by_reference, check

INF = np.array([1, np.inf, -np.inf, np.nan, 0], "float32")


@pytest.mark.parametrize(("positive", "negative"), [(0, 1), (1, 0), (1, 1)])
def test_one_sided_isinf(positive, negative, run):
    check(run, "IsInf", [INF], detect_positive=positive, detect_negative=negative)


def test_the_remainder_has_the_divisors_sign(run):
    x = np.array([5.3, -5.3, 5.3, -5.3, 3, -3, 0], "float32")
    check(run, "Mod", [x, np.array([2, 2, -2, -2, np.inf, np.inf, 2], "float32")], fmod=1)


@pytest.mark.parametrize("exponent", ["int32", "int64", "float32"])
@pytest.mark.parametrize("base", ["int32", "int64", "float32"])
def test_powers_have_the_type_of_the_base(base, exponent, run):
    check(run, "Pow", [np.array([1, 2, -3, 7], base), np.array([0, 5, 3, 2], exponent)])


def test_extremes_of_truth_values(run):
    check(run, "ReduceMax", [np.array([[True, False], [False, False]])], [np.array([1])])
    check(run, "ReduceMin", [np.array([[True, True], [True, False]])], [np.array([1])])


@pytest.mark.parametrize("kind", ["L1", "L2", "LogSum", "LogSumExp", "Max", "Sum", "SumSquare"])
def test_a_reduction_along_no_axis_is_one_of_each_element(kind, run):
    x = random(3, 4) if kind != "LogSum" else np.abs(random(3, 4)) + 0.5
    check(run, f"Reduce{kind}", [x], noop_with_empty_axes=1)
    check(run, f"Reduce{kind}", [x], [np.zeros(0, np.int64)], noop_with_empty_axes=1)


@pytest.mark.parametrize(("opset", "keepdims"), [(13, 0), (13, 1), (17, 0), (18, 1)])
def test_a_logarithm_of_a_sum_of_powers(opset, keepdims, run):
    axes, constants = ({}, [np.array([1])]) if opset >= 18 else ({"axes": [1]}, [])
    check(run, "ReduceLogSumExp", [random(3, 4, 2) * 50], constants, opset=opset, keepdims=keepdims, **axes)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_means_of_integers_are_integers_of_their_type(dtype, opset, keepdims, run):
    x = np.array([[-7, 3, -6], [5, 4, 2]], dtype)
    for axes in ([1], [-2], [0, 1]):
        given = ({}, [np.array(axes)]) if opset >= 18 else ({"axes": axes}, [])
        check(run, "ReduceMean", [x], given[1], opset=opset, keepdims=keepdims, **given[0])
    check(run, "ReduceMean", [x], opset=opset, keepdims=keepdims)


@pytest.mark.parametrize(("axes", "keepdims"), [(None, 0), ([0], 1), ([-1], 0)])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_means_of_as_many_as_the_data_say(dtype, axes, keepdims):
    nodes = [
        node("NonZero", ["kept"], ["where"]),
        node("Squeeze", ["where", "zero"], ["rows"]),
        node("Gather", ["x", "rows"], ["some"]),
        node("ReduceMean", ["some"], ["y"], keepdims=keepdims, **({} if axes is None else {"axes": axes})),
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [value("x", [4, 3], kind), value("kept", [4], TensorProto.BOOL)]
    proto = model(nodes, inputs, [value("y", None, kind)], [tensor("zero", np.array([0]))], opset=13)
    x, kept = np.arange(12).reshape(4, 3).astype(dtype) - 7, np.array([True, False, True, True])
    got = tvm_rammer.compile(proto, cache=False)(x, kept)
    rows, along = x[kept].astype(np.float64), None if axes is None else tuple(axes)
    assert got.dtype == dtype
    mean = rows.mean(axis=along, keepdims=bool(keepdims))
    np.testing.assert_allclose(got, np.trunc(mean) if "int" in dtype else mean, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_what_is_both_below_and_above_is_below(dtype, run):
    check(run, "Shrink", [np.array([-9, -6, -5, 0, 3, 6, 9], dtype)], lambd=-6.0, bias=5.0)


def test_integers_shrink_by_a_fraction(run):
    check(run, "Shrink", [np.array([-3, -1, 0, 1, 4], "int32")], lambd=1.5, bias=0.25)


def test_a_default_is_a_number_of_float32():
    assert attribute(node("BatchNormalization", ["x"], ["y"]), "momentum", 0.9) == float(np.float32(0.9))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_fewer_indices_than_elements(reduction, run):
    index = np.array([[[3], [-1]], [[-4], [2]]])
    check(run, "ScatterElements", [random(3, 4, 2), index, random(2, 2, 1)], axis=1, reduction=reduction)


@pytest.mark.parametrize("kind", ["int16", "uint16", "uint32", "uint64"])
def test_the_largest_of_integers_that_the_runtime_cannot_sort(kind, run):
    limits = np.iinfo(kind)
    x = np.array([[5, limits.max, 7, limits.min], [2, 9, limits.max - 1, 4]], kind)
    check(run, "TopK", [x], [np.array([2])], outputs=2, opset=24, axis=1)


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_what_need_not_be_in_order_is(dtype, run):
    x = value("x", [2, 6], helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    proto = model([node("TopK", ["x", "k"], ["v", "i"], sorted=0)], [x], ["v", "i"], [tensor("k", np.array([3]))])
    x = np.array([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]], dtype)
    values, places = run(load_model(proto), x)
    np.testing.assert_array_equal(values, [[9, 5, 4], [8, 6, 5]])
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)


@newest_onnx
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", ["int64", "int32", "float32"])
def test_one_hot_has_the_type_of_its_values(axis, kind, run):
    index = np.array([[0, 3, -1], [7, 2, 1]])
    check(run, "OneHot", [index], [np.array(5), np.array([2, 9], kind)], axis=axis)


def test_compress_by_a_constant_mask(run):
    check(run, "Compress", [random(3, 4)], [np.array([True, False, True])], axis=0)
    check(run, "Compress", [random(3, 4)], [np.array([False, True, True, False, True])])


def test_identity_matrix_of_another_type(run):
    check(run, "EyeLike", [random(3, 4)], dtype=int(TensorProto.INT32), k=1)


@pytest.mark.parametrize("repeats", [(7, 6, 4, 2), (1, 3, 1, 2), (1, 9, 1, 10)])
def test_tile(repeats, run):
    check(run, "Tile", [random(2, 3, 4, 5)], [np.array(repeats)])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_determinant(size, run):
    check(run, "Det", [random(2, size, size)])


def test_determinant_of_large_matrices_is_refused():
    with pytest.raises(UnsupportedOperatorError, match="Det 'y' is of 9 x 9 matrices"):
        load_model(model([node("Det", ["x"], ["y"])], [value("x", [9, 9])], ["y"]))


@pytest.mark.parametrize("to", ["INT32", "UINT32", "FLOAT"])
def test_the_same_bits_as_another_type(to, run):
    check(run, "BitCast", [random(3, 4)], opset=26, to=TensorProto.DataType.Value(to))


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_running_products(reverse, exclusive, run):
    check(run, "CumProd", [random(3, 4)], [np.array(1)], opset=26, reverse=reverse, exclusive=exclusive)


def test_unique_elements_of_a_matrix(run):
    check(run, "Unique", [np.array([[3, 1, 3], [2, 1, 2]], "float32")], outputs=4)


def test_a_position_in_a_sequence_counts_from_the_back(run):
    nodes = [
        node("SequenceConstruct", ["x", "z"], ["s"]),
        node("SequenceInsert", ["s", "w", "last"], ["t"]),
        node("SequenceAt", ["t", "last"], ["y"]),
    ]
    inputs = [value(n, [2]) for n in ("x", "z", "w")]
    proto = model(nodes, inputs, ["y"], [tensor("last", np.int64(-1))])
    by_reference(run, proto, x=random(2), z=random(2, seed=1), w=random(2, seed=2))


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "INT4", "FLOAT4E2M1"])
def test_types_without_arithmetic_are_refused(kind):
    to = TensorProto.DataType.Value(kind)
    nodes = [node("Cast", ["x"], ["h"], to=to), node("Cast", ["h"], ["y"], to=1)]
    with pytest.raises(UnsupportedOperatorError, match=f"Cast 'h' has {kind} values"):
        load_model(model(nodes, [value("x", [3])], ["y"], opset=25, ir=11))


@pytest.mark.parametrize("op", ["Range", "ConstantOfShape", "Expand"])
def test_what_cannot_be_addressed_is_refused(op):
    shape, number = np.array([10**6, 10**5]), [np.int64(0), np.int64(10**11), np.int64(1)]
    constants = [tensor(f"c{i}", n) for i, n in enumerate(number)] if op == "Range" else [tensor("c0", shape)]
    inputs = ["x", "c0"] if op == "Expand" else [c.name for c in constants]
    nodes = [node(op, inputs, ["h"]), node("Cast", ["h"], ["f"], to=1), node("Add", ["f", "x"], ["y"])]
    with pytest.raises(ModelError, match=r"elements, of which less than 2147483648 can be addressed"):
        load_model(model(nodes, [value("x", [1])], ["y"], constants))


def test_an_input_that_is_needed_cannot_be_left_out():
    with pytest.raises(ModelError, match="Concat 'y' leaves out its input 1"):
        load_model(model([node("Concat", ["x", "", "x"], ["y"], axis=0)], [value("x", [2])], ["y"]))


def test_integer_products_of_many_terms_are_exact(run):
    """More than 2**24 in each of two parts: float32 would be off by hundreds."""
    weights = np.full((4608, 4), 255, "uint8")
    weights[::3] = 254
    check(run, "MatMulInteger", [np.full((2, 4608), 255, "uint8")], [weights])


def test_what_replaces_what_replaced_a_node_has_names_of_its_own(run):
    """A power of integers becomes a cast, which becomes others: all are made for the same result."""
    x, exponent = np.array([3, -2], "int32"), np.array([2, 3], "float32")
    mod = check(run, "Pow", [x, exponent])
    assert len(mod["main"].params) == 2


def test_values_of_two_inlined_branches_have_two_names(run):
    """Branches that are inlined one after the other, each with a value of the same name."""

    def branch(op):
        return helper.make_graph([node(op, ["x"], ["inner"])], op, [], [value("inner", None)])

    nodes = [
        node("If", ["c"], ["a"], then_branch=branch("Relu"), else_branch=branch("Neg")),
        node("ReverseSequence", ["a", "n"], ["r"], time_axis=0, batch_axis=1),
        node("If", ["c"], ["b"], then_branch=branch("Neg"), else_branch=branch("Relu")),
        node("Sub", ["r", "b"], ["y"]),
    ]
    constants = [tensor("c", np.array(True)), tensor("n", np.array([3, 3]))]
    proto = model(nodes, [value("x", [3, 2])], ["y"], constants)
    by_reference(run, proto, x=random(3, 2))
