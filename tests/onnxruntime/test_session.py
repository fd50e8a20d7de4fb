"""Code that was written for ONNX Runtime's `InferenceSession`."""

import pickle

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from tvm import relax

import tvm_rammer
import tvm_rammer.onnxruntime
from tests.functions import relax_module
from tests.two_inputs import two_inputs
from tvm_rammer.errors import ModelError, ShapeError
from tvm_rammer.onnxruntime import InferenceSession, ModelMetadata
from tvm_rammer.open_shapes.module import MOST_SHAPES

from .feeds import close, feed


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


def test_a_size_without_a_name_has_none():
    model = two_inputs("batch")
    model.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
    ours, theirs = InferenceSession(model), onnxruntime.InferenceSession(model.SerializeToString())
    assert [a.shape for a in ours.get_inputs()] == [a.shape for a in theirs.get_inputs()]
    assert ours.get_inputs()[0].shape[0] is None


def test_sizes_that_only_the_data_say_are_those_of_the_file():
    """Names and numbers that it declares; of an output of no shape, and of what was saved, nobody knows them."""
    nodes = [helper.make_node("NonZero", ["x"], ["places"]), helper.make_node("Relu", ["x"], ["y"])]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy"]
    where = helper.make_tensor_value_info("places", onnx.TensorProto.INT64, [2, "count"])
    graph = helper.make_graph(nodes, "places", ends[:1], [where, ends[1]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ours, theirs = InferenceSession(model), onnxruntime.InferenceSession(model.SerializeToString())
    assert [a.shape for a in ours.get_outputs()] == [a.shape for a in theirs.get_outputs()] == [[2, "count"], [2, 3]]


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


def with_metadata(batch=2):
    model = two_inputs(batch)
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


@pytest.mark.parametrize("batch", [2, "n"])
def test_a_saved_model_keeps_what_the_file_says_of_itself(batch, tmp_path):
    compiled = InferenceSession(with_metadata(batch))
    compiled.run(None, feed())
    saved = InferenceSession(compiled.modules[0].save(tmp_path / "model.rammer"))
    assert saved.get_modelmeta() == compiled.get_modelmeta()


def test_a_saved_model_that_was_no_onnx_file_has_no_metadata(tmp_path):
    path = tvm_rammer.compile(relax_module([(3,)], lambda x: relax.op.nn.relu(x))).save(tmp_path / "model.rammer")
    with pytest.raises(ModelError, match=r"model\.rammer' has no metadata: it was not compiled from one ONNX model"):
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
