"""Numbers of 8 and 16 bits: reductions that TVM has no shuffles for, and functions that CUDA has not."""

import random

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.emulation.emulate import kernel_parameters, run_emulated
from tests.emulation.programs import H200
from tests.functions import chosen, fused, run
from tests.marks import needs_nvcc
from tests.persistent_codegen.cuda.ptx import compile_ptx
from tests.rkernel_gen.cuda.operators import emulated, function_of
from tvm_rammer.gpu_bundle.kernels import lower_kernels
from tvm_rammer.rkernel_gen.cuda.reduction import REDUCTION_RULE
from tvm_rammer.rkernel_gen.cuda.rowwise import ROWWISE_RULE
from tvm_rammer.rkernel_gen.tiling import Function

TARGET = tvm.target.Target(H200.target_config())

REDUCED = [
    ("sum_of_rows", "bfloat16", REDUCTION_RULE),
    ("sum_of_rows", "int8", REDUCTION_RULE),
    ("max_of_columns", "uint8", REDUCTION_RULE),
    ("softmax", "bfloat16", ROWWISE_RULE),
]


@pytest.mark.parametrize(("name", "dtype", "rule"), REDUCED)
def test_threads_reduce_together_what_tvm_does_not_shuffle(name, dtype, rule):
    """TVM's code for them takes the threads of a warp to be in step; those of the emulation are not."""
    func = function_of(name, dtype)
    function = Function(name, func, H200)
    space = rule.tilings(function)
    made = [rule.build(function, dict(t.choices)) for t in random.Random(name).sample(space, min(4, len(space)))]
    kernels = [kernel for kernel in made if kernel is not None]
    assert kernels
    rng = np.random.default_rng(0)
    shapes = [[int(n) for n in p.shape] for p in func.params]
    exact = func if "int" in dtype else function_of(name, "float32")
    wide = str(exact.params[0].dtype)
    arrays = [rng.uniform(0, 3, shape).astype(dtype) for shape in shapes[:-1]]
    want = run(exact, [*(a.astype(wide) for a in arrays), np.zeros(shapes[-1], str(exact.params[-1].dtype))])
    rtol = 0 if "int" in dtype else 0.06
    for (got,) in (*emulated(func, kernels, arrays), (launched(kernels[0].func, arrays),)):
        np.testing.assert_allclose(got.astype(want.dtype), want, rtol, rtol)


def launched(func, arrays):
    """What a kernel makes of some arrays in a launch of its own, as those of stock TVM have."""
    text, functions = lower_kernels(tvm.IRModule({"alone": func.with_attr("global_symbol", "alone")}), TARGET)
    (launch,) = functions["alone"].calls
    names = [name.removesuffix("_ptr") for name, _ in kernel_parameters(text, launch.kernel)]
    result = func.params[len(arrays)]
    given = [*arrays, np.zeros([int(n) for n in result.shape], str(result.dtype))]
    args = dict(zip(names, given, strict=True))
    run_emulated(text, launch.kernel, launch.grid, launch.block, launch.shared_bytes, args, 1, names[:-1])
    return given[-1]


UNARY = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "floor", "log", "round",
    "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip
BINARY = ["divide", "floor_mod", "maximum", "minimum", "mod", "power"]


@needs_nvcc
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_nvcc_takes_all_functions_of_half_precision(dtype):
    functions = {}
    for name in (*UNARY, *BINARY):
        shapes = [(4, 40)] * (1 if name in UNARY else 2)
        func = fused(shapes, getattr(relax.op, name), TARGET, dtype=dtype)
        functions[name] = chosen(name, func, H200)[0].func.with_attr("global_symbol", name)
    for rule, reduction in ((REDUCTION_RULE, "sum_of_rows"), (ROWWISE_RULE, "softmax")):
        function = Function(reduction, function_of(reduction, dtype), H200)
        kernel = rule.build(function, dict(rule.tilings(function)[-1].choices))
        functions[reduction] = kernel.func.with_attr("global_symbol", reduction)
    text, _ = lower_kernels(tvm.IRModule(functions), TARGET)
    compile_ptx(text, "tanh_kernel", "sm_80")
