"""ONNX Runtime's `IOBinding` and `OrtValue`."""

import numpy as np
import onnx
import onnxruntime
import pytest

import tvm_rammer
import tvm_rammer.onnxruntime
from tests.two_inputs import two_inputs
from tvm_rammer.errors import ModelError
from tvm_rammer.onnxruntime import InferenceSession

from .feeds import close, feed, values


def test_a_binding_of_arrays(either, session):
    binding = either.io_binding()
    for name, array in feed().items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("z")
    binding.bind_output("y")
    for _ in range(2):
        either.run_with_iobinding(binding)
        for got, name in zip(binding.copy_outputs_to_cpu(), ("z", "y"), strict=True):
            close(got, values(session)[name])


def test_a_binding_of_addresses(either, session):
    """What is there at the time of a run is read, and results are written there."""
    binding, given, z = either.io_binding(), feed(), np.zeros((2, 32), "float32")
    for name, array in given.items():
        binding.bind_input(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    binding.bind_output("z", "cpu", 0, np.float32, z.shape, z.ctypes.data)
    either.run_with_iobinding(binding)
    close(z, values(session)["z"])
    given["x"] *= 2
    either.run_with_iobinding(binding)
    close(z, 2 * values(session)["z"])
    other = np.ones_like(z)
    binding.clear_binding_outputs()
    binding.bind_output("y", "cpu", 0, np.float32, other.shape, other.ctypes.data)
    either.run_with_iobinding(binding)
    close(other, np.maximum(z + given["b"], 0))
    close(binding.copy_outputs_to_cpu()[0], other)


def test_a_binding_of_shapes_that_vary(session):
    batches = InferenceSession(two_inputs("batch"))
    binding = batches.io_binding()
    for batch in (2, 3):
        for name, array in feed(batch).items():
            binding.bind_cpu_input(name, array)
        binding.bind_output("z")
        batches.run_with_iobinding(binding)
        (z,) = binding.copy_outputs_to_cpu()
        assert z.shape == (batch, 32)


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (lambda b: b.bind_cpu_input("q", np.zeros(2)), "no input 'q'"),
        (lambda b: b.bind_output("q"), "no output 'q'; its outputs are y, z"),
        (lambda b: b.bind_output("y", "cuda", 0), "'y' is bound to the device 'cuda'"),
        (lambda b: b.bind_output("y", buffer_ptr=64), "'y' is bound to an address without its type and shape"),
        (lambda b: b.bind_output("y", "cpu", 0, np.float32, (2, -1), 64), "an extent of 'y' is -1"),
        (lambda b: b.bind_output("y", "cpu", 0, np.float32, 4, 64), "the shape of 'y' is 4; give a list"),
        (lambda b: b.bind_output("y", "cpu", 0, "floats", (2,), 64), "'y' is bound as 'floats'"),
        (lambda b: b.bind_output("y", "cpu", 0, np.float32, (2,), 0), "buffer_ptr is 0"),
        (lambda b: b.copy_outputs_to_cpu(), "has not run"),
    ],
)
def test_what_cannot_be_bound(session, bound, message):
    binding = session.io_binding()
    with pytest.raises(ModelError, match=message):
        bound(binding)
        session.run_with_iobinding(binding)


def test_what_is_no_binding_is_refused(session):
    with pytest.raises(ModelError, match="is no binding"):
        session.run_with_iobinding({})


@pytest.mark.parametrize("theirs", [onnxruntime, tvm_rammer.onnxruntime])
def test_values_of_either_package_are_taken(theirs, session):
    values = {name: theirs.OrtValue.ortvalue_from_numpy(array) for name, array in feed().items()}
    z = theirs.OrtValue.ortvalue_from_shape_and_type([2, 32], np.float32, "cpu", 0)
    assert (z.shape(), z.data_type(), z.device_name(), z.has_value()) == ([2, 32], "tensor(float)", "cpu", True)
    wanted = session.run(None, feed())
    for got, want in zip(session.run_with_ort_values(["y", "z"], values), wanted, strict=True):
        np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(session.run(["z"], values)[0], wanted[1])
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("z", z)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(z.numpy(), wanted[1])
    first, second = binding.get_outputs()
    np.testing.assert_array_equal(second.numpy(), wanted[0])
    values["x"].update_inplace(2 * feed()["x"])
    session.run_with_iobinding(binding)
    close(first.numpy(), 2 * wanted[1])
    np.testing.assert_array_equal(second.numpy(), wanted[0])  # of the run before: nobody said where it goes


def test_what_is_no_value(session):
    value = tvm_rammer.onnxruntime.OrtValue(np.zeros(3, "float32"))
    with pytest.raises(ModelError, match="give an array of that type and shape"):
        value.update_inplace(np.zeros(3))
    with pytest.raises(ModelError, match="made of a NumPy array, and this is a list"):
        tvm_rammer.onnxruntime.OrtValue.ortvalue_from_numpy([1.0])
    with pytest.raises(ModelError, match="'x' is bound to a ndarray; give an OrtValue"):
        session.io_binding().bind_ortvalue_input("x", np.zeros(3))


def test_a_binding_takes_types_of_onnx_by_their_numbers(session):
    binding, given, z = session.io_binding(), feed(), np.zeros((2, 32), "float32")
    for name, array in given.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("z", "cpu", 0, onnx.TensorProto.FLOAT, z.shape, z.ctypes.data)
    session.run_with_iobinding(binding)
    close(z, values(session)["z"])
