"""The model of two inputs, compiled once for each file of tests, its arrays, and what it has to return."""

import pytest

import tvm_rammer
from tests import two_inputs as given


@pytest.fixture(scope="module")
def module():
    return tvm_rammer.compile(given.two_inputs())


@pytest.fixture(scope="module")
def arrays():
    return given.arrays()


@pytest.fixture(scope="module")
def want(arrays):
    return given.results(*arrays)
