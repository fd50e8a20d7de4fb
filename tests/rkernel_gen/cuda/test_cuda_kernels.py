"""Every operator of the models gets tilings that are one kernel each, within an rTask's limits."""

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.emulation.programs import H200, build
from tests.functions import fused
from tvm_rammer.ir import Buffer, RGraph, ROperator, RProgram, Run
from tvm_rammer.rkernel_gen.anchor import outputs_of
from tvm_rammer.rkernel_gen.cuda import cuda_kernels
from tvm_rammer.rkernel_gen.cuda_rule import name_for_c

CPU = tvm.target.Target({"kind": "llvm"})
op, nn = relax.op, relax.op.nn

OPERATORS = {
    "conv": (lambda x, w: nn.relu(nn.conv2d(x, w, padding=1)), [(1, 8, 13, 13), (20, 8, 3, 3)]),
    "conv_strided": (lambda x, w: nn.conv2d(x, w, strides=2, padding=3), [(1, 3, 30, 30), (16, 3, 7, 7)]),
    "conv_grouped": (lambda x, w: nn.relu(nn.conv2d(x, w, groups=4)), [(1, 16, 9, 9), (32, 4, 1, 1)]),
    "conv_depthwise": (lambda x, w: nn.conv2d(x, w, groups=24, padding=1), [(1, 24, 14, 14), (24, 1, 3, 3)]),
    "matmul": (lambda a, b: op.matmul(a, b), [(50, 70), (70, 36)]),
    "matmul_batched": (lambda a, b: op.matmul(a, b), [(3, 20, 24), (3, 24, 40)]),
    "matmul_row": (lambda a, b, c: op.tanh(op.add(op.matmul(a, b), c)), [(1, 96), (96, 200), (200,)]),
    "matmul_few_rows": (lambda a, b: op.matmul(a, b), [(4, 128), (128, 100)]),
    "max_pool": (lambda x: nn.max_pool2d(x, (3, 3), strides=(2, 2), padding=(1, 1)), [(1, 12, 15, 15)]),
    "avg_pool": (lambda x: nn.avg_pool2d(x, (3, 3), padding=(1, 1)), [(1, 12, 15, 15)]),
    "global_pool": (lambda x: op.mean(x, axis=[2, 3], keepdims=True), [(1, 150, 7, 7)]),
    "softmax": (lambda x: nn.softmax(x, axis=-1), [(3, 500)]),
    "concat": (lambda a, b: op.concat([a, b], axis=1), [(1, 5, 9, 9), (1, 7, 9, 9)]),
    "split": (lambda x: op.split(x, 4, axis=1), [(2, 256)]),
    "split_unlike": (lambda x: op.split(x, [100, 300], axis=1), [(2, 512)]),
    "transpose": (lambda x: op.permute_dims(x, [1, 0]), [(33, 47)]),
    "elementwise": (lambda x, y: op.sigmoid(op.multiply(x, y)), [(40, 50), (40, 50)]),
    "one_element": (lambda x: op.exp(x), [(1,)]),
}


def function_of(name):
    make, shapes = OPERATORS[name]
    return fused(shapes, make, tvm.target.Target(H200.target_config()), names="x/{}")  # as in an ONNX model


def expected(func, arrays, count):
    executable = tvm.compile(func.with_attr("global_symbol", "main"), target=CPU)
    tensors = [tvm.runtime.tensor(a) for a in arrays]
    executable["main"](*tensors)
    return [t.numpy() for t in tensors[-count:]]


@pytest.mark.parametrize("name", OPERATORS)
def test_every_tiling_of_an_operator_computes_it(name):
    func = function_of(name)
    kernels = cuda_kernels(name, func, H200)
    tiles = [k.spec.num_rtasks for k in kernels]
    assert len(tiles) >= (1 if name == "one_element" else 2)
    assert len(set(tiles)) == len(tiles) and tiles == sorted(tiles)
    for kernel in kernels:
        assert kernel.spec.threads % 32 == 0 and kernel.spec.threads <= 256
        assert kernel.spec.shared_bytes <= 48 * 1024
        assert kernel.spec.rtask_us > 0 and not kernel.spec.measured
        assert kernel.spec.name.isidentifier() and kernel.spec.function == name

    shapes = [tuple(int(n) for n in p.shape) for p in func.params]
    count = len(outputs_of(tvm.s_tir.Schedule(func)))
    inputs = len(shapes) - count
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype("float32") for s in shapes]
    buffers = [Buffer(f"x{i}", s, "float32", "input") for i, s in enumerate(shapes[:inputs])]
    operators = []
    for kernel in kernels:
        start = len(buffers)
        buffers += [Buffer(f"y{start + i}", s, "float32", "output") for i, s in enumerate(shapes[inputs:])]
        made = tuple(range(start, len(buffers)))
        operators.append(ROperator(kernel.spec.name, name, tuple(range(inputs)), made))
    lanes = tuple(
        tuple(Run(o, v, len(range(v, n, 3)), 3) for o, n in enumerate(tiles) if v < n) for v in range(3)
    )  # fmt: skip
    graph = RGraph("all", tuple(buffers), tuple(operators))
    program = RProgram("all", graph, tuple(k.spec for k in kernels), lanes, 0, {}, 0)
    got = build(program, kernels, {}).run({f"x{i}": a for i, a in enumerate(arrays[:inputs])})
    want = expected(func, arrays, count)
    for o, operator in enumerate(operators):
        for position, result in zip(operator.outputs, want, strict=True):
            np.testing.assert_allclose(got[buffers[position].name], result, 1e-4, 1e-5, err_msg=kernels[o].spec.name)


def test_kernels_are_the_same_every_time():
    func = function_of("conv")
    first, second = (cuda_kernels("conv", func, H200) for _ in range(2))
    assert [k.spec for k in first] == [k.spec for k in second]
    for a, b in zip(first, second, strict=True):
        tvm.ir.assert_structural_equal(a.func, b.func)


def test_small_tiles_make_more_rtasks_that_are_each_shorter():
    times = [(k.spec.num_rtasks, k.spec.rtask_us) for k in cuda_kernels("matmul", function_of("matmul"), H200)]
    assert times == sorted(times, key=lambda pair: -pair[1])


def test_names_become_such_as_c_accepts():
    assert all(p.name.isidentifier() for p in name_for_c(function_of("split")).params)
