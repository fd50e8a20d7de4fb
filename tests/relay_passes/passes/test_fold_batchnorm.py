"""Batch normalisation goes into the convolution before it, or becomes a multiply and an add."""

import numpy as np
import pytest
from tvm import relax
from tvm.script import relax as R

from tvm_rammer.relay_passes import FoldBatchNorm

from ..models import op_names, random


def norm(builder, data, channels, axis=1, dtype="float32", output=0, training=False, **attrs):
    statistics = [random(channels, seed=i).astype(dtype) for i in range(3)]
    statistics.append(np.abs(random(channels, seed=3)).astype(dtype) + np.array(0.5, dtype))
    constants = [relax.const(array, dtype) for array in statistics]
    result = builder.emit(relax.op.nn.batch_norm(data, *constants, axis=axis, training=training, **attrs))
    return builder.emit(relax.TupleGetItem(result, output))


def build(shape, body, dtype="float32", dataflow=True):
    """A module whose main is `body(builder, x)`."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor(shape, dtype))
    with builder.function("main", [x]):
        if dataflow:
            with builder.dataflow():
                result = builder.emit_output(body(builder, x))
        else:
            result = body(builder, x)
        builder.emit_func_output(result)
    return builder.get()


def check(run, mod, shape, expected, dtype="float32", rtol=2e-5):
    folded = FoldBatchNorm()(mod)
    assert op_names(folded) == expected
    x = random(*shape, seed=9).astype(dtype)
    left, right = run(folded, x), run(relax.transform.DecomposeOpsForInference()(mod), x)
    for a, b in zip(*(v if isinstance(v, list) else [v] for v in (left, right)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def bias(channels, *ones):
    return relax.const(random(channels, seed=5).reshape(-1, *ones))


@pytest.mark.parametrize("dataflow", [True, False])
def test_into_a_convolution(run, dataflow):
    def body(b, x):
        return norm(b, b.emit(relax.op.nn.conv2d(x, relax.const(random(4, 2, 3, 3)))), 4)

    check(run, build((1, 2, 5, 5), body, dataflow=dataflow), (1, 2, 5, 5), ["nn.conv2d", "add"])


@pytest.mark.parametrize("swap", [False, True])
def test_into_a_convolution_with_bias(run, swap):
    def body(b, x):
        conv = b.emit(relax.op.nn.conv2d(x, relax.const(random(4, 2, 1, 1))))
        pair = (bias(4, 1, 1), conv) if swap else (conv, bias(4, 1, 1))
        return norm(b, b.emit(relax.op.add(*pair)), 4)

    check(run, build((1, 2, 3, 3), body), (1, 2, 3, 3), ["nn.conv2d", "add"])


@pytest.mark.parametrize(
    ("shape", "weights", "call"),
    [
        ((1, 4, 3, 3), (8, 2, 1, 1), lambda x, w: relax.op.nn.conv2d(x, w, groups=2)),
        ((1, 2, 5), (4, 2, 3), relax.op.nn.conv1d),
        ((1, 2, 3, 3, 3), (4, 2, 2, 2, 2), relax.op.nn.conv3d),
        ((1, 2, 3, 3), (2, 4, 2, 2), relax.op.nn.conv2d_transpose),
    ],
    ids=["grouped", "1d", "3d", "transposed"],
)
def test_into_other_convolutions(run, shape, weights, call):
    channels = 8 if weights[0] == 8 else 4

    def body(b, x):
        return norm(b, b.emit(call(x, relax.const(random(*weights)))), channels)

    name = "nn.conv2d_transpose" if weights == (2, 4, 2, 2) else f"nn.conv{len(shape) - 2}d"
    check(run, build(shape, body), shape, [name, "add"])


def test_layout_nhwc(run):
    def body(b, x):
        conv = relax.op.nn.conv2d(x, relax.const(random(3, 3, 2, 4)), data_layout="NHWC", kernel_layout="HWIO")
        return norm(b, b.emit(conv), 4, axis=3)

    check(run, build((1, 5, 5, 2), body), (1, 5, 5, 2), ["nn.conv2d", "add"])


def test_two_in_a_row(run):
    def body(b, x):
        conv = b.emit(relax.op.nn.conv2d(x, relax.const(random(4, 2, 1, 1))))
        return norm(b, norm(b, conv, 4), 4)

    check(run, build((1, 2, 3, 3), body), (1, 2, 3, 3), ["nn.conv2d", "add"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_alone_it_is_a_multiply_and_an_add(run, dtype):
    mod = build((2, 3, 4, 4), lambda b, x: norm(b, b.emit(relax.op.nn.relu(x)), 3, dtype=dtype), dtype)
    check(run, mod, (2, 3, 4, 4), ["nn.relu", "multiply", "add"], dtype)


def test_a_convolution_with_other_readers_keeps_its_weights(run):
    def body(b, x):
        conv = b.emit(relax.op.nn.conv2d(x, relax.const(random(4, 2, 1, 1))))
        return b.emit(relax.Tuple([norm(b, conv, 4), conv]))

    check(run, build((1, 2, 3, 3), body, dataflow=False), (1, 2, 3, 3), ["nn.conv2d", "multiply", "add"])


def test_a_bias_that_varies_within_a_channel_stays(run):
    def body(b, x):
        conv = b.emit(relax.op.nn.conv2d(x, relax.const(random(4, 2, 1, 1))))
        return norm(b, b.emit(relax.op.add(conv, relax.const(random(4, 3, 3)))), 4)

    check(run, build((1, 2, 3, 3), body), (1, 2, 3, 3), ["nn.conv2d", "add", "multiply", "add"])


def test_without_centre_and_scale(run):
    mod = build((1, 3, 2, 2), lambda b, x: norm(b, x, 3, center=False, scale=False))
    folded = FoldBatchNorm()(mod)
    x, mean, variance = random(1, 3, 2, 2), random(3, seed=2), np.abs(random(3, seed=3)) + np.float32(0.5)
    expected = (x - mean[:, None, None]) / np.sqrt(variance + 1e-5)[:, None, None]
    np.testing.assert_allclose(run(folded, x), expected, rtol=1e-5, atol=1e-6)


def test_the_statistics_come_out_as_they_went_in(run):
    mod = build((1, 3, 2, 2), lambda b, x: norm(b, x, 3, output=1))
    np.testing.assert_array_equal(run(FoldBatchNorm()(mod), random(1, 3, 2, 2)), random(3, seed=2))


def test_training_and_computed_statistics_stay():
    training = build((1, 3, 2, 2), lambda b, x: norm(b, x, 3, training=True))
    assert FoldBatchNorm()(training).same_as(training)

    def body(b, x):
        mean = b.emit(relax.op.mean(x, axis=[0, 2, 3]))
        args = [relax.const(random(3)), relax.const(random(3)), mean, relax.const(np.ones(3, "float32"))]
        return b.emit(relax.TupleGetItem(b.emit(relax.op.nn.batch_norm(x, *args, axis=1, training=False)), 0))

    computed = build((1, 3, 2, 2), body)
    assert op_names(FoldBatchNorm()(computed)) == ["mean", "nn.batch_norm"]


def test_weights_that_would_overflow_stay():
    def body(b, x):
        big = relax.const(np.full(3, 3e38, "float32"))
        args = [big, big, relax.const(np.zeros(3, "float32")), relax.const(np.full(3, 1e-30, "float32"))]
        return b.emit(
            relax.TupleGetItem(b.emit(relax.op.nn.batch_norm(x, *args, axis=1, epsilon=0.0, training=False)), 0)
        )

    assert "nn.batch_norm" in op_names(FoldBatchNorm()(build((1, 3, 2, 2), body)))


@pytest.mark.parametrize("again", ["item", "tuple"])
def test_a_result_that_is_read_twice_does_not_scale_the_weights_twice(run, again):
    def body(b, x):
        conv = b.emit(relax.op.nn.conv2d(x, relax.const(random(4, 2, 1, 1))))
        first = norm(b, conv, 4)
        whole = b.lookup_binding(first).tuple_value
        other = b.emit(relax.TupleGetItem(whole, 0)) if again == "item" else whole
        return b.emit(relax.Tuple([first, other]))

    mod = build((1, 2, 3, 3), body, dataflow=False)
    x = random(1, 2, 3, 3)
    left, right = run(FoldBatchNorm()(mod), x), run(relax.transform.DecomposeOpsForInference()(mod), x)
    np.testing.assert_allclose(left[0], right[0], rtol=2e-5, atol=2e-5)
    second = (left[1], right[1]) if again == "item" else (left[1][0], right[1][0])
    np.testing.assert_allclose(*second, rtol=2e-5, atol=2e-5)


def test_two_in_a_row_after_a_bias(run):
    def body(b, x):
        conv = b.emit(relax.op.nn.conv2d(x, relax.const(random(4, 2, 1, 1))))
        return norm(b, norm(b, b.emit(relax.op.add(conv, bias(4, 1, 1))), 4), 4)

    check(run, build((1, 2, 3, 3), body), (1, 2, 3, 3), ["nn.conv2d", "add"])
