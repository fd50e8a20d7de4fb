"""Windows whose padding is the image's edge: which ones, and that extremes over them are the same."""

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

from tests.functions import relax_module
from tvm_rammer.rkernel_gen.cuda.edges import padded_by_edges

IMAGE = (2, 3, 9, 11)


def function_of(build, shape=IMAGE, dtype="float32"):
    module = relax_module([shape], build, dtype=dtype)
    module = tvm.ir.transform.Sequential([relax.transform.LegalizeOps()])(module)
    (func,) = (f for f in module.functions.values() if isinstance(f, tirx.PrimFunc))
    return func


def largest(**choices):
    return lambda x: relax.op.nn.max_pool2d(x, **choices)


def results(func, image):
    executable = tvm.compile(func.with_attr("global_symbol", "main"), target="llvm")
    result = np.zeros([int(n) for n in func.params[1].shape], image.dtype)
    tensors = [tvm.runtime.tensor(a) for a in (image, result)]
    executable["main"](*tensors)
    return tensors[1].numpy()


EDGES = {
    "same": {"pool_size": (3, 3), "padding": (1, 1)},
    "strides": {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1)},
    "one_side": {"pool_size": (3, 2), "strides": (2, 2), "padding": (0, 0, 1, 1)},
    "wide": {"pool_size": (5, 7), "padding": (2, 3)},
    "ceil_mode": {"pool_size": (3, 3), "strides": (2, 3), "padding": (1, 1), "ceil_mode": True},
}
LEFT = {
    "dilated": {"pool_size": (3, 3), "padding": (2, 2), "dilation": (2, 2)},
    "windows_of_padding_alone": {"pool_size": (2, 2), "padding": (2, 2)},
    "without_padding": {"pool_size": (3, 3)},
}


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("name", [*EDGES, *LEFT])
def test_largest_elements_are_the_same(name, dtype):
    func = function_of(largest(**{**EDGES, **LEFT}[name]), dtype=dtype)
    image = np.random.default_rng(0).integers(-128, 127, IMAGE).astype(dtype)
    if dtype == "float32":
        image[0, 0, 0, 0] = -np.inf
    np.testing.assert_array_equal(results(padded_by_edges(func), image), results(func, image))
    assert padded_by_edges(func).same_as(func) == (name in LEFT)


def test_sums_keep_their_zeros():
    func = function_of(lambda x: relax.op.nn.avg_pool2d(x, pool_size=(3, 3), padding=(1, 1)))
    assert padded_by_edges(func).same_as(func)


def test_no_load_has_a_condition():
    assert "if_then_else" not in str(padded_by_edges(function_of(largest(**EDGES["same"]))))
