"""Chains of transcendental functions compile in a time that grows as they do, and are right."""

import math

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tvm_rammer.device import host_cpu
from tvm_rammer.relay_passes import partition, prepare
from tvm_rammer.relay_passes.passes.bound_chains import MAX_NESTED

TARGET = tvm.target.Target(host_cpu().target_config())
OPERATORS = {
    "exp of minus": (lambda x: relax.op.exp(relax.op.negative(x)), lambda x: np.exp(-x)),
    "tanh": (relax.op.tanh, lambda x: np.tanh(x)),
    "sigmoid": (relax.op.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "erf": (relax.op.erf, np.vectorize(math.erf)),
}


def chain(op, length):
    def body(x):
        for _ in range(length):
            x = op(x)
        return x

    return relax_module([(3, 20)], body)


def operators(length):
    (region,) = partition(prepare(TARGET)(chain(relax.op.tanh, length))).regions
    return len(region.graph.operators)


@pytest.mark.parametrize("length", [1, 2, 3, 6, 32])
def test_chains_are_cut_into_kernels_of_few(length):
    assert length / MAX_NESTED <= operators(length) <= -(-2 * length // (MAX_NESTED + 1))


@pytest.mark.parametrize(
    ("name", "length"),
    [("tanh", 6), ("tanh", 32), ("sigmoid", 6), ("sigmoid", 32), ("erf", 6), ("erf", 32), ("exp of minus", 6)],
)
def test_long_chains_are_right(name, length):
    op, reference = OPERATORS[name]
    x = np.random.default_rng(0).standard_normal((3, 20)).astype("float32")
    expected = x.astype("float64")
    for _ in range(length):
        expected = reference(expected)
    np.testing.assert_allclose(tvm_rammer.compile(chain(op, length))(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [12, 40])
def test_what_is_read_twice_is_not_there_any_number_of_times(length):
    def body(x):
        for _ in range(length):
            x = relax.op.multiply(x, x)
        return x

    x = np.full((3, 20), 1.0 + 2.0**-12, "float32")
    got = tvm_rammer.compile(relax_module([(3, 20)], body))(x)
    expected = x
    with np.errstate(over="ignore"):
        for _ in range(length):
            expected = expected * expected
    np.testing.assert_array_equal(got, expected)


ZERO, HALF = relax.const(0.0, "float32"), relax.const(0.5, "float32")
READ_OFTEN = {
    "leakyrelu": (relax.op.nn.leakyrelu, lambda x: np.where(x > 0, x, 0.01 * x)),
    "square": (lambda x: relax.op.square(relax.op.cos(x)), lambda x: np.cos(x) ** 2),
    "sign": (relax.op.sign, np.sign),
    "where": (lambda x: relax.op.where(relax.op.greater(x, ZERO), x, relax.op.negative(x)), np.abs),
    "atanh": (lambda x: relax.op.atanh(relax.op.multiply(x, HALF)), lambda x: np.arctanh(x / 2)),
    "tan": (lambda x: relax.op.tan(relax.op.multiply(x, HALF)), lambda x: np.tan(x / 2)),
}


@pytest.mark.parametrize("name", READ_OFTEN)
def test_what_an_operator_reads_often_does_not_multiply(name):
    op, reference = READ_OFTEN[name]
    x = np.random.default_rng(0).uniform(-1.5, 1.5, (3, 20)).astype("float32")
    expected = x.astype("float64")
    for _ in range(40):
        expected = reference(expected)
    np.testing.assert_allclose(tvm_rammer.compile(chain(op, 40))(x), expected, rtol=1e-4, atol=1e-6)


def test_the_cell_of_an_lstm_stays_one_kernel():
    def cell(i, f, g, c):
        new = relax.op.add(
            relax.op.multiply(relax.op.sigmoid(f), c), relax.op.multiply(relax.op.sigmoid(i), relax.op.tanh(g))
        )
        return relax.op.tanh(new)

    (region,) = partition(prepare(TARGET)(relax_module([(1, 64)] * 4, cell))).regions
    assert len(region.graph.operators) == 1
