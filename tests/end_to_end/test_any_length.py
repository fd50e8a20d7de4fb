"""One compilation for all lengths of a sequence: results are those of the model of each length alone, bit by bit."""

import re

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tests.marks import one_in
from tests.persistent_codegen.regions import planned_loop
from tests.relay_passes.models import by_onnxruntime, model, node, random, tensor, value
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.ir import Length
from tvm_rammer.persistent_codegen.reference import interpret
from tvm_rammer.persistent_codegen.reference_rtasks import compile_rtasks
from tvm_rammer.runtime.length import LengthModule
from tvm_rammer.zoo.open_shapes.speech import speech

from .test_loops import B, I, layer, scan_model, step

MOST = 37


def opened(proto, name="time", cache=False, threads=2, **options):
    """A module whose one open dimension is bounded."""
    return tvm_rammer.compile(proto, shapes={name: (1, MOST)}, cache=cache, threads=threads, **options)


def alone(proto, length):
    """The module of one length."""
    return tvm_rammer.compile(proto, shapes={"time": length}, cache=False, threads=2)


def results(found):
    return list(found) if isinstance(found, list | tuple) else [found]


def serves(proto, feed, exact=(1, 20), lengths=(MOST, 2, 15, 16, 17, 33), known=by_onnxruntime):
    """Compile once; compare some lengths with the model of that length alone, others with ONNX Runtime."""
    module = opened(proto)
    for length in lengths if known else ():
        for got, want in zip(results(module(**feed(length))), known(proto, **feed(length)), strict=True):
            assert got.shape == want.shape and relative_error(got, want) <= 1e-5, length
    for length in exact:
        wanted = results(alone(proto, length)(**feed(length)))
        for got, want in zip(results(module(**feed(length))), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
    assert len(module.modules) == 1 and isinstance(module.modules[0], LengthModule)
    return module


@pytest.mark.parametrize("kind", one_in(3, ["LSTM", "GRU", "RNN"]))
@pytest.mark.parametrize("direction", one_in(3, ["bidirectional", "forward", "reverse"]))
def test_layers_with_their_last_states(kind, direction):
    serves(layer(kind, direction, steps="time"), lambda n: {"x": random(n, B, I)})


def test_a_speech_model():
    """Two layers in both directions, and what is computed of each row between and behind them."""
    module = serves(speech(), lambda n: {"x": random(n, 1, 12)}, exact=(1, 7, 8, 20, MOST))
    assert "This serves every 'time' from 1 to 37" in module.explain()
    assert "rOperators of each of at most 48 steps" in module.explain()


def test_states_and_lengths_of_a_batch():
    given = [value("lengths", [B], TensorProto.INT32), value("h0", [2, B, 16])]
    inputs = ["x", "w", "r", "b", "lengths", "h0"]
    proto = layer("GRU", "bidirectional", inputs=inputs, given=given, steps="time")

    def feed(n):
        return {"x": random(n, B, I), "lengths": np.array([n, (n + 1) // 2], "int32"), "h0": random(2, B, 16, seed=1)}

    serves(proto, feed, exact=(20,))


def test_a_batch_before_the_sequence():
    """ONNX Runtime has no such layers."""
    proto = layer("LSTM", "bidirectional", steps="time", layout=1)
    proto.graph.input[0].CopyFrom(value("x", [B, "time", I]))
    serves(proto, lambda n: {"x": random(B, n, I)}, known=None)


def test_a_scan_backward_along_another_axis():
    body = step(
        [value("before", [4]), value("x", [4])],
        [node("Add", ["before", "x"], ["after"]), node("Tanh", ["after"], ["y"])],
        [value("after", [4]), value("y", [4])],
    )
    proto = scan_model(
        body, [value("start", [4])], [value("xs", [4, "time"])], ["last", "ys"],
        scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[1], scan_output_directions=[1],
    )  # fmt: skip
    serves(proto, lambda n: {"start": random(4), "xs": random(4, n, seed=2)})


@pytest.mark.parametrize("backward", one_in(2, [0, 1]))
def test_products_in_the_steps_of_a_scan(backward):
    """They are ahead of the loop, and the gates in blocks, for any length as for one."""
    body = step(
        [value("before", [B, 16]), value("x", [B, I])],
        [
            node("Gemm", ["x", "wx", "bias"], ["from_x"], transB=1),
            node("Gemm", ["before", "wh"], ["from_before"]),
            node("Add", ["from_x", "from_before"], ["gates"]),
            node("Split", ["gates"], ["forget", "new"], axis=1),
            node("Sigmoid", ["forget"], ["on"]),
            node("Mul", ["on", "before"], ["kept"]),
            node("Tanh", ["new"], ["added"]),
            node("Add", ["kept", "added"], ["after"]),
            node("Relu", ["after"], ["y"]),
        ],
        [value("after", [B, 16]), value("y", [B, 16])],
    )
    weights = [tensor("wx", random(32, I)), tensor("wh", 0.2 * random(16, 32)), tensor("bias", random(32))]
    ends = [value("start", [B, 16])], [value("xs", ["time", B, I])], ["last", "ys"]
    directions = {"scan_input_directions": [backward], "scan_output_directions": [backward]}
    proto = scan_model(body, *ends, weights, **directions)
    serves(proto, lambda n: {"start": random(B, 16), "xs": random(n, B, I, seed=2)}, exact=(20, 33))


@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_the_reference_interpreter_counts_too(length):
    """In random orders, with memory that nobody has written: what is beyond the end stays so."""
    body = step(
        [value("before", [16]), value("x", [16])],
        [node("Add", ["before", "x"], ["after"]), node("Tanh", ["after"], ["y"])],
        [value("after", [16]), value("y", [16])],
    )
    ends = [value("start", [16])], [value("xs", ["time", 16])], ["last", "ys"]
    proto = scan_model(body, *ends, scan_input_directions=[1], scan_output_directions=[1])
    shapes, learnt = {"start": (16,), "xs": (1, 16)}, Length("time", 20, 0, (None, 0))
    region = planned_loop(proto, units=2, shapes=shapes, length=learnt)
    rtasks, start, xs = compile_rtasks(region.kernels, region.device), random(16), random(length, 16, seed=1)
    room = np.full((32, 16), np.nan, "float32")
    room[:length] = xs
    values = region.constants | {"start": start, "xs": room, "time_of_call": np.array([length], "int32")}
    last, ys = by_onnxruntime(proto, start=start, xs=xs)
    for order in range(3):
        found = interpret(region.program, rtasks, values, packs=[k.packs for k in region.kernels], seed=order)
        (ring,) = [array for array in found.values() if len(array) == 2]
        (rows,) = [array for array in found.values() if len(array) == 32]
        np.testing.assert_allclose(rows[:length], ys, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(ring[0], last, rtol=1e-5, atol=1e-6)
        assert np.isnan(rows[length:]).all()


def test_what_depends_on_the_last_state_and_on_each_row():
    """Rows of a batch on one axis with the sequence, and a state of the first loop that each row reads."""
    recurrent = layer("RNN", steps="time", hidden=8)
    nodes = [
        *recurrent.graph.node,
        node("Reshape", ["y", "rows"], ["flat"]),
        node("MatMul", ["flat", "q"], ["scores"]),
        node("ReduceMean", ["y_h"], ["mean"], axes=[0, 1], keepdims=0),
        node("Add", ["scores", "mean"], ["sum"]),
        node("Reshape", ["sum", "back"], ["batches"]),
        node("LogSoftmax", ["batches"], ["z"], axis=2),
    ]
    tensors = [tensor("rows", np.array([-1, 8])), tensor("back", np.array([-1, B, 8])), tensor("q", random(8, 8))]
    tensors += recurrent.graph.initializer
    serves(model(nodes, [*recurrent.graph.input], ["z", "y_h"], tensors), lambda n: {"x": random(n, B, I)}, exact=(3,))


def behind(*nodes, tensors=(), outputs=("z",)):
    """A recurrent layer, and something behind it."""
    proto = layer("RNN", steps="time", hidden=4)
    return model([*proto.graph.node, *nodes], [*proto.graph.input], list(outputs), [*proto.graph.initializer, *tensors])


REFUSED = {
    "Softmax 'z' works along the sequence": behind(node("Softmax", ["y"], ["z"], axis=0)),
    "ReduceMean 'z' works along the sequence": behind(node("ReduceMean", ["y"], ["z"], axes=[0])),
    "Slice 'z' works along the sequence": behind(
        node("Slice", ["y", "zero", "two"], ["z"]),
        tensors=[tensor("zero", np.array([0])), tensor("two", np.array([2]))],
    ),
    "Div .* is another operator|depends on the length": behind(
        node("Shape", ["y"], ["shape"]),
        node("Cast", ["shape"], ["sizes"], to=TensorProto.FLOAT),
        node("Gather", ["sizes", "first"], ["size"]),
        node("Div", ["y", "size"], ["z"]),
        tensors=[tensor("first", np.array(0))],
    ),
    "CumSum 'z' is no operator that goes row by row": behind(
        node("CumSum", ["y", "axis"], ["z"]), tensors=[tensor("axis", np.array(0))]
    ),
    "sequences of constant lengths": layer(
        "RNN", inputs=["x", "w", "r", "b", "n"], more=[tensor("n", np.array([5, 9], "int32"))], steps="time", hidden=4
    ),
    "no recurrent layer and no Scan": model([node("Relu", ["x"], ["z"])], [value("x", ["time", B, I])], ["z"]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_does_not_go_row_by_row_is_compiled_for_each_length(reason):
    proto = REFUSED[reason]
    module = opened(proto)
    for length in (9, 10):
        x = random(length, B, I)
        for got, want in zip(results(module(x)), by_onnxruntime(proto, x=x), strict=True):
            assert relative_error(got, want) <= 1e-5
    assert len(module.modules) == 2
    assert re.search(f"compiled by itself: .*({reason})", module.explain())


@pytest.mark.slow
def test_one_compilation_serves_a_gpu():
    proto = layer("RNN", steps="time", hidden=16)
    module = opened(proto, threads=None, target="cuda:h200")
    module.prepare({"time": 3})
    module.prepare({"time": MOST})
    (one,) = module.modules
    assert isinstance(one, LengthModule) and not one.compilation.stock_calls
    assert {program.graph.trip_count is None for program in one.compilation.programs} == {False, True}
    assert "This serves every 'time' from 1 to 37" in one.explain()
