"""A model that several tests open."""

import onnxruntime
import pytest

from tests.two_inputs import two_inputs
from tvm_rammer.onnxruntime import InferenceSession


@pytest.fixture(scope="module")
def data():
    return two_inputs().SerializeToString()


@pytest.fixture(scope="module")
def session(data):
    return InferenceSession(data)


@pytest.fixture(params=["ours", "onnxruntime"])
def either(request, session, data):
    """The tests of this fixture hold for ONNX Runtime as well."""
    return session if request.param == "ours" else onnxruntime.InferenceSession(data)
