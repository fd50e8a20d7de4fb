"""Small functions of every kind that a CUDA rule applies to; all their tilings run emulated in one rProgram."""

from collections.abc import Collection, Sequence

import numpy as np
import tvm
from tvm import relax, tirx

from tests.emulation.programs import H200, build
from tests.functions import fused
from tvm_rammer.ir import Buffer, RGraph, ROperator, RProgram, Run
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.rkernel_gen.analysis.blocks import outputs_of

CPU = tvm.target.Target({"kind": "llvm", "opt-level": 0})
op, nn = relax.op, relax.op.nn


def shifted_windows(x: relax.Expr) -> relax.Expr:
    """Rows and columns come two later, and are sorted into windows of 4 x 4, as in Swin."""
    for axis in (0, 1):
        parts = op.split(x, [2], axis=axis)
        x = op.concat([parts[1], parts[0]], axis=axis)
    return op.permute_dims(op.reshape(x, (4, 4, 2, 4, 4)), [0, 2, 1, 3, 4])


OPERATORS = {
    "conv": (lambda x, w: nn.relu(nn.conv2d(x, w, padding=1)), [(1, 8, 13, 13), (20, 8, 3, 3)]),
    "conv_padded_after": (
        lambda x, w: nn.pad(nn.relu(nn.conv2d(x, w)), (0, 0, 0, 0, 0, 1, 0, 2)),
        [(1, 8, 9, 9), (16, 8, 2, 2)],
    ),
    "conv_strided": (lambda x, w: nn.conv2d(x, w, strides=2, padding=3), [(1, 3, 30, 30), (16, 3, 7, 7)]),
    "conv_dilated": (lambda x, w: nn.conv2d(x, w, dilation=2, padding=2), [(2, 6, 9, 9), (12, 6, 3, 3)]),
    "conv_grouped": (lambda x, w: nn.relu(nn.conv2d(x, w, groups=4)), [(1, 16, 9, 9), (32, 4, 1, 1)]),
    "conv_groups_of_4": (lambda x, w: nn.relu(nn.conv2d(x, w, groups=6, padding=1)), [(2, 24, 8, 8), (24, 4, 3, 3)]),
    "conv_depthwise": (lambda x, w: nn.conv2d(x, w, groups=24, padding=1), [(1, 24, 14, 14), (24, 1, 3, 3)]),
    "conv_depthwise_multiplier": (lambda x, w: nn.conv2d(x, w, groups=6, strides=2), [(1, 6, 17, 17), (12, 1, 5, 5)]),
    "conv_depthwise_dilated": (
        lambda x, w, b: nn.relu(op.add(nn.conv2d(x, w, groups=16, padding=2, dilation=2), b)),
        [(1, 16, 12, 12), (16, 1, 3, 3), (1, 16, 1, 1)],
    ),
    "conv1d": (lambda x, w: nn.conv1d(x, w, padding=2), [(1, 12, 40), (16, 12, 5)]),
    "conv1d_depthwise": (lambda x, w: nn.conv1d(x, w, groups=16, padding=1), [(1, 16, 40), (16, 1, 3)]),
    "conv1d_transpose": (lambda x, w: nn.conv1d_transpose(x, w, strides=2, padding=1), [(1, 8, 20), (8, 12, 4)]),
    "conv2d_transpose": (lambda x, w: nn.conv2d_transpose(x, w, strides=2, padding=1), [(1, 6, 7, 7), (6, 10, 4, 4)]),
    "matmul": (lambda a, b: op.matmul(a, b), [(50, 70), (70, 36)]),
    "matmul_batched": (lambda a, b: op.matmul(a, b), [(3, 20, 24), (3, 24, 40)]),
    "matmul_row": (lambda a, b, c: op.tanh(op.add(op.matmul(a, b), c)), [(1, 96), (96, 200), (200,)]),
    "matmul_column": (lambda a, b: op.tanh(op.matmul(a, b)), [(70, 96), (96, 1)]),
    "matmul_few_rows": (lambda a, b: op.matmul(a, b), [(4, 120), (120, 100)]),
    "conv_of_a_pixel": (
        lambda x, w, b: nn.relu(op.add(nn.conv2d(x, w), b)), [(1, 70, 1, 1), (30, 70, 1, 1), (1, 30, 1, 1)],
    ),
    "max_pool": (lambda x: nn.max_pool2d(x, (3, 3), strides=(2, 2), padding=(1, 1)), [(1, 12, 15, 15)]),
    "avg_pool": (lambda x: nn.avg_pool2d(x, (3, 3), padding=(1, 1)), [(1, 12, 15, 15)]),
    "global_pool": (lambda x: op.mean(x, axis=[2, 3], keepdims=True), [(1, 150, 7, 7)]),
    "dot_product": (lambda a, b: op.tanh(op.matmul(a, b)), [(1, 64), (64, 1)]),
    "number_without_axes": (lambda a, b: op.tanh(op.divide(op.minimum(a, b), b)), [(), ()]),
    "sum_of_rows": (lambda x: op.sum(x, axis=-1), [(17, 96)]),
    "max_of_columns": (lambda x: op.max(x, axis=0), [(90, 33)]),
    "softmax": (lambda x: nn.softmax(x, axis=-1), [(3, 500)]),
    "softmax_of_channels": (lambda x: nn.softmax(x, axis=1), [(2, 40, 3, 5)]),
    "layer_norm": (lambda x, g, b: nn.layer_norm(x, g, b, axes=[-1]), [(10, 96), (96,), (96,)]),
    "instance_norm": (
        lambda x, g, b: nn.instance_norm(x, g, b, channel_axis=1, axes=[2, 3]), [(1, 6, 9, 9), (6,), (6,)],
    ),
    "variance": (lambda x: op.sqrt(op.variance(x, axis=[2, 3], keepdims=True)), [(1, 12, 9, 9)]),
    "concat": (lambda a, b: op.concat([a, b], axis=1), [(1, 5, 9, 9), (1, 7, 9, 9)]),
    "split": (lambda x: op.split(x, 4, axis=1), [(2, 256)]),
    "split_unlike": (lambda x: op.split(x, [100, 300], axis=1), [(2, 512)]),
    "slice": (lambda x: op.strided_slice(x, [1, 2], [1, 2], [9, 20], [2, 3]), [(12, 30, 4)]),
    "pad": (lambda x: nn.pad(x, [0, 0, 1, 2, 3, 0]), [(3, 10, 11)]),
    "transpose": (lambda x: op.permute_dims(x, [1, 0]), [(33, 47)]),
    "resize": (lambda x: op.image.resize2d(x, (14, 10), layout="NCHW", method="linear"), [(1, 5, 7, 5)]),
    "take": (lambda x: op.take(x, relax.const([3, 0, 5], "int64"), axis=0, mode="clip"), [(7, 30)]),
    "broadcast": (lambda x, y: op.subtract(x, y), [(6, 1, 20), (1, 9, 20)]),
    "elementwise": (lambda x, y: op.sigmoid(op.multiply(x, y)), [(40, 50), (40, 50)]),
    "vectors": (lambda x, y: op.add(op.tanh(op.multiply(x, y)), op.exp(op.maximum(x, y))), [(9, 52), (9, 52)]),
    "vectors_of_choices": (lambda a, b: nn.relu(op.concat([a, b], axis=2)), [(3, 5, 6), (3, 5, 10)]),
    "vectors_compared": (lambda x, y: op.where(op.greater(x, y), op.erf(x), op.sqrt(op.abs(y))), [(5, 64), (5, 64)]),
    "shifted_windows": (lambda x: shifted_windows(x), [(16, 8, 4)]),
    "one_element": (lambda x: op.exp(x), [(1,)]),
}  # fmt: skip

HALF = {
    "half_matmul": (lambda a, b, c: nn.relu(op.add(op.matmul(a, b), c)), [(50, 70), (70, 36), (36,)]),
    "half_matmul_wide": (lambda a, b: op.matmul(a, b, out_dtype="float32"), [(2, 40, 64), (2, 64, 48)]),
    "half_conv": (lambda x, w: nn.relu(nn.conv2d(x, w, padding=1)), [(1, 16, 9, 9), (24, 16, 3, 3)]),
    "half_conv_strided": (lambda x, w: nn.conv2d(x, w, strides=2, padding=3), [(1, 3, 22, 22), (16, 3, 7, 7)]),
    "half_conv_groups": (lambda x, w: nn.relu(nn.conv2d(x, w, groups=6, padding=1)), [(1, 24, 8, 8), (24, 4, 3, 3)]),
    "half_matmul_row": (lambda a, b: op.tanh(op.matmul(a, b)), [(1, 96), (96, 200)]),
    "half_max_pool": (lambda x: nn.max_pool2d(x, (3, 3), strides=(2, 2), padding=(1, 1)), [(1, 12, 15, 15)]),
    "half_softmax": (lambda x: nn.softmax(x, axis=-1), [(3, 500)]),
    "half_layer_norm": (lambda x, g, b: nn.layer_norm(x, g, b, axes=[-1]), [(10, 96), (96,), (96,)]),
    "half_elementwise": (lambda x, y: op.sigmoid(op.multiply(x, y)), [(40, 50), (40, 50)]),
}
"""The same in half precision."""


def function_of(name: str, dtype: str | None = None) -> tirx.PrimFunc:
    """The fused function of an operator, its tensors named as an ONNX model's may be; perhaps of another type."""
    make, shapes = (OPERATORS | HALF)[name]
    dtype = dtype or ("float16" if name in HALF else "float32")
    return fused(shapes, make, tvm.target.Target(H200.target_config()), names="x/{}", dtype=dtype)


def check(
    func: tirx.PrimFunc,
    kernels: Sequence[ScheduledKernel],
    rtol: float = 1e-4,
    atol: float = 1e-5,
    constants: Collection[int] = (),
) -> None:
    """Run all kernels of a function in one emulated rProgram of three vEUs, against TVM on the CPU."""
    params = [(tuple(int(n) for n in p.shape), str(p.dtype)) for p in func.params]
    count = len(outputs_of(tvm.s_tir.Schedule(func)))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape, dtype in params]
    want = _expected(func, arrays, count)
    for kernel, got in zip(kernels, emulated(func, kernels, arrays[: len(params) - count], constants), strict=True):
        for one, result in zip(got, want, strict=True):
            np.testing.assert_allclose(one, result, rtol, atol, err_msg=kernel.spec.name)


def emulated(
    func: tirx.PrimFunc,
    kernels: Sequence[ScheduledKernel],
    arrays: Sequence[np.ndarray],
    constants: Collection[int] = (),
) -> list[list[np.ndarray]]:
    """The results of all kernels of a function, which run in one emulated rProgram of three vEUs.

    The arrays at the positions `constants` are constants of the program, which its kernels may have packed.
    """
    params = [(tuple(int(n) for n in p.shape), str(p.dtype)) for p in func.params]
    inputs = len(arrays)
    buffers = [Buffer(f"x{i}", *params[i], "constant" if i in constants else "input") for i in range(inputs)]
    operators = []
    for kernel in kernels:
        first = len(buffers)
        buffers += [Buffer(f"y{first + i}", *param, "output") for i, param in enumerate(params[inputs:])]
        made = tuple(range(first, len(buffers)))
        operators.append(ROperator(kernel.spec.name, kernel.spec.function, tuple(range(inputs)), made))
    tiles = [k.spec.num_rtasks for k in kernels]
    lanes = tuple(
        tuple(Run(o, v, len(range(v, n, 3)), 3) for o, n in enumerate(tiles) if v < n) for v in range(3)
    )  # fmt: skip
    graph = RGraph("all", tuple(buffers), tuple(operators))
    program = RProgram("all", graph, tuple(k.spec for k in kernels), lanes, 0, {}, 0)
    values = {i: arrays[i] for i in constants}
    got = build(program, kernels, values).run({f"x{i}": a for i, a in enumerate(arrays) if i not in constants})
    return [[got[buffers[position].name] for position in operator.outputs] for operator in operators]


def _expected(func: tirx.PrimFunc, arrays: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    executable = tvm.compile(func.with_attr("global_symbol", "main"), target=CPU)
    tensors = [tvm.runtime.tensor(a) for a in arrays]
    executable["main"](*tensors)
    return [t.numpy() for t in tensors[-count:]]
