"""Code that was written for ONNX Runtime's `InferenceSession`."""

import numpy as np
import onnxruntime
import pytest

import tvm_rammer
from tests.two_inputs import two_inputs
from tvm_rammer.errors import ModelError, ShapeError
from tvm_rammer.open_shapes.module import MOST_SHAPES
from tvm_rammer.session import InferenceSession


@pytest.fixture(scope="module")
def data():
    return two_inputs().SerializeToString()


@pytest.fixture(scope="module")
def session(data):
    return InferenceSession(data)


def feed(batch=2):
    rng = np.random.default_rng(1)
    return {n: rng.standard_normal((batch, size)).astype("float32") for n, size in (("x", 16), ("b", 32))}


@pytest.fixture(params=["ours", "onnxruntime"])
def either(request, session, data):
    """The tests of this fixture hold for ONNX Runtime as well."""
    return session if request.param == "ours" else onnxruntime.InferenceSession(data)


@pytest.mark.parametrize("names", [None, ["z"], ["z", "y"]])
def test_run_returns_what_was_asked_for(either, names, session):
    got = either.run(names, feed())
    assert isinstance(got, list)
    named = dict(zip(("y", "z"), session.run(None, feed()), strict=True))
    for a, name in zip(got, names or ["y", "z"], strict=True):
        np.testing.assert_allclose(a, named[name], rtol=1e-4, atol=1e-5)


def test_inputs_and_outputs(either):
    told = [(a.name, a.shape, a.type) for a in (*either.get_inputs(), *either.get_outputs())]
    wide = [2, 32]
    assert told == [(n, s, "tensor(float)") for n, s in (("x", [2, 16]), ("b", wide), ("y", wide), ("z", wide))]
    assert "CPUExecutionProvider" in either.get_providers()


def test_open_shapes_are_compiled_when_they_are_run():
    model = two_inputs("batch")
    ours, theirs = InferenceSession(model), onnxruntime.InferenceSession(model.SerializeToString())
    for told in ("get_inputs", "get_outputs"):
        assert [(a.name, a.shape, a.type) for a in getattr(ours, told)()] == [
            (a.name, a.shape, a.type) for a in getattr(theirs, told)()
        ]
    assert ours.modules == ()
    for batch in (1, 3, 1):
        for got, want in zip(ours.run(None, feed(batch)), theirs.run(None, feed(batch)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert [m.inputs[0].shape[0] for m in ours.modules] == [3, 1]
    with pytest.raises(ModelError, match="no value for the inputs b"):
        ours.run(None, {"x": feed()["x"]})
    assert len(ours.modules) <= MOST_SHAPES


def test_given_shapes_are_compiled_at_once():
    model = two_inputs("batch")
    session = InferenceSession(model, shapes={"batch": 2})
    assert len(session.modules) == 1
    assert session.get_inputs()[0].shape == [2, 16]
    with pytest.raises(ShapeError, match="'batch'"):
        InferenceSession(model, shapes={"batch": -1})


def test_a_saved_model_is_opened(session, tmp_path):
    path = session.modules[0].save(tmp_path / "model.rammer")
    for where in (path, str(path), session.modules[0].save(tmp_path / "model.so")):
        got = InferenceSession(where).run(None, feed())
        np.testing.assert_array_equal(got[0], session.run(None, feed())[0])
    with pytest.raises(ModelError, match="compiled already"):
        InferenceSession(path, shapes={"batch": 2})


def test_the_number_of_threads_is_heeded(data):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = InferenceSession(data, options, providers=["CPUExecutionProvider"])
    assert session.modules[0].report()["veus"] == 1


@pytest.mark.parametrize(
    "providers",
    [["CPUExecutionProvider"], ["CUDAExecutionProvider", "CPUExecutionProvider"], [("CPUExecutionProvider", {})]],
)
def test_providers_that_are_met(data, providers):
    assert InferenceSession(data, providers=providers, provider_options=None).get_providers() == [
        "CPUExecutionProvider"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"providers": ["CUDAExecutionProvider"]}, r"CUDAExecutionProvider.*target='cuda:h200'"),
        ({"providers": [("CPUExecutionProvider", {"arena": "1"})]}, "options of providers are not read"),
        ({"provider_options": [{"arena": "1"}]}, "options of providers are not read"),
        ({"providers": "CPUExecutionProvider"}, r"give a list, as in \['CPUExecutionProvider'\]"),
        ({"providers": [None]}, "None is no provider; give a name"),
        ({"sess_options": {"intra_op_num_threads": 1}}, r"give an onnxruntime\.SessionOptions"),
        ({"enable_profiling": True}, "see tvm_rammer.profile"),
        ({"optimized_model_filepath": "m.onnx"}, "no ONNX model is written"),
    ],
)
def test_what_is_not_done_is_refused(data, arguments, message):
    options = onnxruntime.SessionOptions()
    for name in ("enable_profiling", "optimized_model_filepath"):
        if name in arguments:
            setattr(options, name, arguments.pop(name))
    with pytest.raises(ModelError, match=message):
        InferenceSession(data, **({"sess_options": options} | arguments))


def test_what_is_no_model_is_an_error_of_ours(tmp_path):
    with pytest.raises(ModelError, match="no ONNX model"):
        InferenceSession(b"\xff\xffno model")
    with pytest.raises(ModelError, match="nowhere"):
        InferenceSession(tmp_path / "nowhere.onnx")
    with pytest.raises(ModelError, match="no input 'w'"):
        InferenceSession(two_inputs()).run(None, feed() | {"w": np.zeros(3)})


def test_the_name_is_there_at_top_level():
    assert tvm_rammer.InferenceSession is InferenceSession
    assert issubclass(tvm_rammer.SavedModelError, tvm_rammer.RammerError)
    assert "auto" in tvm_rammer.POLICIES
    assert tvm_rammer.PolicyOptions(seed=1).seed == 1


def values(session):
    """The results of a feed, by name."""
    return dict(zip(("y", "z"), session.run(None, feed()), strict=True))


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


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
