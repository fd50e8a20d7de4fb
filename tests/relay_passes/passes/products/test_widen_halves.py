"""Products and max pools of half precision are computed by kernels for float32."""

import numpy as np
import pytest
from tvm import relax, tirx
from tvm.relax import op

from tests.functions import relax_module
from tvm_rammer.relay_passes import prepare
from tvm_rammer.relay_passes.passes.products.widen_halves import WidenHalves

from ...models import op_names, random

PRODUCTS = {
    "matmul": ((3, 40), (40, 24), op.matmul),
    "conv1d": ((2, 6, 15), (8, 6, 3), op.nn.conv1d),
    "conv2d": ((1, 6, 9, 8), (8, 6, 3, 3), lambda x, w: op.nn.conv2d(x, w, padding=1)),
    "conv3d": ((1, 3, 5, 5, 4), (4, 3, 2, 2, 2), op.nn.conv3d),
    "conv2d_transpose": ((1, 6, 4, 5), (6, 4, 3, 3), lambda x, w: op.nn.conv2d_transpose(x, w, strides=2)),
    "max_pool2d": ((1, 6, 9, 8), (1,), lambda x, _: op.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1))),
}


def product(name, dtype):
    """A product with a constant, and a rectifier behind it."""
    shape, weight, build = PRODUCTS[name]
    constant = relax.const(random(*weight, seed=1).astype("float16").astype(dtype))
    return relax_module([shape], lambda x: op.nn.relu(build(x, constant)), dtype=dtype)


@pytest.mark.parametrize("name", PRODUCTS)
def test_results_are_those_of_single_precision_rounded(name, run):
    x = random(*PRODUCTS[name][0]).astype("float16")
    got = run(WidenHalves()(product(name, "float16")), x)
    want = run(product(name, "float32"), x.astype("float32")).astype("float16")
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_a_function_of_float32_alone_and_its_weight_is_cast_before(name, target):
    mod = prepare(target)(product(name, "float16"))
    (func,) = [f for var, f in mod.functions_items() if isinstance(f, tirx.PrimFunc) and name in var.name_hint]
    assert {str(p.dtype) for p in func.params} == {"float32"}
    before, _, after = op_names(mod)
    assert before == "cast" and after.startswith("fused_cast") and after.endswith("_relu")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "weight", "build"),
    [((1, 4096), (4096, 2), op.matmul), ((1, 4096, 2, 2), (2, 4096, 1, 1), op.nn.conv2d)],
    ids=["matmul", "conv2d"],
)
def test_a_product_that_says_its_type_is_added_up_in_single_precision(shape, weight, build, dtype, run):
    ones = np.ones(shape, "float32").astype(dtype)
    constant = relax.const(np.ones(weight, "float32").astype(dtype), dtype)
    mod = relax_module([shape], lambda x: build(x, constant, out_dtype=dtype), dtype=dtype)
    assert (run(WidenHalves()(mod), ones).astype("float32") == 4096).all()


def test_single_precision_stays():
    mod = product("matmul", "float32")
    assert WidenHalves()(mod).same_as(mod)
