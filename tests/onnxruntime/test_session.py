"""Code that was written for ONNX Runtime's `InferenceSession`."""

import pickle

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import tvm_rammer
import tvm_rammer.onnxruntime
from tests.two_inputs import two_inputs
from tvm_rammer.errors import ModelError, ShapeError
from tvm_rammer.onnxruntime import InferenceSession, ModelMetadata
from tvm_rammer.open_shapes.module import MOST_SHAPES


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
    [
        ["CPUExecutionProvider"],
        ["CUDAExecutionProvider", "CPUExecutionProvider"],
        [("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})],
        [("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"],
    ],
)
def test_providers_that_are_met(data, providers):
    """Options of providers have no meaning, for ONNX Runtime's processor neither."""
    session = InferenceSession(data, providers=providers, provider_options=[{"a": "b"} for _ in providers])
    session.set_providers(providers)
    assert session.get_providers() == list(session.get_provider_options()) == ["CPUExecutionProvider"]
    with pytest.raises(ModelError, match="CUDAExecutionProvider"):
        session.set_providers(["CUDAExecutionProvider"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"providers": ["CUDAExecutionProvider"]}, r"CUDAExecutionProvider.*target='cuda:h200'"),
        ({"provider_options": [{"arena": "1"}]}, "0 providers and options of 1"),
        ({"policies": "list"}, "takes no policies; it takes cache, "),
        ({"providers": "CPUExecutionProvider"}, r"give a list, as in \['CPUExecutionProvider'\]"),
        ({"providers": [None]}, "None is no provider; give a name"),
        ({"sess_options": {"intra_op_num_threads": 1}}, "give a SessionOptions"),
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


def with_metadata():
    model = two_inputs()
    model.producer_name, model.domain, model.doc_string, model.model_version = "us", "here", "of a test", 7
    model.graph.name, model.graph.doc_string = "sums", "a graph"
    helper.set_model_props(model, {"character": "a\nb", "k": "v"})
    return model


def test_what_the_file_says_of_itself(tmp_path):
    model = with_metadata()
    onnx.save(model, tmp_path / "model.onnx")
    told = onnxruntime.InferenceSession(model.SerializeToString()).get_modelmeta()
    for given in (model, model.SerializeToString(), tmp_path / "model.onnx"):
        found = InferenceSession(given).get_modelmeta()
        for name in ModelMetadata.__dataclass_fields__:
            assert getattr(found, name) == getattr(told, name), name


def test_a_saved_model_has_no_metadata(session, tmp_path):
    path = session.modules[0].save(tmp_path / "model.rammer")
    with pytest.raises(ModelError, match=r"model\.rammer' has no metadata"):
        InferenceSession(path).get_modelmeta()


def test_what_programs_ask_of_a_session_besides(either):
    assert either.get_session_options().intra_op_num_threads == 0
    assert either.get_overridable_initializers() == []
    assert either.end_profiling() == ""
    either.disable_fallback()
    either.enable_fallback()
    assert str(either.get_inputs()[0]) == "NodeArg(name='x', type='tensor(float)', shape=[2, 16])"


def test_arguments_without_a_meaning(data, session):
    other = InferenceSession(bytearray(data), disabled_optimizers=["none"], enable_fallback=1)
    close(other.run(None, feed())[0], session.run(None, feed())[0])


class Pickled(InferenceSession):
    """As a package that detects faces has it."""

    def __init__(self, path, **options):
        super().__init__(path, **options)
        self.path = path

    def __getstate__(self):
        return {"path": self.path}

    def __setstate__(self, state):
        self.__init__(state["path"])


def test_a_session_that_knows_its_file_may_be_pickled(tmp_path, session):
    onnx.save(two_inputs(), tmp_path / "model.onnx")
    again = pickle.loads(pickle.dumps(Pickled(str(tmp_path / "model.onnx"))))
    close(again.run(None, feed())[0], session.run(None, feed())[0])
    for what in (session, session.modules[0]):
        with pytest.raises(tvm_rammer.RammerError, match="cannot be pickled or copied; save"):
            pickle.dumps(what)


@pytest.mark.parametrize("theirs", [onnxruntime, tvm_rammer.onnxruntime])
def test_values(theirs, session):
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


def test_options_without_onnxruntime():
    ort = tvm_rammer.onnxruntime
    options = ort.SessionOptions()
    for name in dir(options):
        assert name.startswith("_") or name == "free_dimensions" or hasattr(onnxruntime.SessionOptions, name), name
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_free_dimension_override_by_name("batch", 2)
    session = ort.InferenceSession(two_inputs("batch"), sess_options=options, providers=ort.get_available_providers())
    assert session.get_inputs()[0].shape == [2, 16]
    assert session.modules[0].report()["veus"] == 1
    assert session.get_session_options() is options
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert [a.shape for a in map(np.asarray, session.run(None, feed(), ort.RunOptions()))] == [(2, 32)] * 2
    for refused, message in (
        (lambda: options.add_initializer("w", None), "the weight 'w' cannot be replaced"),
        (lambda: options.register_custom_ops_library("o.so"), "cannot be called here"),
        (lambda: options.get_session_config_entry("a"), "no entry 'a'; there are session"),
    ):
        with pytest.raises(ModelError, match=message):
            refused()
    with pytest.raises(AttributeError, match="no 'SparseTensor' of ONNX Runtime's interface; it has"):
        _ = ort.SparseTensor
