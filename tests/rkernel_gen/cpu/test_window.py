"""Sliding windows: what is read of a function, and that every tiling computes the same, on AVX-512, AVX2 and SSE."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.ir import Call
from tvm.relax import op

import tvm_rammer
from tests.functions import TARGET, UNOPTIMISED, best_of_each_size, fused, random_arrays, run, run_kernels
from tests.marks import one_in, slow_but
from tests.relay_passes.models import by_onnxruntime, model, node, random, tensor, value
from tvm_rammer.device import host_cpu
from tvm_rammer.rkernel_gen.cpu.window.layout import Layout, WindowTile
from tvm_rammer.rkernel_gen.cpu.window.read import find_window
from tvm_rammer.rkernel_gen.cpu.window.rule import WINDOW_RULE
from tvm_rammer.rkernel_gen.footprint.footprint import footprints_of
from tvm_rammer.rkernel_gen.tiling import Function

DEVICES = {
    "sse": replace(host_cpu(), arch="x86-64", vector_bytes=16),
    "avx512": replace(host_cpu(), arch="x86-64-v4", vector_bytes=64),
    "avx2": replace(host_cpu(), arch="x86-64-v3", vector_bytes=32),
}
HOST_BYTES = host_cpu().vector_bytes


def window_kernels(func, device, constants):
    """The kernels of a few tilings: the best of some 1, 4 and 16 rTasks a unit."""
    rule, function = WINDOW_RULE, Function("op", func, device, frozenset(constants))
    return [rule.build(function, dict(t.choices)) for t in best_of_each_size(rule.tilings(function))]


def conv(x, w, **options):
    return op.nn.conv2d(x, w, **options)


def hard_swish(x):
    six = op.clip(op.add(x, op.full_like(x, tvm.relax.const(3.0))), 0, 6)
    return op.multiply(x, op.divide(six, op.full_like(x, tvm.relax.const(6.0))))


WINDOWS = {
    "padded": ([(1, 8, 14, 14), (32, 8, 3, 3)], lambda x, w: conv(x, w, padding=1)),
    "planes of 4 KB": ([(1, 6, 30, 30), (8, 6, 3, 3)], lambda x, w: conv(x, w, padding=1)),
    "odd extents": ([(1, 3, 11, 17), (10, 3, 5, 2)], lambda x, w: conv(x, w, padding=(2, 1, 2, 0))),
    "asymmetric padding": ([(1, 5, 9, 12), (7, 5, 3, 4)], lambda x, w: conv(x, w, padding=(0, 2, 1, 3))),
    "more padding than image": ([(1, 2, 3, 3), (4, 2, 7, 7)], lambda x, w: conv(x, w, padding=3)),
    "stride 2": ([(1, 6, 15, 15), (16, 6, 3, 3)], lambda x, w: conv(x, w, strides=2, padding=1)),
    "strides 3 and 2": ([(1, 4, 23, 19), (9, 4, 5, 4)], lambda x, w: conv(x, w, strides=(3, 2), padding=(2, 1))),
    "dilation": ([(1, 4, 12, 13), (8, 4, 3, 3)], lambda x, w: conv(x, w, dilation=2, padding=2)),
    "stride and dilation": (
        [(1, 4, 21, 22), (8, 4, 3, 3)],
        lambda x, w: conv(x, w, strides=2, dilation=(3, 2), padding=(3, 2)),
    ),
    "batch of 3": ([(3, 4, 9, 9), (16, 4, 3, 3)], lambda x, w: conv(x, w, padding=1)),
    "rows of 1": ([(2, 40, 1, 50), (33, 40, 1, 5)], lambda x, w: conv(x, w, padding=(0, 2))),
    "40 channels": ([(1, 40, 10, 10), (24, 40, 3, 3)], lambda x, w: conv(x, w)),
    "37 channels": ([(1, 37, 7, 7), (5, 37, 3, 3)], lambda x, w: conv(x, w, padding=1)),
    "large kernel": ([(1, 1, 61, 40), (32, 1, 41, 11)], lambda x, w: conv(x, w, strides=2, padding=(20, 5))),
    "1x1": ([(1, 16, 13, 13), (48, 16, 1, 1)], lambda x, w: conv(x, w)),
    "1x1, 50 filters, epilogue": (
        [(1, 64, 7, 7), (50, 64, 1, 1), (1, 50, 1, 1), (1, 50, 7, 7)],
        lambda x, w, b, z: op.add(op.nn.relu(op.add(conv(x, w), b)), z),
    ),
    "1x1, epilogue of a row": (
        [(1, 6, 9, 11), (7, 6, 1, 1), (1, 1, 1, 11)], lambda x, w, b: op.add(conv(x, w), b),
    ),
    "1x1, stride 2": ([(1, 16, 14, 13), (24, 16, 1, 1)], lambda x, w: conv(x, w, strides=2)),
    "bias and hard swish": (
        [(1, 6, 10, 10), (12, 6, 3, 3), (1, 12, 1, 1)],
        lambda x, w, b: hard_swish(op.add(conv(x, w, padding=1), b)),
    ),
    "2 groups": ([(1, 8, 10, 10), (16, 4, 3, 3)], lambda x, w: conv(x, w, padding=1, groups=2)),
    "3 groups of 17": ([(2, 15, 10, 10), (51, 5, 3, 3)], lambda x, w: conv(x, w, padding=1, groups=3, strides=2)),
    "groups, 1x1": ([(1, 24, 9, 9), (68, 6, 1, 1)], lambda x, w: conv(x, w, groups=4)),
    "groups of 4": ([(1, 32, 8, 8), (32, 4, 3, 3)], lambda x, w: conv(x, w, padding=1, groups=8)),
    "depthwise": ([(1, 16, 10, 10), (16, 1, 3, 3)], lambda x, w: conv(x, w, padding=1, groups=16)),
    "depthwise 5x5, stride 2, bias": (
        [(2, 6, 23, 21), (6, 1, 5, 5), (1, 6, 1, 1)],
        lambda x, w, b: op.nn.relu(op.add(conv(x, w, padding=2, groups=6, strides=2), b)),
    ),
    "depthwise, two filters each": ([(1, 6, 10, 10), (12, 1, 3, 3)], lambda x, w: conv(x, w, padding=1, groups=6)),
    "rows": ([(1, 8, 50), (16, 8, 3)], lambda x, w: op.nn.conv1d(x, w, padding=1)),
    "rows, stride 2, dilation 3, 2 groups, bias": (
        [(2, 6, 41), (10, 3, 4), (1, 10, 1)],
        lambda x, w, b: op.nn.relu(op.add(op.nn.conv1d(x, w, strides=2, padding=(2, 1), dilation=3, groups=2), b)),
    ),
    "rows of single taps, epilogue": (
        [(2, 24, 30), (9, 24, 1), (2, 9, 30)], lambda x, w, z: op.add(op.nn.conv1d(x, w), z),
    ),
    "transposed 4x4, stride 2": (
        [(1, 8, 6, 7), (8, 5, 4, 4), (1, 5, 1, 1)],
        lambda x, w, b: op.nn.relu(op.add(op.nn.conv2d_transpose(x, w, strides=2, padding=1), b)),
    ),
    "transposed 3x3, stride 2, padded outside": (
        [(2, 6, 5, 5), (6, 9, 3, 3)],
        lambda x, w: op.nn.conv2d_transpose(x, w, strides=2, padding=1, output_padding=1),
    ),
    "transposed 2x5, strides 3 and 2": (
        [(1, 4, 6, 9), (4, 7, 2, 5)],
        lambda x, w: op.nn.conv2d_transpose(x, w, strides=(3, 2), padding=(0, 1, 0, 2), output_padding=(1, 0)),
    ),
    "transposed 3x3, stride 1": ([(1, 8, 6, 6), (8, 4, 3, 3)], lambda x, w: op.nn.conv2d_transpose(x, w, padding=1)),
    "transposed 2x2, stride 2": ([(1, 8, 6, 6), (8, 4, 2, 2)], lambda x, w: op.nn.conv2d_transpose(x, w, strides=2)),
    "transposed 3x3, stride 2, 2 groups": (
        [(2, 8, 6, 6), (8, 4, 3, 3), (1, 8, 1, 1)],
        lambda x, w, b: op.add(op.nn.conv2d_transpose(x, w, strides=2, groups=2, padding=1), b),
    ),
    "transposed 4x2, strides 1 and 2, 3 groups of 5": (
        [(1, 12, 6, 5), (12, 5, 4, 2)], lambda x, w: op.nn.conv2d_transpose(x, w, strides=(1, 2), groups=3),
    ),
    "transposed, a group for each channel": (
        [(1, 6, 7, 7), (6, 1, 4, 4)], lambda x, w: op.nn.conv2d_transpose(x, w, strides=2, groups=6, padding=1),
    ),
    "transposed rows": (
        [(2, 8, 21), (8, 6, 5)], lambda x, w: op.nn.conv1d_transpose(x, w, strides=3, padding=(1, 2), output_padding=1),
    ),
    "max pool of rows": ([(2, 5, 31)], lambda x: op.nn.max_pool1d(x, 3, strides=2, padding=1)),
    "max pool": ([(1, 16, 27, 27)], lambda x: op.nn.max_pool2d(x, (3, 3), strides=2)),
    "max pool, padded": ([(2, 5, 13, 14)], lambda x: op.nn.max_pool2d(x, (3, 2), strides=(1, 3), padding=1)),
    "max pool, ceiling": ([(1, 4, 14, 14)], lambda x: op.nn.max_pool2d(x, (3, 3), strides=2, ceil_mode=True)),
    "average pool": ([(1, 16, 13, 13)], lambda x: op.nn.avg_pool2d(x, (3, 3), padding=1)),
    "average pool, padding counts": (
        [(1, 6, 13, 12)],
        lambda x: op.nn.avg_pool2d(x, (2, 3), strides=2, padding=1, count_include_pad=True),
    ),
}  # fmt: skip


@functools.lru_cache(maxsize=1)
def example(name):
    """A window's function, values for it, and its result."""
    func = fused(*WINDOWS[name])
    arrays = random_arrays(func)
    return func, arrays, run(func, arrays, UNOPTIMISED)


OPTIMISED = frozenset(list(WINDOWS)[::3])
"""Windows whose code LLVM optimises as it does for users; that takes half of a test's time."""


@pytest.mark.parametrize("device", slow_but(lambda name: DEVICES[name].vector_bytes == HOST_BYTES, DEVICES))
@pytest.mark.parametrize("name", one_in(3, WINDOWS))
def test_every_tiling_is_right(name, device):
    if DEVICES[device].vector_bytes > HOST_BYTES:
        pytest.skip("this processor has no such vectors")
    func, arrays, want = example(name)
    kernels = window_kernels(func, DEVICES[device], range(1, len(arrays) - 1))
    target = TARGET if DEVICES[device].vector_bytes == HOST_BYTES and name in OPTIMISED else UNOPTIMISED
    assert len({k.spec.num_rtasks for k in kernels}) == len(kernels) >= 1 + (want.size > 500)
    for got in run_kernels(kernels, arrays, target):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


AT_RUN_TIME = [
    "padded", "odd extents", "37 channels", "1x1, 50 filters, epilogue", "3 groups of 17", "rows", "depthwise",
]  # fmt: skip


@pytest.mark.parametrize("name", AT_RUN_TIME)
def test_weights_may_come_at_run_time(name):
    func, arrays, want = example(name)
    kernels = window_kernels(func, host_cpu(), [])
    for got in run_kernels(kernels, arrays, UNOPTIMISED):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4 * np.abs(want).max())
    for kernel in kernels:
        assert not kernel.packs
        assert footprints_of(kernel.func, kernel.spec.num_rtasks)[1] is not None


def test_weights_of_a_transposed_convolution_are_padded_so_they_must_be_constant():
    func = fused(*WINDOWS["transposed 3x3, stride 1"])
    assert not WINDOW_RULE.tilings(Function("op", func, host_cpu()))


def test_the_window_of_a_grouped_convolution():
    window = find_window(fused(*WINDOWS["3 groups of 17"]))
    assert (window.batch, window.groups, window.filters, window.channels) == (2, 3, 17, 5)
    assert (window.kernel, window.stride, window.padding) == ((3, 3), (2, 2), (1, 1))
    assert not window.maximum
    assert window.epilogue is None


@pytest.mark.parametrize(
    ("name", "flat"),
    [("1x1", True), ("1x1, 50 filters, epilogue", True), ("1x1, epilogue of a row", False), ("1x1, stride 2", False)],
)
def test_an_image_lies_flat_where_neither_window_nor_epilogue_minds(name, flat):
    assert find_window(fused(*WINDOWS[name])).flat is flat


NO_WINDOWS = {
    "matmul": ([(20, 64), (64, 48)], op.matmul),
    "softmax": ([(12, 40)], lambda x: op.nn.softmax(x)),
    "mean": ([(1, 64, 13, 13)], lambda x: op.mean(x, (2, 3), keepdims=True)),
    "NHWC": (
        [(1, 8, 8, 4), (3, 3, 4, 8)],
        lambda x, w: conv(x, w, data_layout="NHWC", kernel_layout="HWIO"),
    ),
    "elementwise": ([(1, 7, 3, 3)], lambda x: op.nn.relu(x)),
    "pool, padded with channels": (
        [(1, 4, 8, 8)],
        lambda x: op.nn.pad(op.nn.avg_pool2d(x, (2, 2), strides=2), (0, 0, 0, 4, 0, 0, 0, 0)),
    ),
}


@pytest.mark.parametrize("name", NO_WINDOWS)
def test_what_is_no_window_is_left_alone(name):
    assert find_window(fused(*NO_WINDOWS[name])) is None


def test_a_weight_that_is_no_constant_is_not_packed():
    made = window_kernels(fused(*WINDOWS["2 groups"]), DEVICES["avx2"], [])
    assert made and not any(kernel.packs for kernel in made)


def test_channels_in_scratch_do_not_share_the_lines_of_the_cache():
    window = find_window(fused(*WINDOWS["planes of 4 KB"]))
    layout = Layout.of(window, WindowTile(16, 4, 4, 1, 1, 1))
    assert layout.height * layout.width * 4 == 4096
    assert layout.phase * 4 % 4096 >= 256


def unrolled(stmt):
    """How often the code of the most unrolled loops is repeated."""
    match stmt:
        case tvm.tirx.For():
            return (int(stmt.extent) if stmt.kind == tvm.tirx.ForKind.UNROLLED else 1) * unrolled(stmt.body)
        case tvm.tirx.SeqStmt():
            return max(unrolled(part) for part in stmt.seq)
        case tvm.s_tir.SBlockRealize():
            return unrolled(stmt.block.body)
    return 1


@pytest.mark.parametrize(("kernel", "pieces"), [(3, 3 * 3 * 7), (5, 5 * 5 * 7), (7, 7 * 7)])
def test_many_taps_of_one_channel_go_row_after_row(kernel, pieces):
    """In one piece of code LLVM would compute one of the seven accumulators after the other."""
    shapes = [(1, 4, 56, 56), (4, 1, kernel, kernel)]
    func = fused(shapes, lambda x, w: conv(x, w, padding=kernel // 2, groups=4))
    choices = {"simd": 8, "filters": 1, "vectors": 7, "group_parts": 1, "filter_parts": 1, "row_parts": 1}
    built = WINDOW_RULE.build(Function("op", func, DEVICES["avx2"], frozenset({1})), choices)
    assert unrolled(built.func.body) == pieces


@pytest.mark.parametrize(("name", "count"), [("1x1, 50 filters, epilogue", 1), ("1x1", 0), ("bias and hard swish", 0)])
def test_what_the_epilogue_touches_of_other_images_is_asked_for_ahead(name, count):
    func = example(name)[0]
    kernel = window_kernels(func, host_cpu(), range(1, len(func.params) - 1))[0]
    to_read, to_write = set(), set()

    def visit(call):
        if call.op.name == "tirx.prefetch":
            (to_write if int(call.args[1]) else to_read).add(call.args[0].args[0].source)

    tvm_ffi.structural_walk(kernel.func.body, [(Call, visit)], order="pre")
    weight = kernel.func.params[1]
    assert to_read - {weight} == set(func.params[3 : 3 + count])
    assert to_write <= {func.params[-1]}
    assert bool(to_write) == find_window(func).flat


@pytest.mark.parametrize(("stride", "kernel"), [(2, 1), (2, 3), (3, 2), (3, 4)])
def test_phases_of_transposed_convolutions_have_no_taps_of_zero(stride, kernel):
    x, weight = random(1, 16, 5, 5), random(16, 16, kernel, kernel)
    x[0, 3, 2, 2], x[0, 5, 1, 4] = np.inf, np.nan
    proto = model(
        [node("ConvTranspose", ["x", "w"], ["y"], strides=[stride] * 2)], [value("x", x.shape)], ["y"],
        [tensor("w", weight)],
    )  # fmt: skip
    (want,) = by_onnxruntime(proto, x=x)
    np.testing.assert_allclose(tvm_rammer.compile(proto, cache=False)(x), want, rtol=1e-4, atol=1e-4)
