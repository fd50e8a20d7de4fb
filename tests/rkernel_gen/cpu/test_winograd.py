"""Winograd's algorithm: its transformations, every form of a tiling, and that the user can refuse it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import tvm_ffi
from tvm import tirx
from tvm.relax import op

from tests.functions import UNOPTIMISED, best_of_each_size, fused, random_arrays, run
from tests.marks import one_in, slow_but
from tests.rkernel_gen.cpu.test_window import DEVICES, HOST_BYTES, conv
from tvm_rammer.device import host_cpu
from tvm_rammer.ir import ITEM_BYTES
from tvm_rammer.persistent_codegen.cpu.rtask import extract_cpu
from tvm_rammer.rkernel_gen.construct import choose
from tvm_rammer.rkernel_gen.cpu.window.read import find_window
from tvm_rammer.rkernel_gen.cpu.winograd.layout import LINE, WinogradLayout, WinogradTile
from tvm_rammer.rkernel_gen.cpu.winograd.matrices import TRANSFORMATIONS
from tvm_rammer.rkernel_gen.cpu.winograd.rule import WINOGRAD_RULE
from tvm_rammer.rkernel_gen.cpu.winograd.sums import Sums
from tvm_rammer.rkernel_gen.footprint.footprint import covers, footprints_of
from tvm_rammer.rkernel_gen.tiling import Function

CONVOLUTIONS = {
    "padded": ([(1, 8, 14, 14), (32, 8, 3, 3)], lambda x, w: conv(x, w, padding=1)),
    "odd extents, epilogue": (
        [(1, 9, 13, 17), (21, 9, 3, 3), (1, 21, 1, 1), (1, 21, 13, 17)],
        lambda x, w, b, z: op.add(op.nn.relu(op.add(conv(x, w, padding=1), b)), z),
    ),
    "not padded, batch of 2": ([(2, 8, 11, 40), (12, 8, 3, 3)], lambda x, w: conv(x, w)),
    "asymmetric padding": ([(1, 8, 9, 12), (17, 8, 3, 3)], lambda x, w: conv(x, w, padding=(0, 2, 1, 3))),
    "2 groups": ([(1, 32, 10, 10), (32, 16, 3, 3)], lambda x, w: conv(x, w, padding=1, groups=2)),
    "one row": ([(1, 8, 1, 30), (8, 8, 3, 3)], lambda x, w: conv(x, w, padding=1)),
    "a single tile": ([(1, 8, 4, 4), (8, 8, 3, 3)], lambda x, w: conv(x, w)),
    "more channels than the cache keeps": ([(1, 160, 22, 36), (8, 160, 3, 3)], lambda x, w: conv(x, w, padding=1)),
}  # fmt: skip
LEFT = {
    "stride 2": ([(1, 8, 9, 9), (8, 8, 3, 3)], lambda x, w: conv(x, w, strides=2)),
    "dilated": ([(1, 8, 9, 9), (8, 8, 3, 3)], lambda x, w: conv(x, w, dilation=2)),
    "5x5": ([(1, 8, 9, 9), (8, 8, 5, 5)], lambda x, w: conv(x, w)),
    "rows": ([(1, 8, 30), (8, 8, 3)], lambda x, w: op.nn.conv1d(x, w)),
    "few channels": ([(1, 3, 9, 9), (8, 3, 3, 3)], lambda x, w: conv(x, w)),
    "transposed": ([(1, 8, 6, 6), (8, 8, 3, 3)], lambda x, w: op.nn.conv2d_transpose(x, w)),
    "max pool": ([(1, 16, 13, 13)], lambda x: op.nn.max_pool2d(x, (3, 3))),
}
SAMPLED = 4


def function_of(func, device):
    return Function("op", func, DEVICES[device], frozenset(range(1, len(func.params) - 1)))


@pytest.mark.parametrize("device", ("avx2", "avx512"))
@pytest.mark.parametrize("channels", (9, 64, 128))
def test_the_products_of_a_tile_lie_in_different_sets_of_the_cache(channels, device):
    """Stores of all 16 are one after the other: an odd number of cache lines apart they meet in no set."""
    func = fused([(1, channels, 28, 28), (32, channels, 3, 3)], lambda x, w: conv(x, w, padding=1))
    function = function_of(func, device)
    for tiling in best_of_each_size(WINOGRAD_RULE.tilings(function)):
        found = []
        kernel = WINOGRAD_RULE.build(function, dict(tiling.choices))
        tvm_ffi.structural_walk(kernel.func.body, [(tirx.AllocBuffer, found.append)], order="pre")
        (pixels,) = [node.buffer for node in found if node.buffer.name == "pixels"]
        products, *plane = (int(extent) for extent in pixels.shape)
        assert products == 16
        assert math.prod(plane) // LINE % 2 == 1


@pytest.mark.parametrize("size", TRANSFORMATIONS)
def test_the_transformations_are_a_convolution(size):
    by, rng = TRANSFORMATIONS[size], np.random.default_rng(0)
    image, weight = rng.standard_normal(by.points), rng.standard_normal(3)
    products = (np.array(by.weight) @ weight) * (np.array(by.image) @ image)
    np.testing.assert_allclose(np.array(by.result) @ products, np.correlate(image, weight), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("device", slow_but(lambda name: DEVICES[name].vector_bytes == HOST_BYTES, DEVICES))
@pytest.mark.parametrize("name", one_in(2, CONVOLUTIONS))
def test_tilings_are_right_and_write_all(name, device):
    if DEVICES[device].vector_bytes > HOST_BYTES:
        pytest.skip("this processor has no such vectors")
    func = fused(*CONVOLUTIONS[name])
    arrays, function = random_arrays(func), function_of(func, device)
    want = run(func, arrays)
    tilings = WINOGRAD_RULE.tilings(function)
    forms = {(t["vectors"], t["filters"], t["filter_parts"] > 1, t["row_parts"]): t for t in tilings}
    rng = np.random.default_rng(len(name))
    for i in rng.permutation(len(forms))[:SAMPLED]:
        kernel = WINOGRAD_RULE.build(function, dict(list(forms.values())[i].choices))
        packed = [kernel.packs[p].apply(a) if p in kernel.packs else a for p, a in enumerate(arrays)]
        got = run(kernel.func, packed, UNOPTIMISED)
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * np.abs(want).max())
        written = footprints_of(kernel.func, kernel.spec.num_rtasks, skip=frozenset([1]))[-1]
        assert covers(written, kernel.spec.num_rtasks, want.shape)
        extract_cpu(kernel)


def test_pixels_that_no_cache_keeps_are_transformed_in_steps():
    window = find_window(fused(*CONVOLUTIONS["more channels than the cache keeps"]))
    layout = WinogradLayout.of(window, WinogradTile(16, 2, 8, 2, 1, 1, 1))
    assert layout.steps > 1
    assert layout.rows % layout.step  # the last step is moved back


@pytest.mark.parametrize("name", LEFT)
def test_other_windows_are_left_to_other_rules(name):
    assert not WINOGRAD_RULE.tilings(function_of(fused(*LEFT[name]), "avx2"))


def test_weights_that_come_at_run_time_are_left_to_other_rules():
    assert not WINOGRAD_RULE.tilings(Function("op", fused(*CONVOLUTIONS["padded"]), DEVICES["avx2"]))


def test_it_is_chosen_where_it_is_predicted_to_be_faster_unless_the_user_refuses(monkeypatch):
    device = replace(host_cpu(), units=2)
    wide = device.vector_bytes // ITEM_BYTES["float32"]

    def rules(channels, size):
        func = fused([(1, channels, size, size), (64, channels, 3, 3)], lambda x, w: conv(x, w, padding=1))
        return {kernel.rule for kernel in choose(Function("op", func, device, frozenset([1])))}

    assert "winograd" in rules(64, 2 * wide)
    assert "winograd" not in rules(64, 3)  # most of a vector would be beyond the image
    monkeypatch.setenv("RAMMER_WINOGRAD", "0")
    assert "winograd" not in rules(64, 2 * wide)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_stays_where_it_belongs(value):
    """And is what it is by sums, whichever results of a tile it reaches."""
    name = next(name for name, device in DEVICES.items() if device.vector_bytes <= HOST_BYTES)
    func = fused(*CONVOLUTIONS["asymmetric padding"])
    arrays, function = random_arrays(func), function_of(func, name)
    for channel, y, x in [(0, 3, 5), (4, 8, 11), (7, 0, 0)]:
        arrays[0][0, channel, y, x] = value
    tilings = WINOGRAD_RULE.tilings(function)
    want = run(func, arrays)
    assert np.isfinite(want).any()
    assert not np.isfinite(want).all() or value == 3e38
    for tiling in (tilings[0], tilings[-1]):
        kernel = WINOGRAD_RULE.build(function, dict(tiling.choices))
        packed = [kernel.packs[p].apply(a) if p in kernel.packs else a for p, a in enumerate(arrays)]
        np.testing.assert_allclose(run(kernel.func, packed, UNOPTIMISED), want, rtol=1e-5, atol=1e-4)


def reaches_past(window, tiling):
    """Whether vectors of a row of tiles reach past the products that are computed."""
    sizes = {k: v for k, v in tiling.choices if k not in ("simd", "size")}
    tile = WinogradTile(tiling["simd"], tiling["size"], **sizes)
    layout = WinogradLayout.of(window, tile)
    end = (layout.step - 1) * layout.tile_columns + layout.row_vectors * tile.simd
    return end > layout.tiles * tile.vectors * tile.simd


@pytest.mark.parametrize(("size", "padding"), [(14, 1), (15, 0)])
def test_what_lies_beside_the_results_does_not_count(size, padding, monkeypatch):
    """Vectors reach past the end of a row of tiles, where there may be NaN of another run; and tiles past the image."""
    name = next(name for name, device in DEVICES.items() if device.vector_bytes <= HOST_BYTES)
    func = fused([(1, 32, size, size), (32, 32, 3, 3)], lambda x, w: conv(x, w, padding=padding))
    arrays, function = random_arrays(func), function_of(func, name)
    want = run(func, arrays)
    store = tirx.BufferStore

    def wrong(sums, at, f, y):
        return store(sums.window.out, tirx.FloatImm("float32", 1e9), [at.n, at.first + f, y, tirx.IntImm("int32", 0)])

    monkeypatch.setattr(Sums, "row", wrong)
    past = [t for t in WINOGRAD_RULE.tilings(function) if reaches_past(find_window(func), t)]
    assert past
    for tiling in past[:3]:
        kernel = WINOGRAD_RULE.build(function, dict(tiling.choices))
        packed = [kernel.packs[p].apply(a) if p in kernel.packs else a for p, a in enumerate(arrays)]
        infected = run(kernel.func, [np.full_like(packed[0], np.nan), *packed[1:]], UNOPTIMISED)
        assert (infected == 1e9).any()
        got = run(kernel.func, packed, UNOPTIMISED)
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * np.abs(want).max())
