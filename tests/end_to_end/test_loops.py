"""Recurrent layers and loops that stay loops, through the whole compiler, against ONNX Runtime and in float64."""

import importlib
import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.marks import one_in
from tests.persistent_codegen.regions import planned_loop
from tests.relay_passes.models import by_onnxruntime, model, node, random, tensor, value
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.persistent_codegen.reference import interpret
from tvm_rammer.persistent_codegen.reference_rtasks import compile_rtasks
from tvm_rammer.report_page.page import report_html
from tvm_rammer.runtime.profiler import profile
from tvm_rammer.zoo.onnx_lstm import onnx_lstm

T, B, I = 11, 2, 3  # noqa: E741 (as ONNX names them)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
KINDS = pytest.mark.parametrize("kind", one_in(3, ["LSTM", "GRU", "RNN"]))


def layer(kind, direction="forward", hidden=16, inputs=("x", "w", "r", "b"), given=(), more=(), steps=T, **attributes):
    """A model of one layer with all of its results."""
    directions, rows = 2 if direction == "bidirectional" else 1, GATES[kind] * hidden
    weights = [
        tensor("w", random(directions, rows, I, seed=1)),
        tensor("r", random(directions, rows, hidden, seed=2) / hidden**0.5),
        tensor("b", random(directions, 2 * rows, seed=3)),
    ]
    outputs = ["y", "y_h", "y_c"] if kind == "LSTM" else ["y", "y_h"]
    only = node(kind, list(inputs), outputs, name="it", hidden_size=hidden, direction=direction, **attributes)
    return model([only], [value("x", [steps, B, I]), *given], outputs, [*weights, *more])


def compiled(proto, threads=2):
    """The module of a model that has loops, none of which was unrolled."""
    module = tvm_rammer.compile(proto, threads=threads, cache=False)
    assert [program.steps for program in module.compilation.programs if program.steps > 1]
    return module


def agree(proto, threads=2, **inputs):
    module = compiled(proto, threads)
    for got, want in zip(results(module, inputs), by_onnxruntime(proto, **inputs), strict=True):
        assert relative_error(got, want) <= 1e-5
    return module


def results(module, inputs):
    found = module(**inputs)
    return list(found) if isinstance(found, list | tuple) else [found]


@KINDS
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(kind, direction):
    agree(layer(kind, direction), x=random(T, B, I))


@KINDS
@pytest.mark.parametrize("hidden", [1, 7, 24, 100])
def test_hidden_sizes(kind, hidden):
    agree(layer(kind, hidden=hidden), x=random(T, B, I))


@KINDS
def test_states_at_the_beginning(kind):
    names = ["h0", "c0"][: 1 + (kind == "LSTM")]
    given = [value(n, [2, B, 16]) for n in names]
    proto = layer(kind, "bidirectional", inputs=["x", "w", "r", "b", "", *names], given=given)
    agree(proto, x=random(T, B, I), **{n: random(2, B, 16, seed=i) for i, n in enumerate(names, 7)})


@KINDS
def test_sequences_of_several_lengths(kind):
    given = [value("lengths", [B], TensorProto.INT32)]
    proto = layer(kind, "bidirectional", inputs=["x", "w", "r", "b", "lengths"], given=given)
    agree(proto, x=random(T, B, I), lengths=np.array([4, T], "int32"))


def test_peepholes_and_clipped_sums():
    names = ["x", "w", "r", "b", "", "", "", "p"]
    peephole = tensor("p", random(2, 3 * 16, seed=4))
    agree(layer("LSTM", "bidirectional", inputs=names, more=[peephole], clip=0.3), x=random(T, B, I))


@pytest.mark.parametrize("attributes", [{"linear_before_reset": 1}, {"activations": ["HardSigmoid", "Softsign"]}])
def test_forms_of_gru(attributes):
    agree(layer("GRU", **attributes), x=random(T, B, I))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_layers_stand_on_each_other(threads):
    agree(onnx_lstm(3, T, 32), threads, x=random(T, 1, 32))


def step(inputs, nodes, outputs, tensors=()):
    """The body of a Scan or a Loop."""
    return helper.make_graph(nodes, "step", inputs, outputs, list(tensors))


def scan_model(body, states, arrays, outputs, tensors=(), **attributes):
    names = [v.name for v in (*states, *arrays)]
    only = node("Scan", names, outputs, body=body, num_scan_inputs=len(arrays), **attributes)
    return model([only], [*states, *arrays], outputs, list(tensors))


def test_a_scan_reads_what_is_around_it():
    body = step(
        [value("before", [4]), value("x", [4])],
        [node("Mul", ["before", "factor"], ["faded"]), node("Add", ["faded", "x"], ["after"])],
        [value("after", [4])],
    )
    proto = scan_model(body, [value("start", [4])], [value("xs", [T, 4])], ["last"], [tensor("factor", random(4))])
    agree(proto, start=random(4, seed=1), xs=random(T, 4, seed=2))


def test_a_scan_backward_along_other_axes():
    body = step(
        [value("before", [4]), value("x", [4])],
        [node("Add", ["before", "x"], ["after"]), node("Tanh", ["after"], ["y"])],
        [value("after", [4]), value("y", [4])],
    )
    proto = scan_model(
        body, [value("start", [4])], [value("xs", [4, T])], ["last", "ys"],
        scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[1], scan_output_directions=[1],
    )  # fmt: skip
    agree(proto, start=random(4, seed=1), xs=random(4, T, seed=2))


def test_states_that_change_places_between_steps():
    """What a step hands on as it is given, it copies."""
    body = step(
        [value("a", [4]), value("b", [4])],
        [node("Identity", ["b"], ["a1"]), node("Add", ["a", "b"], ["b1"])],
        [value("a1", [4]), value("b1", [4])],
    )
    body.input.append(value("x", [1]))
    proto = scan_model(body, [value("p", [4]), value("q", [4])], [value("xs", [T, 1])], ["r", "s"])
    module = tvm_rammer.compile(proto, cache=False)
    assert [program.steps for program in module.compilation.programs if program.steps > 1] == [T]
    inputs = {"p": random(4), "q": random(4, seed=1), "xs": random(T, 1)}
    for got, want in zip(results(module, inputs), by_onnxruntime(proto, **inputs), strict=True):
        assert relative_error(got, want) <= 1e-5


def counting():
    """A loop whose steps are different, and which one vEU does alone."""
    body = step(
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("before", [3])],
        [
            node("Cast", ["i"], ["number"], to=TensorProto.FLOAT),
            node("Add", ["before", "number"], ["after"]),
            node("Mul", ["after", "before"], ["y"]),
            node("Identity", ["go"], ["on"]),
        ],
        [value("on", [], TensorProto.BOOL), value("after", [3]), value("y", [3])],
    )
    trips, true = tensor("trips", np.array(T, "int64")), tensor("true", np.array(True))
    only = node("Loop", ["trips", "true", "start"], ["last", "ys"], body=body)
    return model([only], [value("start", [3])], ["last", "ys"], [trips, true])


def test_a_loop_counts():
    agree(counting(), start=random(3))


@pytest.mark.parametrize("busy", [0, 1])
def test_a_lane_without_rows_does_nothing(monkeypatch, busy):
    """Wherever it is: behind the last row, too."""

    def one_is_busy(plan, veus, *prices):
        (program,) = plan(1)
        (lane,) = program.lanes
        return (replace(program, lanes=tuple(lane if veu == busy else () for veu in range(veus))),)

    monkeypatch.setattr(importlib.import_module("tvm_rammer.wavefront.schedule_loop"), "choose_veus", one_is_busy)
    start, proto = random(3), counting()
    module = agree(proto, threads=2, start=start)
    assert module.compilation.programs[0].lanes[busy]
    want = module(start=start)[1]
    assert all((module(start=start)[1] == want).all() for _ in range(100))
    (loop, _) = profile(proto, runs=2, threads=2).timelines
    assert {span.lane for span in loop.spans if span.kind == "run"} == {busy}


def in_float64(proto, **inputs):
    """The results of a model of one recurrent layer, computed in float64 by onnx's reference evaluator."""
    wide = onnx.ModelProto()
    wide.CopyFrom(proto)
    for weights in wide.graph.initializer:
        if weights.data_type == TensorProto.FLOAT:
            array = onnx.numpy_helper.to_array(weights).astype("float64")
            weights.CopyFrom(onnx.numpy_helper.from_array(array, weights.name))
    for end in (*wide.graph.input, *wide.graph.output):
        if end.type.tensor_type.elem_type == TensorProto.FLOAT:
            end.type.tensor_type.elem_type = TensorProto.DOUBLE
    evaluator = onnx.reference.ReferenceEvaluator(wide)
    given = {k: v.astype("float64") if v.dtype == np.float32 else v for k, v in inputs.items()}
    return evaluator.run(None, given)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_five_hundred_steps_are_as_near_to_float64_as_one(kind):
    proto, x = layer(kind, steps=500), random(500, B, I)
    for got, want in zip(results(compiled(proto), {"x": x}), in_float64(proto, x=x), strict=True):
        assert relative_error(got, want) <= 1e-5


def test_what_there_is_to_see_of_a_loop():
    """The text, the pictures and the profile speak of all steps."""
    proto = onnx_lstm(1, 20, 32)
    module = compiled(proto)
    (loop,) = [p for p in module.compilation.programs if p.steps > 1]
    assert "3 rOperators of each of 20 steps" in module.explain() and "which its own cache keeps" in module.explain()
    runs = [e for e in json.loads(module.trace())["traceEvents"] if e.get("cat") == "run"]
    others = sum(len(p.graph.operators) for p in module.compilation.programs if p.steps == 1)
    assert len({e["name"] for e in runs}) == 20 * len(loop.graph.operators) + others
    found = profile(proto, runs=2, threads=1)
    ((program, timeline),) = [
        (p, t) for p, t in zip(found.compilation.programs, found.timelines, strict=True) if p.steps > 1
    ]
    assert sum(s.kind == "run" for s in timeline.spans) == 20 * len(program.graph.operators)
    assert found.text() and found.schedule_svg() and report_html(found.compilation, "lstm", profile=found)


@pytest.mark.parametrize("seed", range(3))
def test_the_reference_interpreter_agrees(seed):
    """In random orders, at the planned offsets of the workspace."""
    region = planned_loop(onnx_lstm(1, 9, 32), units=2)
    rtasks = compile_rtasks(region.kernels, region.device)
    packs = [kernel.packs for kernel in region.kernels]
    name = next(b.name for b in region.program.graph.buffers if b.kind == "input")
    x = random(9, 1, 128, seed=seed)
    results = [
        interpret(region.program, rtasks, region.constants | {name: x}, packs=packs, seed=order) for order in range(4)
    ]
    for result in results[1:]:
        for got, want in zip(result.values(), results[0].values(), strict=True):
            np.testing.assert_array_equal(got, want)
