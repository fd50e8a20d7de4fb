"""Powers on a GPU, whose text is compiled with fast math: the emulation has its `powf`, which knows no base below 0."""

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.emulation.programs import H200
from tests.functions import chosen, fused
from tests.marks import needs_nvcc
from tests.persistent_codegen.cuda.ptx import compile_ptx
from tests.rkernel_gen.cuda.operators import emulated
from tvm_rammer.gpu_bundle.kernels import lower_kernels

TARGET = tvm.target.Target(H200.target_config())
NUMBERS = [0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 2.5, -2.5, 7, -8, 1e4, -1e4, np.inf, -np.inf, np.nan, 1e-3, -0.1]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_powers_of_all_kinds_of_numbers(dtype):
    func = fused([(21, 1), (1, 21)], relax.op.power, TARGET, dtype=dtype)
    x = np.array(NUMBERS, dtype)
    ((got,), *_) = emulated(func, chosen("power", func, H200)[:1], [x.reshape(-1, 1), x.reshape(1, -1)])
    with np.errstate(all="ignore"):
        want = np.power(x.reshape(-1, 1).astype("float64"), x.astype("float64")).astype(dtype)
    np.testing.assert_allclose(got, want, 1e-4 if dtype == "float32" else 2e-3, float(np.finfo(dtype).tiny))


@pytest.mark.parametrize("exponent", [2.0, 3.0, 4.0, -1.0, 0.5])
def test_powers_with_an_exponent_that_is_known(exponent):
    func = fused([(9, 52)], lambda x: relax.op.power(x, relax.const(exponent, "float32")), TARGET)
    x = np.random.default_rng(0).uniform(0.1, 3, (9, 52)).astype("float32")
    if exponent != 0.5:
        x[:, ::2] *= -1
    kernels = chosen("power", func, H200)
    for (got,) in emulated(func, kernels, [x]):
        np.testing.assert_allclose(got, np.power(x.astype("float64"), exponent), 1e-5)


@needs_nvcc
def test_nvcc_takes_no_logarithm_of_a_base_as_it_is():
    powers = {"square": relax.const(2.0, "float32"), "cube": relax.const(3.0, "float32"), "any": None}
    functions = {}
    for name, exponent in powers.items():
        shapes = [(4, 40)] * (1 if exponent else 2)
        func = fused(shapes, lambda x, y=exponent: relax.op.power(x, y), TARGET)
        functions[name] = chosen(name, func, H200)[0].func.with_attr("global_symbol", name)
    text, _ = lower_kernels(tvm.IRModule(functions), TARGET)
    assert not compile_ptx(text, "square_kernel", "sm_90").matching("lg2")
    assert not compile_ptx(text, "cube_kernel", "sm_90").matching("lg2")
    kernel = compile_ptx(text, "any_kernel", "sm_90")
    magnitudes = {i.split()[1].rstrip(",") for i in kernel.matching("abs")}
    logarithms = kernel.matching("lg2")
    assert logarithms and all(i.rstrip(";").split(", ")[-1] in magnitudes for i in logarithms)
