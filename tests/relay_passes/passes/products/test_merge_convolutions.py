"""Convolutions of one image in one."""

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

import tvm_rammer
from tvm_rammer.relay_passes.passes.products.merge_convolutions import MergeConvolutions
from tvm_rammer.zoo.models import MODELS

from ...models import calls, op_names, random
from ..test_fold_batchnorm import build

SHAPE = (1, 6, 8, 8)


def branch(b, x, filters, *, kernel=1, bias=True, activation=op.nn.relu, seed=1, **options):
    """A convolution with constant weights, and what follows it."""
    value = b.emit(
        op.nn.conv2d(x, relax.const(random(filters, int(x.ty.shape[1]), kernel, kernel, seed=seed)), **options)
    )
    if bias:
        value = b.emit(op.add(value, relax.const(random(1, filters, 1, 1, seed=seed + 1))))
    return value if activation is None else b.emit(activation(value))


def convolutions(mod):
    """The filters of each convolution of a module."""
    return [int(call.ty.shape[1]) for call in calls(mod) if call.op.name.startswith("relax.nn.conv")]


def ended(b, *values, pool=op.nn.avg_pool2d):
    """Each value through a pool of its own, so that none is returned or concatenated itself."""
    return b.emit(op.concat([b.emit(pool(value)) for value in values], 1))


OPTIONS = {
    "bias and relu": {},
    "relu": {"bias": False},
    "bias": {"activation": None},
    "plain": {"bias": False, "activation": None},
    "silu": {"activation": op.nn.silu},
    "leaky relu": {"activation": lambda x: op.nn.leakyrelu(x, 0.2)},
    "stride 2": {"kernel": 3, "padding": 1, "strides": 2},
    "dilated": {"kernel": 3, "padding": (0, 1, 2, 3), "dilation": 2},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_branches_of_one_image_become_one(name, run):
    options = OPTIONS[name]
    mod = build(SHAPE, lambda b, x: ended(b, *(branch(b, x, n, seed=n, **options) for n in (4, 8, 12))))
    merged = MergeConvolutions()(mod)
    assert convolutions(mod) == [4, 8, 12] and convolutions(merged) == [24]
    assert op_names(merged).count("split") == 1
    x = random(*SHAPE)
    np.testing.assert_allclose(run(merged, x), run(mod, x), rtol=1e-5, atol=1e-6)


def test_rows_are_merged_too(run):
    def row(b, x, n):
        return b.emit(op.nn.conv1d(x, relax.const(random(n, 6, 3, seed=n)), padding=1))

    mod = build((1, 6, 16), lambda b, x: ended(b, row(b, x, 4), row(b, x, 8), pool=op.nn.avg_pool1d))
    merged = MergeConvolutions()(mod)
    assert convolutions(merged) == [12]
    x = random(1, 6, 16)
    np.testing.assert_allclose(run(merged, x), run(mod, x), rtol=1e-5, atol=1e-6)


def grouped(b, x, filters):
    """A convolution of two groups."""
    weight = random(filters, int(x.ty.shape[1]) // 2, 1, 1)
    return b.emit(op.nn.conv2d(x, relax.const(weight), groups=2))


def other_branches(b, x):
    """Pairs of which none can be computed by one call."""
    first = branch(b, x, 8)
    return ended(
        b, first, branch(b, x, 8, activation=None), branch(b, x, 8, bias=False), branch(b, x, 8, activation=op.tanh),
        branch(b, b.emit(op.exp(x)), 8), branch(b, x, 8, kernel=3, padding=1),
        branch(b, x, 8, kernel=3, padding=2, dilation=2), grouped(b, x, 8),
    )  # fmt: skip


def of_two_images(b, x):
    """Two branches of a batch of two."""
    return ended(b, branch(b, x, 4), branch(b, x, 8))


def concatenated(b, x):
    """Branches that end in a concatenation."""
    return b.emit(op.concat([branch(b, x, 4), branch(b, x, 8)], 1))


def returned(b, x):
    """Two branches, of which one is the result."""
    kept = branch(b, x, 8)
    branch(b, x, 4)
    return kept


def with_another_reader(b, x):
    """Branches whose convolutions are read before the bias, too."""
    plain = branch(b, x, 8, bias=False, activation=None)
    return ended(b, plain, b.emit(op.nn.relu(plain)), branch(b, x, 8, activation=None))


def activated(b, x):
    """Branches of which each is fused with what reads it."""
    values = [branch(b, x, n, activation=None) for n in (4, 8)]
    return ended(b, *(b.emit(op.multiply(value, b.emit(op.sigmoid(value)))) for value in values))


def of_slopes_that_differ(b, x):
    """Branches that end in leaky relus."""
    return ended(b, *(branch(b, x, 8, activation=lambda value, n=n: op.nn.leakyrelu(value, n / 9)) for n in (1, 2)))


def of_weights_from_elsewhere(b, x):
    """Weights that are computed."""
    weight = b.emit(op.reshape(x, (64, 6, 1, 1)))
    return ended(b, b.emit(op.nn.conv2d(x, weight)), b.emit(op.nn.conv2d(x, b.emit(op.exp(weight)))))


def of_odd_sizes(b, x):
    """Parts that would begin in the middle of a cache line."""
    return ended(b, branch(b, x, 5), branch(b, x, 7))


@pytest.mark.parametrize(
    ("shape", "body"),
    [
        (SHAPE, other_branches),
        ((2, 6, 8, 8), of_two_images),
        (SHAPE, concatenated),
        (SHAPE, returned),
        (SHAPE, with_another_reader),
        (SHAPE, activated),
        (SHAPE, of_slopes_that_differ),
        (SHAPE, of_weights_from_elsewhere),
        ((1, 6, 5, 5), of_odd_sizes),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_others_stay(shape, body):
    mod = build(shape, body)
    assert MergeConvolutions()(mod).same_as(mod)


def test_an_inception_module_begins_with_one_convolution_less_and_copies_nothing():
    facts = tvm_rammer.compile(MODELS["Inception module"](), cache=False).report()
    assert facts["roperators"] == 6
    assert facts["views"] == 2
