"""Every tiling of an operator computes the same, and there are several."""

import itertools

import numpy as np
import pytest
import tvm
from tvm import relax, s_tir, tirx
from tvm.relax import op
from tvm.s_tir.schedule import Trace
from tvm.script import tirx as T

from tests.functions import UNOPTIMISED, best_of_each_size, chosen, fused, random_arrays, run, run_each, run_kernels
from tests.marks import one_in
from tvm_rammer.device import host_cpu
from tvm_rammer.rkernel_gen.cpu.contraction.rule import ContractionRule
from tvm_rammer.rkernel_gen.cpu.generic.rule import GenericRule
from tvm_rammer.rkernel_gen.tiling import Function

CPU = host_cpu()


def contraction_kernels(func, constants):
    rule, function = ContractionRule(), Function("op", func, CPU, frozenset(constants))
    return [rule.build(function, dict(t.choices)) for t in rule.tilings(function)]


OPERATORS = {
    "conv 3x3, padded": ([(1, 8, 14, 14), (32, 8, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1)),
    "conv 3x3, stride 2": ([(1, 6, 15, 15), (16, 6, 3, 3)], lambda x, w: op.nn.conv2d(x, w, strides=2)),
    "conv 1x1, bias, relu": (
        [(1, 16, 13, 13), (48, 16, 1, 1), (1, 48, 1, 1)],
        lambda x, w, b: op.nn.relu(op.add(op.nn.conv2d(x, w), b)),
    ),
    "conv, dilated": ([(1, 4, 12, 12), (8, 4, 3, 3)], lambda x, w: op.nn.conv2d(x, w, dilation=2, padding=2)),
    "conv of odd extents": ([(1, 3, 11, 17), (10, 3, 5, 2)], lambda x, w: op.nn.conv2d(x, w, padding=(2, 1, 2, 0))),
    "conv, batch 3": ([(3, 4, 9, 9), (16, 4, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1)),
    "conv, 2 groups": ([(1, 8, 10, 10), (16, 4, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1, groups=2)),
    "conv, depthwise": ([(1, 16, 10, 10), (16, 1, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1, groups=16)),
    "conv1d": ([(1, 8, 50), (16, 8, 3)], lambda x, w: op.nn.conv1d(x, w, padding=1)),
    "conv, relu, padded at its ends": (
        [(1, 8, 9, 9), (16, 8, 2, 2)],
        lambda x, w: op.nn.pad(op.nn.relu(op.nn.conv2d(x, w)), (0, 0, 0, 0, 0, 1, 0, 2)),
    ),
    "matmul": ([(20, 64), (64, 48)], op.matmul),
    "matmul, some columns of it": (
        [(20, 64), (64, 48), (41,)],
        lambda x, w, b: op.add(op.strided_slice(op.matmul(x, w), axes=[1], begin=[0], end=[41]), b),
    ),
    "matmul, sigmoid": ([(7, 33), (33, 65)], lambda x, w: op.sigmoid(op.matmul(x, w))),
    "matmul, sigmoid, times another's tanh": (
        [(1, 48), (48, 64), (1, 64)],
        lambda x, w, c: op.multiply(op.sigmoid(op.matmul(x, w)), op.tanh(c)),
    ),
    "matrix times vector": ([(1, 100), (100, 256)], op.matmul),
    "batched matmul": ([(3, 8, 16), (3, 16, 24)], op.matmul),
    "max pool": ([(1, 16, 27, 27)], lambda x: op.nn.max_pool2d(x, (3, 3), strides=2)),
    "average pool, padded": ([(1, 16, 13, 13)], lambda x: op.nn.avg_pool2d(x, (3, 3), padding=1)),
    "global mean": ([(1, 64, 13, 13)], lambda x: op.mean(x, (2, 3), keepdims=True)),
    "mean of all, as a number, negated": ([(4, 32)], lambda x: op.negative(op.mean(x))),
    "softmax": ([(1, 1000)], lambda x: op.nn.softmax(x)),
    "softmax of rows": ([(12, 40)], lambda x: op.nn.softmax(x)),
    "layer norm": ([(6, 64), (64,), (64,)], lambda x, g, b: op.nn.layer_norm(x, g, b, axes=-1)),
    "concat": ([(1, 24, 5, 5), (1, 8, 5, 5)], lambda x, y: op.concat([x, y], axis=1)),
    "transpose": ([(2, 3, 8, 5)], lambda x: op.permute_dims(x, [0, 2, 3, 1])),
    "elementwise": ([(1, 77, 3), (77, 1)], lambda x, y: op.tanh(op.multiply(op.add(x, y), x))),
    "pad": ([(1, 4, 6, 6)], lambda x: op.nn.pad(x, (0, 0, 0, 0, 1, 2, 3, 1))),
}


@pytest.mark.parametrize("name", one_in(3, OPERATORS))
def test_every_kernel_is_right_and_their_numbers_of_rtasks_differ(name):
    func = fused(*OPERATORS[name])
    arrays = random_arrays(func)
    want = run(func, arrays, UNOPTIMISED)
    weights = frozenset(range(1, len(arrays) - 1))
    kernels = chosen("op", func, CPU, weights)

    counts = [k.spec.num_rtasks for k in kernels]
    assert len(set(counts)) == len(counts) >= min(2, want.size)  # a single number is one rTask
    assert len({k.spec.name for k in kernels}) == len(kernels)
    for kernel in kernels:
        assert kernel.spec.rtask_us > 0
        assert set(kernel.packs) <= weights
    for got in run_kernels(kernels, arrays):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


def test_windows_that_vary_are_a_kernel_too():
    func = fused([(1, 4, 9, 7)], lambda x: op.nn.adaptive_avg_pool2d(x, (4, 2)))
    arrays = random_arrays(func)
    kernels = chosen("op", func, CPU, frozenset())
    assert kernels
    for got in run_kernels(kernels, arrays):
        np.testing.assert_allclose(got, run(func, arrays, UNOPTIMISED), rtol=1e-5)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_trace_of_a_schedule_repeats_it_on_the_original_function(name):
    """Also when it comes from a file; a packed weight is then laid out by a block of the function."""
    func = fused(*OPERATORS[name])
    arrays = random_arrays(func)
    function = Function("op", func, CPU, frozenset(range(1, len(arrays) - 1)))
    repeated = []
    for rule in (ContractionRule(), GenericRule()):
        built = (rule.build(function, dict(t.choices)) for t in best_of_each_size(rule.tilings(function)))
        for kernel in itertools.islice((k for k in built if k.trace is not None), 1):
            sch = s_tir.Schedule(tvm.IRModule({"main": func}))
            Trace.apply_json_to_schedule(kernel.trace.as_json(), sch)
            assert ("layout_rewrite_preproc" in sch.mod.script()) == bool(kernel.packs)
            repeated.append(sch.mod["main"])
    want, *results = run_each([func, *repeated], [arrays] * (1 + len(repeated)), UNOPTIMISED)
    assert results
    for got in results:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("name", OPERATORS)
def test_a_contraction_is_built_as_promised(name):
    func = fused(*OPERATORS[name])
    function = Function("op", func, CPU, frozenset(range(1, len(func.params) - 1)))
    for tiling in best_of_each_size(ContractionRule().tilings(function)):
        kernel = ContractionRule().build(function, dict(tiling.choices))
        assert kernel is not None and kernel.spec.num_rtasks == tiling.num_rtasks


def test_weights_are_packed_only_where_they_are_constants():
    func = fused(*OPERATORS["conv 3x3, padded"])
    assert all(k.packs.keys() == {1} for k in contraction_kernels(func, [1]))
    assert contraction_kernels(func, []) == []


def test_a_matrix_that_is_no_constant_needs_no_packing():
    kernels = contraction_kernels(fused(*OPERATORS["matmul"]), [])
    assert kernels
    assert not any(k.packs for k in kernels)


@pytest.mark.parametrize("name", ["conv, depthwise", "max pool", "softmax", "elementwise"])
def test_what_is_no_contraction_is_left_to_the_generic_rule(name):
    assert contraction_kernels(fused(*OPERATORS[name]), [1]) == []


def test_an_axis_of_two_loops_is_no_contraction():
    """The rule takes a loop by the number of its axis: rTasks wrote rows of others that they had not computed."""
    sch = s_tir.Schedule(fused(*OPERATORS["matmul"]))
    (block,) = sch.get_child_blocks(sch.get_sblock("root"))
    assert contraction_kernels(sch.mod["main"], [])
    sch.split(sch.get_loops(block)[0], [None, 2])
    assert contraction_kernels(sch.mod["main"], []) == []


@T.prim_func(s_tir=True)
def _mirrored(
    x: T.Buffer((3, 17), "float32"), w: T.Buffer((17, 12), "float32"), y: T.Buffer((3, 12), "float32")
) -> None:
    total = T.sblock_alloc_buffer((3, 12))
    for i, j, k in T.grid(3, 12, 17):
        with T.sblock("total"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                total[vi, vj] = T.float32(0)
            total[vi, vj] = total[vi, vj] + x[vi, vk] * w[vk, vj]
    for i, j in T.grid(3, 12):
        with T.sblock("mirrored"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = total[vi, vj * -1 + 11]


def test_sums_that_are_read_backwards_are_no_contraction():
    """Of them TVM's `transform_layout` made other elements."""
    assert contraction_kernels(_mirrored, [1]) == []
    arrays = random_arrays(_mirrored)
    kernels = chosen("op", _mirrored, CPU, frozenset([1]))
    assert kernels
    for got in run_kernels(kernels, arrays):
        np.testing.assert_allclose(got, np.flip(arrays[0] @ arrays[1], 1), rtol=1e-4, atol=1e-5)


def test_a_function_with_two_outputs_becomes_one_operator():
    x = relax.Var("x", relax.TensorType((4, 12), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            parts = builder.emit(op.split(x, 2, axis=1))
            out = builder.emit_output(relax.Tuple([relax.TupleGetItem(parts, 0), relax.TupleGetItem(parts, 1)]))
        builder.emit_func_output(out)
    module = relax.transform.LegalizeOps()(builder.get())
    (func,) = [f for f in module.functions.values() if isinstance(f, tirx.PrimFunc)]
    value = np.arange(48, dtype="float32").reshape(4, 12)
    counts = set()
    for kernel in chosen("split", func, CPU):
        built = tvm.compile(kernel.func.with_attr("global_symbol", "main"), target=tvm.target.Target("llvm"))
        tensors = [tvm.runtime.tensor(a) for a in (value, np.zeros((4, 6), "f4"), np.zeros((4, 6), "f4"))]
        built["main"](*tensors)
        np.testing.assert_array_equal(np.concatenate([t.numpy() for t in tensors[1:]], axis=1), value)
        counts.add(kernel.spec.num_rtasks)
    assert len(counts) >= 2


def test_a_block_without_axes():
    """A select of parts of what other blocks made: no loop can be split, and none is."""

    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((), "float32"), y: T.Buffer((), "float32")):
        a = T.sblock_alloc_buffer((2, 4))
        for i, j in T.grid(2, 4):
            with T.sblock("a"):
                v, w = T.axis.remap("SS", [i, j])
                a[v, w] = x[()] * T.Cast("float32", v + w)
        with T.sblock("y"):
            y[()] = a[1, 2] + x[()]

    (kernel, *_) = chosen("f", func, host_cpu())
    x = np.array(2, "float32")
    np.testing.assert_allclose(run(kernel.func, [x, np.zeros((), "float32")]), 8)
