"""Halves that were cast for a product are multiplied as such on a GPU."""

import numpy as np
import pytest
from tvm import tirx
from tvm.relax import op

from tests.functions import relax_module
from tvm_rammer.compilation.target import resolve_device, tvm_target
from tvm_rammer.relay_passes import prepare
from tvm_rammer.relay_passes.passes.products.narrow_halves import NarrowHalves

from ...models import op_names, random

SHAPES = [(2, 3, 40), (2, 40, 24)]


def product(dtype="float16", both=True):
    """Of halves that are beyond 65504 together."""

    def build(a, b):
        return op.matmul(op.astype(a, "float32"), op.astype(b, "float32") if both else op.exp(op.astype(b, "float32")))

    return relax_module(SHAPES, build, dtype=dtype)


def test_results_stay_and_nothing_is_cast(run):
    given = [(random(*shape, seed=n) * 300).astype("float16") for n, shape in enumerate(SHAPES)]
    mod = NarrowHalves()(product())
    assert "float16" in str(mod["main"].body.blocks[0].bindings[-1].value.args[0].ty)
    np.testing.assert_allclose(run(mod, *given), np.matmul(*(x.astype("float32") for x in given)), rtol=1e-5, atol=0.5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_function_for_tensor_cores(dtype):
    mod = prepare(tvm_target(resolve_device("cuda:h100")))(product(dtype))
    (func,) = [func for _, func in mod.functions_items() if isinstance(func, tirx.PrimFunc)]
    assert [str(p.dtype) for p in func.params] == [dtype, dtype, "float32"]


@pytest.mark.parametrize("how", [{"dtype": "float32"}, {"both": False}])
def test_others_stay(how):
    mod = product(**how)
    assert op_names(NarrowHalves()(mod)) == op_names(mod)
