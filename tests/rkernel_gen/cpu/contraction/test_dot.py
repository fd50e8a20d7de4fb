"""Products of bytes: every tiling is exact, with each of the instructions that there are."""

import re
from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.functions import TARGET, chosen, fused, run_kernels
from tvm_rammer.device import host_cpu
from tvm_rammer.device.host import cpu_flags
from tvm_rammer.device.presets import from_target_config
from tvm_rammer.persistent_codegen.cpu.rtask import extract_cpu

TARGETS = {
    "avx512 vnni": ({"mcpu": "x86-64-v4", "mattr": ["+avx512vnni"]}, 4, {"avx512_vnni"}),
    "avx512": ({"mcpu": "x86-64-v4"}, 2, {"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
    "avx2": ({"mcpu": "x86-64-v3"}, 2, {"avx2", "fma"}),
    "sse2": ({"mcpu": "x86-64"}, 2, {"sse2"}),
}
"""TVM's target, products of one instruction, and what the processor must have."""
ROWS = 6


def function(terms, columns=96, rows=ROWS):
    """A product of bytes as it is fused with what its zero points add."""

    def product(a, w, columns, zero):
        total = relax.op.matmul(a, w, out_dtype="int32")
        return relax.op.subtract(total, relax.op.multiply(columns, zero))

    shapes = [(rows, terms), (terms, columns), (columns,), ()]
    return fused(shapes, product, dtype=["uint8", "int8", "int32", "int32"])


def arrays_of(terms, columns=96, rows=ROWS):
    rng = np.random.default_rng(0)
    a, w = rng.integers(0, 256, (rows, terms), "uint8"), rng.integers(-128, 128, (terms, columns), "int8")
    a[0], w[:, 0] = 255, -128  # the largest sums that there are
    out = np.zeros((rows, columns), "int32")
    return [a, w, rng.integers(-9, 9, columns, "int32"), np.array(121, "int32"), out]


def exact(arrays):
    return arrays[0].astype("int64") @ arrays[1].astype("int64") - arrays[3] * arrays[2].astype("int64")


@pytest.mark.parametrize(
    ("terms", "columns", "rows"), [(64, 96, 6), (66, 96, 6), (67, 96, 6), (64, 24, 6), (64, 12, 6), (64, 61, 29)]
)
@pytest.mark.parametrize("name", TARGETS)
def test_every_tiling_is_exact(name, terms, columns, rows):
    config, dot, needed = TARGETS[name]
    device = from_target_config({"kind": "llvm", "num-cores": 2, **config})
    assert device.dot == dot
    arrays = arrays_of(terms, columns, rows)
    kernels = chosen("op", function(terms, columns, rows), device, frozenset([1]))
    assert len(kernels) >= 2
    for kernel in kernels:
        assert ("call_llvm_pure_intrin" in kernel.func.script()) == (terms % 2 == 0)
    if not needed <= cpu_flags():
        pytest.skip(f"needs {', '.join(needed)}")
    for got in run_kernels(kernels, arrays, tvm.target.Target(device.target_config())):
        np.testing.assert_array_equal(got, exact(arrays))


def test_many_bytes_are_widened_tile_by_tile():
    device = from_target_config({"kind": "llvm", "num-cores": 2, **TARGETS["sse2"][0]})
    ahead = chosen("op", function(64), device, frozenset([1]))
    kernels = chosen("op", function(64), replace(device, unit_bytes=16), frozenset([1]))
    arrays = arrays_of(64)
    for got in run_kernels(kernels, arrays, tvm.target.Target(device.target_config())):
        np.testing.assert_array_equal(got, exact(arrays))
    whole, some = (max(nbytes for k in made for nbytes, dtype in extract_cpu(k).scratch if dtype == "int16")
                   for made in (ahead, kernels))  # fmt: skip
    assert whole == 2 * ROWS * 64 > some


@pytest.mark.parametrize(("columns", "bits"), [(96, 512), (24, 256), (12, 128)])
def test_four_products_take_one_instruction(columns, bits):
    device = from_target_config({"kind": "llvm", **TARGETS["avx512 vnni"][0]})
    target = tvm.target.Target(device.target_config())
    for kernel in chosen("op", function(64, columns), device, frozenset([1])):
        assert f"vpdpbusd.{bits}" in kernel.func.script()
        code = tvm.compile(tvm.IRModule({"f": kernel.func.with_attr("global_symbol", "f")}), target)
        registers = re.findall(r"vpdpbusd\s.*%([xyz])mm", code.mod.inspect_source("asm"))
        assert set(registers) == {{512: "z", 256: "y", 128: "x"}[bits]}


def test_weights_that_are_not_constant_stay_where_they_are():
    arrays = arrays_of(64)
    kernels = chosen("op", function(64), host_cpu())
    for kernel, got in zip(kernels, run_kernels(kernels, arrays, TARGET), strict=True):
        assert not kernel.packs
        np.testing.assert_array_equal(got, exact(arrays))
