"""Footprints of all kernels of an operator, against what their rTasks really touch."""

import pytest
from tvm.relax import op

from tests.functions import fused
from tests.marks import one_in
from tvm_rammer.device import preset
from tvm_rammer.ir import Buffer, RGraph, ROperator
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.rkernel_gen import make_kernels
from tvm_rammer.rkernel_gen.footprint.footprint import footprints_of

from .touched import assert_covers

OPERATORS = {
    "elements": ([(2, 5, 7, 7), (2, 5, 7, 7)], lambda x, y: op.nn.relu(op.add(x, y))),
    "broadcast": ([(1, 6, 8, 8), (1, 6, 1, 1)], lambda x, y: op.multiply(x, y)),
    "conv 3x3, padded": ([(1, 3, 9, 9), (8, 3, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1)),
    "conv 3x3, stride 2": ([(1, 3, 11, 11), (8, 3, 3, 3)], lambda x, w: op.nn.conv2d(x, w, strides=2, padding=1)),
    "conv 1x1, bias": (
        [(1, 4, 7, 7), (16, 4, 1, 1), (1, 16, 1, 1)],
        lambda x, w, b: op.nn.relu(op.add(op.nn.conv2d(x, w), b)),
    ),
    "conv 1x1, another image is added": (
        [(1, 4, 7, 7), (16, 4, 1, 1), (1, 16, 7, 7)], lambda x, w, z: op.add(op.nn.conv2d(x, w), z),
    ),
    "conv 3x3, another image is added": (
        [(1, 4, 9, 7), (16, 4, 3, 3), (1, 16, 9, 7)], lambda x, w, z: op.add(op.nn.conv2d(x, w, padding=1), z),
    ),
    "conv, batch 2, dilated": ([(2, 3, 8, 8), (4, 3, 3, 3)], lambda x, w: op.nn.conv2d(x, w, dilation=2, padding=2)),
    "conv 3x3, filters in vectors": (
        [(1, 3, 7, 9), (20, 3, 3, 3)], lambda x, w: op.nn.conv2d(x, w, strides=2, padding=1),
    ),
    "conv 3x3 by Winograd's algorithm": (
        [(1, 8, 11, 30), (16, 8, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1),
    ),
    "conv 1x1, filters in vectors": ([(1, 6, 5, 5), (18, 6, 1, 1)], lambda x, w: op.nn.conv2d(x, w)),
    "weights of run time": (
        [(1, 3, 7, 9), (5, 3, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1),
    ),
    "conv, transposed, groups": (
        [(1, 4, 5, 5), (4, 2, 3, 3)], lambda x, w: op.nn.conv2d_transpose(x, w, strides=2, groups=2),
    ),
    "conv, depthwise": ([(1, 8, 6, 6), (8, 1, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1, groups=8)),
    "conv, groups": ([(1, 8, 6, 6), (8, 4, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1, groups=2)),
    "matmul": ([(24, 16), (16, 40)], op.matmul),
    "batched matmul": ([(2, 6, 8), (2, 8, 12)], op.matmul),
    "matrix times vector": ([(1, 40), (40, 64)], op.matmul),
    "max pool": ([(1, 4, 13, 13)], lambda x: op.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1))),
    "average pool": ([(1, 4, 9, 9)], lambda x: op.nn.avg_pool2d(x, (2, 2), (2, 2))),
    "global pool": ([(1, 8, 7, 7)], lambda x: op.mean(x, [2, 3])),
    "softmax": ([(6, 40)], op.nn.softmax),
    "concat": ([(1, 3, 6, 6), (1, 5, 6, 6)], lambda x, y: op.concat([x, y], 1)),
    "transpose, extents that no vector divides": ([(9, 5, 7)], lambda x: op.permute_dims(x, [1, 2, 0])),
    "transpose": ([(1, 6, 5, 4)], lambda x: op.permute_dims(x, [0, 2, 3, 1])),
    "shuffle": (
        [(1, 6, 4, 4)],
        lambda x: op.reshape(op.permute_dims(op.reshape(x, [1, 2, 3, 4, 4]), [0, 2, 1, 3, 4]), [1, 6, 4, 4]),
    ),
    "slice": ([(1, 8, 6, 6)], lambda x: op.strided_slice(x, [1], [2], [6])),
    "scalar": ([(12, 9)], lambda x: op.sum(x)),
}  # fmt: skip


def kernels_of(name: str, target: str) -> tuple[ScheduledKernel, ...]:
    """All tilings of an operator whose second and later parameters are constants, as weights are."""
    shapes, build = OPERATORS[name]
    func = fused(shapes, build)
    constants = name.startswith("conv")
    buffers = [
        Buffer(p.name, tuple(int(s) for s in p.shape), "float32", "constant" if constants and n else "input")
        for n, p in enumerate(func.params)
    ]
    last = len(buffers) - 1
    graph = RGraph("g", tuple(buffers), (ROperator("o", "f", tuple(range(last)), (last,)),))
    return make_kernels([graph], {"f": func}, preset(target)).kernels["f"]


@pytest.mark.parametrize("target", ["cpu", "cuda:h200"])
@pytest.mark.parametrize("name", one_in(3, sorted(OPERATORS)))
def test_footprints_cover_what_rtasks_touch(name: str, target: str) -> None:
    kernels = kernels_of(name, target)
    assert kernels or target != "cpu"
    for kernel in kernels:
        assert None not in assert_covers(kernel.func, kernel.spec.num_rtasks)


def test_what_nobody_asks_about_is_left_out() -> None:
    kernel = kernels_of("conv 1x1, bias", "cpu")[0]
    data, weight, bias, result = footprints_of(kernel.func, kernel.spec.num_rtasks)
    assert weight is not None and bias is not None
    assert footprints_of(kernel.func, kernel.spec.num_rtasks, skip={1, 2}) == (data, None, None, result)
    assert kernel.spec.footprints == (data, None, None, result)
