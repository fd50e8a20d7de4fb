"""Modules bound to arrays of the caller: right, and in place."""

import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_rammer
from tests.runtime.arrays import aligned, equal, product
from tests.runtime.test_contexts import in_child
from tvm_rammer.errors import ModelError, ShapeError, TargetError
from tvm_rammer.zoo.open_shapes.speech import speech
from tvm_rammer.zoo.streaming.voice_activity import voice_activity

STATES = {"h": "h_next", "c": "c_next"}
SMALL = {"samples": 64, "window": 32, "hidden": 16}


@pytest.fixture(scope="module")
def voice():
    return tvm_rammer.compile(voice_activity(**SMALL))


def frames(module, number):
    rng = np.random.default_rng(number)
    return rng.standard_normal((number, *module.inputs[0].shape)).astype("float32")


def called(module, sound):
    """The results of calls that pass the states on."""
    h, c = (np.zeros(spec.shape, spec.dtype) for spec in module.inputs[1:])
    found = []
    for x in sound:
        voice, h, c = module(x, h, c)
        found.append((voice, h, c))
    return found


def streamed(binding, sound):
    found = []
    for x in sound:
        binding.inputs["x"][:] = x
        results = binding()
        found.append(tuple(results[name].copy() for name in ("voice", "h_next", "c_next")))
    return found


def test_states_change_places_and_results_are_those_of_calls(voice):
    sound = frames(voice, 20)
    binding = voice.bind(states=STATES)
    first = binding.inputs["h"]
    assert equal(streamed(binding, sound[:1]), called(voice, sound[:1]))
    assert binding.inputs["h"] is binding.outputs["h_next"] is not first
    binding.inputs["h"][:] = 0
    binding.inputs["c"][:] = 0
    assert equal(streamed(binding, sound), called(voice, sound))


def test_arrays_of_the_caller_are_read_and_written_where_they_are(voice):
    x, h, out = aligned((1, 64)), aligned((1, 1, 16)), aligned((1, 1))
    binding = voice.bind({"x": x, "h": h}, {"voice": out})
    assert binding.inputs["x"] is x and binding.outputs["voice"] is out
    assert not binding._next.copied_in and not binding._next.copied_out
    x[:], h[:] = frames(voice, 1)[0], 0.5
    assert binding()["voice"] is out
    wanted = voice(x, h, binding.inputs["c"])
    np.testing.assert_array_equal(out, wanted[0])
    assert np.all(h == 0.5)


@pytest.mark.parametrize("kind", ["unaligned", "strided", "read-only", "turned"])
def test_other_arrays_are_copied(voice, kind):
    x = frames(voice, 1)[0]
    given = {
        "unaligned": lambda: aligned((1, 64), away=4),
        "strided": lambda: np.zeros((1, 128), "float32")[:, ::2],
        "read-only": lambda: x,
        "turned": lambda: np.zeros((64, 1), "float32").T,
    }[kind]()
    if kind == "read-only":
        x.flags.writeable = False
    outputs = {
        "unaligned": {"h_next": aligned((1, 1, 16), away=8)},
        "strided": {
            "h_next": np.zeros((1, 2, 16), "float32")[:, :1],
            "c_next": np.zeros((1, 1, 48), "float32")[..., ::3],
        },
    }.get(kind, {})
    binding = voice.bind({"x": given}, outputs)
    for scale in (1, 2):
        if kind != "read-only":
            given[:] = scale * x
        results = binding()
        zeros = np.zeros((1, 1, 16), "float32")
        assert equal([tuple(results.values())], [voice(given, zeros, zeros)])


def test_an_input_and_an_output_may_be_the_same_array(voice):
    sound = frames(voice, 10)
    h, c = aligned((1, 1, 16)), aligned((1, 1, 16))
    binding = voice.bind({"h": h, "c": c}, {"h_next": h, "c_next": c})
    assert equal(streamed(binding, sound), called(voice, sound))
    h[:], c[:] = 0, 0
    assert equal(
        streamed(voice.bind({"h": h, "c": c}, {"h_next": h, "c_next": c}, states=STATES), sound), called(voice, sound)
    )


def test_an_input_may_be_a_part_of_an_output(voice):
    """Of memory that one of them is shifted in, too, and which both turns of a state have to look at."""
    sound = frames(voice, 6)
    both, c = aligned((48,)), aligned((1, 1, 16))
    x, h, h_next = sound[0], both[:16].reshape(1, 1, 16), both[8:24].reshape(1, 1, 16)
    binding = voice.bind({"h": h, "c": c}, {"h_next": h_next})
    binding.inputs["x"][:] = x
    rng = np.random.default_rng(0)
    for _ in range(3):
        both[:] = rng.standard_normal(48)
        wanted = voice(x, h.copy(), c)
        assert equal([tuple(binding().values())], [wanted])


def branches():
    """y = x + 1 where x sums to more than 0, else x * 2."""
    one, two = (numpy_helper.from_array(np.float32(n), name) for n, name in ((1, "one"), (2, "two")))
    value = helper.make_tensor_value_info

    def branch(kind, constant):
        node = helper.make_node(kind, ["x", constant.name], ["inside"])
        return helper.make_graph([node], kind, [], [value("inside", TensorProto.FLOAT, [8])], [constant])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"]),
        helper.make_node("If", ["positive"], ["y"], then_branch=branch("Add", one), else_branch=branch("Mul", two)),
    ]
    zero = numpy_helper.from_array(np.float32(0), "zero")
    inputs, outputs = ([value(n, TensorProto.FLOAT, [8])] for n in "xy")
    graph = helper.make_graph(nodes, "branches", inputs, outputs, [zero])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_results_of_branches():
    binding = tvm_rammer.compile(branches()).bind()
    for number in (3.0, -3.0):
        binding.inputs["x"][:] = number
        np.testing.assert_array_equal(binding()["y"], np.full(8, number + 1 if number > 0 else number * 2, "float32"))


@pytest.mark.parametrize("steps", [1, 17])
def test_any_length(steps):
    module = tvm_rammer.compile(speech(), shapes={"x": (("time", 1, 40), 1, 12)})
    x = np.random.default_rng(0).standard_normal((steps, 1, 12)).astype("float32")
    binding = module.bind({"x": x})
    for _ in range(2):
        assert equal([tuple(binding().values())], [module(x)])
        x[:] *= 2
    with pytest.raises(ShapeError, match="'time' is not known"):
        module.prepare({"time": steps}).bind()


def test_shapes_that_vary_are_those_of_the_arrays():
    model = product()
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[1].dim_param = "columns"
    module = tvm_rammer.compile(model)
    for columns in (2, 3):
        arrays = {name: np.ones((64, columns), "float32") for name in ("x", "state")}
        assert equal([tuple(module.bind(arrays)().values())], [module(**arrays)])
    with pytest.raises(ShapeError, match="columns"):
        module.bind()


def test_a_saved_model(voice, tmp_path):
    loaded = tvm_rammer.load(voice.save(tmp_path / "voice.rammer"))
    sound = frames(voice, 5)
    assert equal(streamed(loaded.bind(states=STATES), sound), called(voice, sound))


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (lambda m: m.bind({"z": np.zeros(1)}), "no input 'z'; its inputs are x, h, c"),
        (lambda m: m.bind(outputs={"y": np.zeros(1)}), "no output 'y'; its outputs are voice, h_next, c_next"),
        (lambda m: m.bind({"x": [1.0]}), "'x' is bound to a list"),
        (lambda m: m.bind({"x": np.zeros((1, 8), "float32")}), r"input 'x' is float32\[1, 8\]"),
        (lambda m: m.bind({"x": np.zeros((1, 64))}), r"input 'x' is float64\[1, 64\], but the model takes"),
        (lambda m: m.bind(outputs={"voice": np.zeros((1, 1))}), r"output 'voice' is float64\[1, 1\], but the .* makes"),
        (lambda m: m.bind(outputs={"voice": np.broadcast_to(np.float32(0), (1, 1))}), "'voice' cannot be written"),
        (lambda m: m.bind(outputs=dict.fromkeys(("h_next", "c_next"), aligned((1, 1, 16)))), "share memory"),
        (lambda m: m.bind(states={"h": "voice"}), r"the state 'h' is float32\[1, 1, 16\], and 'voice', its next"),
        (lambda m: m.bind(states={"h": "h_next", "c": "h_next"}), "one output for two"),
        (lambda m: m.bind(states={"h": "k"}), "no output 'k'"),
        (lambda m: m.bind(states="h"), "the states to bind are a str; give a mapping"),
        (lambda m: m.bind([np.zeros((1, 64), "float32")]), "the inputs to bind are a list; give a mapping"),
        (lambda m: m.bind({"x": np.zeros((1, 64), ">f4")}), "its bytes are in the other order"),
    ],
)  # fmt: skip
def test_what_cannot_be_bound(voice, bound, message):
    with pytest.raises(ModelError, match=message):
        bound(voice)


def test_outputs_may_be_parts_of_one_array(voice):
    both = np.zeros((1, 1, 32), "float32")
    voice.bind(outputs={"h_next": both[..., ::2], "c_next": both[..., 1::2]})()
    zeros = np.zeros((1, 1, 16), "float32")
    _, h, c = voice(np.zeros((1, 64), "float32"), zeros, zeros)
    assert equal([(both[..., ::2], both[..., 1::2])], [(h, c)])


def test_each_thread_has_a_binding_of_its_own(voice):
    sound = [frames(voice, 30 + n) for n in range(6)]
    wanted = [called(voice, s) for s in sound]
    wrong = []

    def work(n):
        binding = voice.bind(states=STATES)
        for _ in range(5):
            for name in STATES:
                binding.inputs[name][:] = 0
            wrong.extend([n] * (not equal(streamed(binding, sound[n]), wanted[n])))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_that_call_one_binding_take_turns(voice):
    """Each call is a step: after so many, from whatever thread, the state is that of as many steps."""
    x = frames(voice, 1)
    binding = voice.bind(states=STATES)
    binding.inputs["x"][:] = x[0]

    def work():
        for _ in range(50):
            binding()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(binding.outputs["h_next"], called(voice, [x[0]] * 200)[-1][1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child(voice):
    binding, sound = voice.bind(states=STATES), frames(voice, 4)
    wanted = called(voice, sound)
    streamed(binding, sound[:1])

    def work():
        return 0 if equal(streamed(binding, sound[1:]), wanted[1:]) else 1

    assert in_child(work) == 0
    assert equal(streamed(binding, sound[1:]), wanted[1:])


def test_an_index_outside_is_an_error_and_the_next_call_is_right():
    nodes = [helper.make_node("Gather", ["table", "n"], ["y"])]
    table = numpy_helper.from_array(np.arange(8, dtype="float32"), "table")
    graph = helper.make_graph(
        nodes, "table", [helper.make_tensor_value_info("n", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])], [table],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    binding = tvm_rammer.compile(model).bind()
    binding.inputs["n"][:] = 3, 99
    with pytest.raises(ModelError, match="outside of the 8"):
        binding()
    binding.inputs["n"][:] = 3, 7
    np.testing.assert_array_equal(binding()["y"], [3, 7])


def test_a_module_for_a_gpu_cannot_be_bound():
    module = tvm_rammer.compile(product(16), target="cuda:h200")
    with pytest.raises(TargetError, match="bound on a CPU only"):
        module.bind()


def test_the_model_of_the_guide_is_a_model():
    onnx.checker.check_model(voice_activity())
