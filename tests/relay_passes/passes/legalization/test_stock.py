"""Operators of half precision that add, multiply or cancel are computed in float32, on a CPU and on a GPU."""

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, tirx

import tvm_rammer
from tests.emulation.programs import H200
from tests.functions import TARGET, relax_module
from tvm_rammer.relay_passes.passes.legalization import exact_legalization

op, nn, grad = relax.op, relax.op.nn, relax.op.grad

GPU = tvm.target.Target(H200.target_config())

ROWS, PLACES, IMAGE = ("float16", (2, 9)), ("int64", (9,)), ("float16", (1, 2, 6, 4))
CHANNELS = [("float16", (2,))] * 4
HEADS = [("float16", (1, 3, 2, 4))] * 3

SUMS = {
    "sum": (lambda x: op.sum(x, 1), [ROWS]),
    "mean": (lambda x: op.mean(x, 1), [ROWS]),
    "prod": (lambda x: op.prod(x, 1), [ROWS]),
    "std": (lambda x: op.std(x, 1), [ROWS]),
    "variance": (lambda x: op.variance(x, 1), [ROWS]),
    "cumsum": (lambda x: op.cumsum(x, 1), [ROWS]),
    "cumprod": (lambda x: op.cumprod(x, 1, exclusive=True), [ROWS]),
    "einsum": (lambda x, y: op.einsum((x, y), "ij,ij->i"), [ROWS, ROWS]),
    "collapse_sum_to": (lambda x: op.collapse_sum_to(x, (2, 1)), [ROWS]),
    "log_softmax": (lambda x: nn.log_softmax(x, 1), [ROWS]),
    "cross_entropy": (nn.cross_entropy_with_logits, [ROWS, ROWS]),
    "nll_loss": (nn.nll_loss, [("float16", (9, 2)), PLACES]),
    "attention": (nn.attention, HEADS),
    "batch_norm": (lambda *x: nn.batch_norm(*x, axis=1, training=True), [IMAGE, *CHANNELS]),
    "matmul": (op.matmul, [ROWS, ("float16", (9, 3))]),
    "matmul of a type": (lambda x, y: op.matmul(x, y, out_dtype="float16"), [ROWS, ("float16", (9, 3))]),
    "conv1d": (nn.conv1d, [("float16", (1, 9, 4)), ("float16", (3, 9, 1))]),
    "conv2d": (lambda x, w: nn.conv2d(x, w, groups=2), [IMAGE, ("float16", (4, 1, 3, 3))]),
    "conv2d of a type": (
        lambda x, w: nn.conv2d(x, w, out_dtype="float16"),
        [IMAGE, ("float16", (4, 2, 3, 3))],
    ),
    "avg_pool": (lambda x: nn.avg_pool2d(x, (3, 3)), [IMAGE]),
    "adaptive_avg_pool": (lambda x: nn.adaptive_avg_pool2d(x, 1), [IMAGE]),
    "scatter_elements": (
        lambda x, at, y: op.scatter_elements(x, at, y, 0, "add"),
        [("float16", (4,)), PLACES, ("float16", (9,))],
    ),
    "avg_pool_backward": (
        lambda g, x: grad.avg_pool2d_backward(g, x, (2, 2), strides=(2, 2)), [("float16", (1, 2, 3, 2)), IMAGE],
    ),
}  # fmt: skip


def legalized(build, params, target):
    dtypes, shapes = zip(*params, strict=True)
    with target:
        return relax.transform.LegalizeOps(exact_legalization(target))(relax_module(shapes, build, dtype=dtypes))


def accumulators(mod):
    """Types of what functions add to or multiply, in which it is kept from step to step."""
    found = []

    def store(node):
        def load(value):
            if value.source.same_as(node.buffer):
                found.append(str(node.buffer.dtype))

        tvm_ffi.structural_walk(node.value, [(tvm.ir.TensorLoad, load)], order="pre")

    for func in mod.functions.values():
        if isinstance(func, tirx.PrimFunc):
            tvm_ffi.structural_walk(func.body, [(tirx.BufferStore, store)], order="pre")
    return found


@pytest.mark.parametrize("target", [TARGET, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", SUMS)
def test_no_sum_of_halves_is_kept_in_half_precision(name, target):
    found = accumulators(legalized(*SUMS[name], target))
    if name == "log_softmax":
        found = [dtype for dtype in found if dtype != "float16"] or found
    assert set(found) == {"float32"}


def test_a_single_function_for_a_gpu_casts_and_rounds():
    for name in ("sum", "variance", "log_softmax", "avg_pool"):
        mod = legalized(*SUMS[name], GPU)
        (func,) = (f for f in mod.functions.values() if isinstance(f, tirx.PrimFunc))
        assert [str(p.dtype) for p in func.params] == ["float16", "float16"], name


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sums_of_as_many_ones_as_half_precision_cannot_count(dtype):
    """In float16 a sum of ones stays at 2048, in bfloat16 at 256."""

    def build(x):
        ones = op.sum(x, [1])
        rows = [op.cumsum(x, 1), op.cumprod(op.add(x, x), 1), op.broadcast_to(op.expand_dims(ones, 1), (2, 3000))]
        more = [op.einsum((x, x), "ij,ij->i"), op.sum(op.collapse_sum_to(x, (2, 1)), [1])]
        logarithms = op.negative(nn.log_softmax(x, 1))
        rows += [logarithms, *(op.broadcast_to(op.expand_dims(m, 1), (2, 3000)) for m in more)]
        return op.concat([op.expand_dims(r, 0) for r in rows], 0)

    ones = np.ones((2, 3000), dtype)
    module = tvm_rammer.compile(relax_module([ones.shape], build, dtype=str(ones.dtype)), cache=False)
    got = np.asarray(module(ones))
    assert got.dtype == dtype
    with np.errstate(over="ignore"):
        want = [np.arange(1, 3001), 2.0 ** np.arange(1, 3001), 3000, np.log(3000), 3000, 3000]
        for found, right in zip(got, want, strict=True):
            np.testing.assert_array_equal(found, np.broadcast_to(right, ones.shape).astype("float32").astype(dtype))


@pytest.mark.parametrize(("dtype", "unit"), [("float16", 1e-3), ("float32", 1e-6)])
def test_the_logarithm_of_two_exponentials_is_finite_where_they_are_not(dtype, unit):
    a = np.array([100, 12, 0, -1000, np.inf, -np.inf, np.inf, np.nan, 1], dtype)
    b = np.array([100, 12, -9, -1000, np.inf, -np.inf, 1, 1, np.nan], dtype)
    module = tvm_rammer.compile(relax_module([a.shape] * 2, op.log_add_exp, dtype=dtype), cache=False)
    with np.errstate(invalid="ignore"):
        want = np.logaddexp(a.astype("float64"), b.astype("float64"))
    np.testing.assert_allclose(module(a, b), want, rtol=unit)
