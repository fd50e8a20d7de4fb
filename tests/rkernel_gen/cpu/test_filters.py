"""Convolutions with filters in vectors: every form of a register tile, and the transposition in registers."""

from dataclasses import replace

import numpy as np
import pytest
import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.relax import op

from tests.functions import TARGET, UNOPTIMISED, fused, random_arrays, run, run_kernels
from tests.marks import one_in, slow_but
from tests.rkernel_gen.cpu.test_window import DEVICES, HOST_BYTES, conv
from tvm_rammer.persistent_codegen.cpu.rtask import extract_cpu
from tvm_rammer.rkernel_gen.analysis.affine import linear
from tvm_rammer.rkernel_gen.cpu.filters.code import filters_code
from tvm_rammer.rkernel_gen.cpu.filters.layout import FilterLayout, FilterTile, pack_of
from tvm_rammer.rkernel_gen.cpu.filters.rule import FILTERS_RULE
from tvm_rammer.rkernel_gen.cpu.in_registers import transpose
from tvm_rammer.rkernel_gen.cpu.window.code import window_code
from tvm_rammer.rkernel_gen.cpu.window.layout import WindowTile
from tvm_rammer.rkernel_gen.cpu.window.read import find_window
from tvm_rammer.rkernel_gen.cpu.window.rule import WINDOW_RULE
from tvm_rammer.rkernel_gen.footprint.footprint import covers, footprints_of
from tvm_rammer.rkernel_gen.tiling import Function

CONVOLUTIONS = {
    "padded": ([(1, 8, 14, 14), (32, 8, 3, 3)], lambda x, w: conv(x, w, padding=1)),
    "odd extents": ([(1, 3, 11, 17), (20, 3, 5, 2)], lambda x, w: conv(x, w, padding=(2, 1, 2, 0))),
    "asymmetric padding": ([(1, 5, 9, 12), (17, 5, 3, 4)], lambda x, w: conv(x, w, padding=(0, 2, 1, 3))),
    "more padding than image": ([(1, 2, 3, 3), (16, 2, 7, 7)], lambda x, w: conv(x, w, padding=3)),
    "strides 3 and 2, dilation": (
        [(1, 4, 23, 29), (19, 4, 3, 4)], lambda x, w: conv(x, w, strides=(3, 2), padding=(2, 1), dilation=(2, 3)),
    ),
    "not padded": ([(2, 40, 10, 10), (24, 40, 3, 3)], lambda x, w: conv(x, w)),
    "not padded, stride 2": ([(1, 16, 14, 13), (24, 16, 1, 1)], lambda x, w: conv(x, w, strides=2)),
    "planes of 4 KB": ([(1, 6, 30, 30), (16, 6, 3, 3)], lambda x, w: conv(x, w, padding=1)),
    "batch of 3, 37 channels": ([(3, 37, 7, 7), (16, 37, 3, 3)], lambda x, w: conv(x, w, padding=1)),
    "1x1, 50 filters, epilogue": (
        [(1, 64, 7, 7), (50, 64, 1, 1), (1, 50, 1, 1), (1, 50, 7, 7)],
        lambda x, w, b, z: op.add(op.nn.relu(op.add(conv(x, w), b)), z),
    ),
    "epilogue of a row": (
        [(1, 6, 9, 11), (17, 6, 3, 3), (1, 1, 1, 11)], lambda x, w, b: op.add(conv(x, w, padding=1), b),
    ),
    "2 groups of 32": ([(1, 8, 10, 10), (64, 4, 3, 3)], lambda x, w: conv(x, w, padding=1, groups=2)),
    "rows, stride 2, dilation 3, bias": (
        [(2, 6, 41), (18, 6, 4), (1, 18, 1)],
        lambda x, w, b: op.nn.relu(op.add(op.nn.conv1d(x, w, strides=2, padding=(2, 1), dilation=3), b)),
    ),
    "rows of single taps, epilogue": (
        [(2, 24, 30), (19, 24, 1), (2, 19, 30)], lambda x, w, z: op.add(op.nn.conv1d(x, w), z),
    ),
    "1x1, channels that conflict": ([(2, 20, 16, 16), (40, 20, 1, 1)], lambda x, w: conv(x, w)),
    "1x1, channels that conflict, many pixels": ([(1, 50, 64, 64), (20, 50, 1, 1)], lambda x, w: conv(x, w)),
    "not padded, stride 2, channels that conflict": (
        [(1, 20, 32, 32), (20, 20, 1, 1)], lambda x, w: conv(x, w, strides=2),
    ),
    "1x1, strides 2 and 3, groups, epilogue": (
        [(2, 16, 13, 14), (64, 8, 1, 1), (1, 64, 1, 1), (2, 64, 7, 5)],
        lambda x, w, b, z: op.nn.relu(op.add(op.add(conv(x, w, strides=(2, 3), groups=2), b), z)),
    ),
    "1x1, stride 2, many pixels": ([(1, 40, 90, 89), (72, 40, 1, 1)], lambda x, w: conv(x, w, strides=2)),
    "rows of single taps, stride 3": ([(2, 24, 31), (64, 24, 1)], lambda x, w: op.nn.conv1d(x, w, strides=3)),
    "1x1, many blocks": ([(1, 10, 11, 13), (200, 10, 1, 1)], lambda x, w: conv(x, w)),
    "a single pixel": ([(1, 12, 3, 3), (16, 12, 3, 3)], lambda x, w: conv(x, w)),
}  # fmt: skip
LEFT = {
    "few filters": ([(1, 8, 9, 9), (3, 8, 3, 3)], lambda x, w: conv(x, w)),
    "groups of few filters": ([(1, 12, 9, 9), (30, 4, 3, 3)], lambda x, w: conv(x, w, groups=3)),
    "transposed": ([(1, 8, 6, 6), (8, 32, 2, 2)], lambda x, w: op.nn.conv2d_transpose(x, w, strides=2)),
    "max pool": ([(1, 16, 13, 13)], lambda x: op.nn.max_pool2d(x, (3, 3))),
}
SAMPLED = 5


def buffers_of(func):
    """The scratch of a function."""
    found = []
    tvm_ffi.structural_walk(func.body, [(tirx.AllocBuffer, lambda s: found.append(s.buffer))], order="pre")
    return found


def function_of(func, device):
    return Function("op", func, DEVICES[device], frozenset(range(1, len(func.params) - 1)))


@pytest.mark.parametrize("device", slow_but(lambda name: DEVICES[name].vector_bytes == HOST_BYTES, DEVICES))
@pytest.mark.parametrize("name", one_in(3, CONVOLUTIONS))
def test_tilings_are_right_and_write_all(name, device):
    if DEVICES[device].vector_bytes > HOST_BYTES:
        pytest.skip("this processor has no such vectors")
    func = fused(*CONVOLUTIONS[name])
    arrays, function = random_arrays(func), function_of(func, device)
    want = run(func, arrays, UNOPTIMISED)
    tilings = FILTERS_RULE.tilings(function)
    forms = {(t["vectors"], t["rows"], t["columns"], t["panels"], t["row_parts"] > 1): t for t in tilings}
    rng = np.random.default_rng(len(name))
    sampled = [list(forms.values())[i] for i in rng.permutation(len(forms))[:SAMPLED]]
    kernels = [FILTERS_RULE.build(function, dict(tiling.choices)) for tiling in sampled]
    for kernel, got in zip(kernels, run_kernels(kernels, arrays, UNOPTIMISED), strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)
        written = footprints_of(kernel.func, kernel.spec.num_rtasks, skip=frozenset([1]))[-1]
        assert covers(written, kernel.spec.num_rtasks, want.shape)
        extract_cpu(kernel)


def test_tiles_that_go_on_in_the_next_row_compute_their_places_outside_of_the_innermost_loop():
    """Nothing is hidden from LLVM there, which would have it extract four of six places from a vector in each step."""
    func = fused([(1, 64, 16, 16), (32, 64, 3, 3)], lambda x, w: conv(x, w, padding=1))
    function = function_of(func, "avx2")
    tilings = [t for t in FILTERS_RULE.tilings(function) if t["rows"] == 0]
    assert tilings
    code = str(extract_cpu(FILTERS_RULE.build(function, dict(tilings[0].choices))).func)
    assert "% 16" in code
    assert "umul.fix" not in code


@pytest.mark.parametrize(
    ("name", "tile"),
    [
        ("padded", FilterTile(8, 3, 1, 4, 1, 1, 1, 4)),
        ("padded", FilterTile(8, 2, 0, 6, 1, 2, 2, 8)),
        ("strides 3 and 2, dilation", FilterTile(8, 2, 0, 5, 1, 1, 2, 2)),
        ("not padded", FilterTile(8, 3, 0, 4, 1, 1, 3, 5)),
        ("not padded, stride 2", FilterTile(8, 3, 1, 4, 1, 1, 1, 2)),
        ("planes of 4 KB", FilterTile(8, 2, 0, 6, 1, 1, 1)),
        ("batch of 3, 37 channels", FilterTile(8, 1, 0, 5, 1, 2, 1, 37)),
        ("2 groups of 32", FilterTile(8, 2, 0, 6, 1, 1, 2, 2)),
        ("2 groups of 32", FilterTile(8, 2, 1, 5, 2, 1, 1, 4)),
        ("rows, stride 2, dilation 3, bias", FilterTile(8, 2, 0, 6, 1, 1, 1, 3)),
        ("1x1, 50 filters, epilogue", FilterTile(8, 3, 1, 4, 1, 1, 2, 4)),
        ("1x1, channels that conflict", FilterTile(8, 2, 1, 6, 1, 1, 1, 2)),
        ("1x1, many blocks", FilterTile(8, 3, 1, 4, 1, 3, 2, 1, 1)),
        ("rows of single taps, epilogue", FilterTile(8, 1, 1, 7, 1, 1, 2, 1, 1)),
        ("1x1, strides 2 and 3, groups, epilogue", FilterTile(8, 2, 1, 6, 2, 1, 1, 4)),
    ],
)
def test_sums_may_be_cut_into_blocks_and_tiles_may_go_on_in_the_next_row(name, tile):
    func = fused(*CONVOLUTIONS[name])
    window, arrays = find_window(func), random_arrays(func)
    layout = FilterLayout.of(window, tile)
    code = filters_code(func, window, tile)
    assert tile.sum_parts == 1 or any(buffer.name == "sums" for buffer in buffers_of(code))
    packed = [pack_of(window, tile, layout).apply(a) if i == 1 else a for i, a in enumerate(arrays)]
    np.testing.assert_allclose(run(code, packed), run(func, arrays, UNOPTIMISED), 1e-4, 1e-4)


@pytest.mark.parametrize(("channels", "size"), [(512, 7), (2048, 7)])
def test_weights_that_leave_the_cache_are_cut_into_blocks_of_the_sum(channels, size):
    kernel = 3 if channels == 512 else 1
    shapes = [(1, channels, size, size), (512, channels, kernel, kernel)]
    func = fused(shapes, lambda x, w: conv(x, w, padding=kernel // 2))
    device = replace(DEVICES["avx2"], unit_bytes=512 << 10)
    tilings = FILTERS_RULE.tilings(Function("op", func, device, frozenset({1})))
    best = min((t for t in tilings if t.num_rtasks == 1), key=lambda t: t.rtask_us)
    assert best["sum_parts"] > 1
    larger = replace(device, unit_bytes=64 << 20)
    assert all(t["sum_parts"] == 1 for t in FILTERS_RULE.tilings(Function("op", func, larger, frozenset({1}))))


def test_waits_for_weights_are_counted_for_vectors_of_32_bytes_alone():
    func = fused([(1, 512, 7, 7), (2048, 512, 1, 1)], conv)
    dearer = []
    for name in ("avx2", "avx512"):
        small, large = (
            FILTERS_RULE.tilings(Function("op", func, replace(DEVICES[name], unit_bytes=nbytes), frozenset({1})))
            for nbytes in (512 << 10, 64 << 20)
        )
        times = {t.choices: t.rtask_us for t in large}
        common = [t for t in small if t.num_rtasks == 1 and t.choices in times]
        assert common
        dearer.append(any(t.rtask_us > 1.05 * times[t.choices] for t in common))
    assert dearer == [True, False]


@pytest.mark.parametrize("size", [7, 28, 56])
def test_an_innermost_loop_reads_few_pages_of_the_scratch_image(size):
    func = fused([(1, 64, size, size), (32, 64, 3, 3)], lambda x, w: conv(x, w, padding=1))
    window, tile = find_window(func), FilterTile(16, 2, 1, 7, 1, 1, 1)
    layout, found = FilterLayout.of(window, tile), set()

    def load(node):
        if node.source.name == "image":
            axes = []
            tvm_ffi.structural_walk(node.indices[0], [(tirx.Var, axes.append)], order="pre")
            found.update(linear(node.indices[0], axes)[:-1])

    tvm_ffi.structural_walk(filters_code(func, window, tile).body, [(TensorLoad, load)], order="pre")
    assert layout.width * 2 in found  # two channels after two others, of the same row
    assert layout.channels * layout.width in found
    assert layout.inner * layout.width * 4 <= 2 * 4096


def far(device, **figures):
    """A device whose cores read lines of other pages slowly."""
    return replace(DEVICES[device], unit_bytes=2 << 20, clock_ghz=3.5, flops_per_cycle=64, **figures)


def best_of(shapes, device, rule=FILTERS_RULE):
    tilings = rule.tilings(Function("op", fused(shapes, conv), device, frozenset({1})))
    return min((t for t in tilings if t.num_rtasks == 1), key=lambda t: t.rtask_us)


def test_an_image_that_no_cache_holds_is_copied_once_where_its_lines_are_waited_for():
    large, small = [(1, 256, 56, 56), (128, 256, 1, 1)], [(1, 256, 14, 14), (128, 256, 1, 1)]
    assert best_of(large, far("avx512", line_ns=0.0))["panels"] == 0
    assert best_of(large, far("avx512", line_ns=4.0))["panels"] == 1
    assert best_of(small, far("avx512", line_ns=4.0))["panels"] == 0
    window = [best_of(large, far("avx512", line_ns=ns), WINDOW_RULE).rtask_us for ns in (0.0, 4.0)]
    assert window[1] > window[0]


def test_tiles_are_larger_where_a_step_has_cycles_beside_its_multiply_adds():
    shapes = [(1, 256, 14, 14), (256, 256, 1, 1)]
    size = [(t := best_of(shapes, far("avx512", step_cycles=n, loads_per_cycle=1.5)))["vectors"] * t["columns"]
            for n in (0.0, 1.25)]  # fmt: skip
    assert size[1] >= size[0]
    assert size[1] == 28


@pytest.mark.parametrize("name", LEFT)
def test_other_windows_are_left_to_other_rules(name):
    assert not FILTERS_RULE.tilings(function_of(fused(*LEFT[name]), "avx2"))


def test_weights_that_come_at_run_time_are_left_to_other_rules():
    func = fused(*CONVOLUTIONS["padded"])
    assert not FILTERS_RULE.tilings(Function("op", func, DEVICES["avx2"]))


@pytest.mark.parametrize(("rows", "lanes"), [(1, 4), (2, 4), (4, 4), (2, 8), (8, 8), (4, 16), (8, 16), (16, 16)])
def test_a_matrix_is_transposed_in_registers(rows, lanes):
    a, b = tirx.decl_buffer((rows, lanes), "float32", "a"), tirx.decl_buffer((lanes, rows), "float32", "b")

    def along(count):
        return tirx.Ramp(tirx.IntImm("int64", 0), tirx.IntImm("int64", 1), count)

    def store(column, vector):
        return tirx.BufferStore(b, vector, [column, along(rows) if rows > 1 else 0])

    statements = transpose([a[r, along(lanes)] for r in range(rows)], lanes, store)
    func = tirx.PrimFunc([a, b], tirx.SeqStmt(statements)).with_attr("s_tir", True)
    values = np.arange(rows * lanes, dtype="float32").reshape(rows, lanes)
    np.testing.assert_array_equal(run(func, [values, np.zeros((lanes, rows), "float32")], TARGET), values.T)


@pytest.mark.parametrize(
    ("name", "code", "tile"),
    [
        ("padded", window_code, WindowTile(16, 4, 1, 1, 1, 1)),
        ("padded", filters_code, FilterTile(16, 1, 1, 14, 1, 1, 1)),
        ("1x1, channels that conflict", filters_code, FilterTile(16, 1, 1, 16, 1, 1, 1)),
    ],
)
def test_copies_can_be_left_out_to_see_what_they_take(name, code, tile):
    func = fused(*CONVOLUTIONS[name])

    def copies(**how):
        found = []
        made = code(func, find_window(func), tile, **how)
        tvm_ffi.structural_walk(made.body, [(tirx.BufferStore, lambda s: found.append(s.buffer.name))], order="pre")
        return found.count("image")

    assert copies() > 0
    assert copies(copies=False) == 0
