"""Pools whose rows are combined before their columns: every form of a tiling, and what is left to other rules."""

from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm.relax import op
from tvm.script import tirx as T

from tests.functions import UNOPTIMISED, chosen, fused, random_arrays, run
from tests.marks import one_in, slow_but
from tests.rkernel_gen.cpu.test_window import DEVICES, HOST_BYTES, conv
from tvm_rammer.device import host_cpu
from tvm_rammer.persistent_codegen.cpu.rtask import extract_cpu
from tvm_rammer.rkernel_gen.cpu.pool.rule import MAX_KERNEL, POOL_RULE
from tvm_rammer.rkernel_gen.footprint.footprint import covers, footprints_of
from tvm_rammer.rkernel_gen.tiling import Function


def max_pool(x, *args, **options):
    return op.nn.max_pool2d(x, *args, **options)


def avg_pool(x, *args, **options):
    return op.nn.avg_pool2d(x, *args, **options)


TEXT = """
@T.prim_func(private=True, s_tir=True)
def main(x: T.Buffer((1, 4, 8, 18), "float32"), y: T.Buffer((1, 4, 5, 9), "float32")):
    p = T.sblock_alloc_buffer((1, 4, 11, 19))
    for n0, c0, i0, j0 in T.grid(1, 4, 11, 19):
        with T.sblock("p"):
            n, c, i, j = T.axis.remap("SSSS", [n0, c0, i0, j0])
            p[n, c, i, j] = T.if_then_else(1 <= i and i < 9 and 1 <= j, x[n, c, i - 1, j - 1], T.float32({fill}))
    for n0, c0, i0, j0, a0, b0 in T.grid(1, 4, 5, 9, 3, 3):
        with T.sblock("y"):
            n, c, i, j, a, b = T.axis.remap("SSSSRR", [n0, c0, i0, j0, a0, b0])
            with T.init():
                y[n, c, i, j] = T.float32({initial})
            y[n, c, i, j] = {update}
"""
UPDATES = {
    "maximum": "T.max(y[n, c, i, j], p[n, c, i * 2 + a, j * 2 + b])",
    "sum": "y[n, c, i, j] + p[n, c, i * 2 + a, j * 2 + b]",
}


POOLS = {
    "stride 2, padded": ([(1, 6, 112, 112)], lambda x: max_pool(x, (3, 3), (2, 2), (1, 1))),
    "stride 2, odd extents": ([(1, 6, 23, 55)], lambda x: max_pool(x, (3, 3), (2, 2))),
    "columns that no window reads": ([(2, 3, 17, 36)], lambda x: max_pool(x, (2, 3), (2, 2))),
    "stride 2, odd padding on one side": ([(1, 3, 12, 20)], lambda x: max_pool(x, (4, 5), (2, 2), (1, 2, 0, 3))),
    "ceiling": ([(1, 4, 14, 14)], lambda x: max_pool(x, (3, 3), (2, 2), ceil_mode=True)),
    "stride 1": ([(1, 12, 28, 28)], lambda x: max_pool(x, (3, 3), (1, 1), (1, 1))),
    "narrow": ([(1, 12, 7, 7)], lambda x: max_pool(x, (3, 3), (1, 1), (1, 1))),
    "a single column": ([(1, 5, 9, 1)], lambda x: max_pool(x, (3, 1), (1, 1), (1, 0))),
    "a single column at stride 2": ([(1, 5, 9, 1)], lambda x: max_pool(x, (3, 3), (2, 2), (1, 1))),
    "as large as the image": ([(1, 8, 7, 7)], lambda x: avg_pool(x, (7, 7))),
    "larger than the image": ([(1, 8, 5, 4)], lambda x: max_pool(x, (9, 9), (1, 1), (4, 4))),
    "lines in several parts": ([(1, 2, 40, 300)], lambda x: max_pool(x, (3, 3), (1, 1), (1, 1))),
    "vertical stride": ([(1, 4, 31, 18)], lambda x: max_pool(x, (5, 2), (3, 1), (2, 1))),
    "stride 3, padded": ([(1, 6, 23, 56)], lambda x: max_pool(x, (3, 4), (3, 3), (1, 2))),
    "stride 4 along a row": ([(1, 6, 17, 257)], lambda x: max_pool(x, (1, 4), (1, 4))),
    "stride 4, odd padding on one side": ([(2, 3, 12, 39)], lambda x: avg_pool(x, (5, 7), (4, 4), (1, 3, 0, 5))),
    "average of what is inside": ([(1, 8, 17, 35)], lambda x: avg_pool(x, (3, 3), (1, 1), (1, 1))),
    "average with the padding": (
        [(1, 8, 17, 35)],
        lambda x: avg_pool(x, (3, 3), (2, 2), (1, 1), count_include_pad=True),
    ),
    "epilogue": (
        [(2, 6, 13, 13), (1, 6, 1, 1), (2, 6, 7, 7)],
        lambda x, b, z: op.add(op.nn.relu(op.add(max_pool(x, (3, 3), (2, 2), (1, 1)), b)), z),
    ),
    "rows": ([(1, 16, 100)], lambda x: op.nn.max_pool1d(x, 3, 2, 1)),
    "average of rows": ([(3, 5, 33)], lambda x: op.nn.avg_pool1d(x, 4, 1, 1)),
}  # fmt: skip
LEFT = {
    "stride 5": ([(1, 8, 15, 15)], lambda x: max_pool(x, (5, 5), (5, 5))),
    "stride beyond the window": ([(1, 8, 9, 9)], lambda x: max_pool(x, (1, 1), (2, 2))),
    "dilated": ([(1, 8, 9, 9)], lambda x: max_pool(x, (3, 3), (1, 1), dilation=(2, 2))),
    "large": ([(1, 2, 40, 40)], lambda x: max_pool(x, (MAX_KERNEL + 1, 1))),
    "depthwise convolution": ([(1, 8, 9, 9), (8, 1, 3, 3)], lambda x, w: conv(x, w, groups=8)),
}
SAMPLED = 4


def function_of(func, device):
    return Function("op", func, DEVICES[device])


@pytest.mark.parametrize("device", slow_but(lambda name: DEVICES[name].vector_bytes == HOST_BYTES, DEVICES))
@pytest.mark.parametrize("name", one_in(3, POOLS))
def test_tilings_are_right_and_write_all(name, device):
    if DEVICES[device].vector_bytes > HOST_BYTES:
        pytest.skip("this processor has no such vectors")
    func = fused(*POOLS[name])
    arrays, function = random_arrays(func), function_of(func, device)
    want = run(func, arrays)
    tilings = POOL_RULE.tilings(function)
    assert tilings
    forms = list({(t["group_parts"] > 1, t["row_parts"]): t for t in tilings}.values())
    for i in np.random.default_rng(len(name)).permutation(len(forms))[:SAMPLED]:
        kernel = POOL_RULE.build(function, dict(forms[i].choices))
        got = run(kernel.func, arrays, UNOPTIMISED)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())
        written = footprints_of(kernel.func, kernel.spec.num_rtasks)[-1]
        assert covers(written, kernel.spec.num_rtasks, want.shape)
        extract_cpu(kernel)


@pytest.mark.parametrize(
    ("update", "fill", "initial"),
    [("maximum", 0.0, -1e30), ("maximum", -1e30, 0.5), ("maximum", -2e30, -1e30), ("sum", 0.0, 0.0), ("sum", 2.0, 3.0)],
)
def test_the_padding_counts_as_its_value(update, fill, initial):
    """Of pixels that are all less than 0."""
    text = TEXT.format(fill=fill, initial=initial, update=UPDATES[update])
    func = tvm.script.from_source(text, extra_vars={"T": T})
    function = Function("op", func, replace(host_cpu(), units=2))
    image, out = random_arrays(func)
    arrays = [-np.abs(image) - 1, out]
    for tiling in POOL_RULE.tilings(function)[:SAMPLED]:
        kernel = POOL_RULE.build(function, dict(tiling.choices))
        np.testing.assert_allclose(run(kernel.func, arrays, UNOPTIMISED), run(func, arrays), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", LEFT)
def test_other_windows_are_left_to_other_rules(name):
    assert not POOL_RULE.tilings(function_of(fused(*LEFT[name]), "avx2"))


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.finfo(np.float32).min])
@pytest.mark.parametrize("name", ["stride 2, padded", "narrow"])
def test_a_maximum_of_extreme_values_is_that_of_the_window(name, value):
    """Also where all pixels of a window are the least there is, less than what a maximum begins with."""
    func = fused(*POOLS[name])
    arrays = random_arrays(func)
    arrays[0][0, 1] = value
    arrays[0][0, 2, :4, :4] = value
    function = replace(function_of(func, "avx2"), device=replace(host_cpu(), units=2))
    kernel = POOL_RULE.build(function, dict(POOL_RULE.tilings(function)[0].choices))
    np.testing.assert_array_equal(run(kernel.func, arrays, UNOPTIMISED), run(func, arrays))


@pytest.mark.parametrize("name", ["stride 2, padded", "stride 1", "average of what is inside"])
def test_it_is_chosen(name):
    assert {kernel.rule for kernel in chosen("op", fused(*POOLS[name]), replace(host_cpu(), units=2))} == {"pool"}
