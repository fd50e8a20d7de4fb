"""Loops of as many steps as the data say, on an emulated GPU: runs of different lengths, one after another."""

import importlib
import re

import numpy as np
import pytest
from onnx import TensorProto

from tests.emulation.emulate import EmulationError
from tests.emulation.programs import plan
from tests.end_to_end.test_counted_loops import loop_of
from tests.end_to_end.test_loops import B, I, layer, scan_model, step
from tests.marks import needs_nvcc, one_in
from tests.persistent_codegen.cuda.ptx import compile_ptx
from tests.persistent_codegen.regions import planned_loop
from tests.relay_passes.models import by_onnxruntime, model, node, random, tensor, value
from tvm_rammer.ir import Length
from tvm_rammer.persistent_codegen.cuda.state import FINISHED, STEPS
from tvm_rammer.persistent_codegen.reference import interpret
from tvm_rammer.persistent_codegen.reference_rtasks import compile_rtasks
from tvm_rammer.relay_passes import load_model

BOOL, INT64, FLOAT = TensorProto.BOOL, TensorProto.INT64, TensorProto.FLOAT
WIDTH, MOST = 64, 20


def until(limit=12):
    """A recurrent cell, again and again until a counter that begins at an input has reached a limit."""
    nodes = [
        node("MatMul", ["h", "weights"], ["product"]),
        node("Tanh", ["product"], ["next"]),
        node("Add", ["time", "one"], ["time2"]),
        node("Less", ["time2", "end"], ["go_on"]),
    ]
    states = [("time", [], INT64, "time2"), ("h", [1, WIDTH], FLOAT, "next")]
    body = loop_of(nodes, states, constants=[tensor("one", np.array(1)), tensor("end", np.array(limit))])
    loop = node("Loop", ["", "true", "begin", "h0"], ["time_end", "h_end"], name="it", body=body)
    constants = [tensor("true", np.array(True)), tensor("weights", 0.2 * random(WIDTH, WIDTH, seed=7))]
    return model([loop], [value("h0", [1, WIDTH]), value("begin", [], INT64)], ["h_end"], constants)


def counted():
    """A scan backward, whose results are backward, too."""
    body = step(
        [value("before", [1, WIDTH]), value("x", [1, WIDTH])],
        [
            node("MatMul", ["before", "weights"], ["product"]),
            node("Add", ["product", "x"], ["sum"]),
            node("Tanh", ["sum"], ["after"]),
            node("Relu", ["after"], ["y"]),
        ],
        [value("after", [1, WIDTH]), value("y", [1, WIDTH])],
    )
    ends = [value("start", [1, WIDTH])], [value("xs", ["time", 1, WIDTH])], ["last", "ys"]
    weights = [tensor("weights", 0.2 * random(WIDTH, WIDTH, seed=7))]
    return scan_model(body, *ends, weights, scan_input_directions=[1], scan_output_directions=[1])


LEARNT = {"shapes": {"start": (1, WIDTH), "xs": (1, 1, WIDTH)}, "length": Length("time", MOST, 0, (None, 0))}


def planned(proto, veus, monkeypatch, **loaded):
    """The text of the one loop of a model with all vEUs, and a function that runs it by the reference interpreter."""
    scheduling = importlib.import_module("tvm_rammer.wavefront.schedule_loop")
    monkeypatch.setattr(scheduling, "choose_veus", lambda plan, most, cost, *_: plan(most))
    programs = plan(
        load_model(proto, loops=True, **loaded), veus, choose=lambda made: [max(made, key=lambda k: k.spec.num_rtasks)]
    )
    (built,) = [b for b in programs if b.program.steps > 1]
    region = planned_loop(proto, units=1, **loaded)
    rtasks, packs = compile_rtasks(region.kernels, region.device), [k.packs for k in region.kernels]
    return built, lambda inputs: interpret(region.program, rtasks, region.constants | inputs, packs=packs)


def agree(got, wanted):
    """What was written is as it should be; `wanted` is full of NaN, or of bytes of 255, where nothing is."""
    for name, array in wanted.items():
        written = array.reshape(-1).view(np.uint8).reshape(*array.shape, array.itemsize)
        written = (written != 255).any(-1)
        np.testing.assert_allclose(got[name][written], array[written], rtol=1e-5, atol=1e-5)


def inputs_of(built, number, seed):
    """Random inputs, and a number where integers are asked for."""
    buffers = [b for b in built.program.graph.buffers if b.kind == "input"]
    return {
        b.name: random(*b.shape, seed=seed) if b.dtype == "float32" else np.full(b.shape, number, b.dtype)
        for b in buffers
    }


@pytest.mark.parametrize("veus", one_in(2, [3, 1]))
def test_a_loop_ends_when_a_step_says_so(veus, monkeypatch):
    built, by_reference = planned(until(), veus, monkeypatch, data_loops=True)
    steps = 0
    for run, begin in enumerate((0, 40, 7, 11, 3)):  # counters go on from run to run
        inputs = inputs_of(built, begin, run)
        agree(built.run(inputs, seed=run), by_reference(inputs))
        steps += max(1, 12 - begin)
        assert list(built.state[[FINISHED, STEPS]]) == [(run + 1) * len(built.program.lanes), steps]


@pytest.mark.parametrize("veus", one_in(2, [3, 1]))
def test_a_loop_has_as_many_steps_as_an_input_says(veus, monkeypatch):
    built, by_reference = planned(counted(), veus, monkeypatch, **LEARNT)
    assert built.program.graph.trip_count is not None
    for run, length in enumerate((7, MOST, 1, 2, 13)):
        inputs = inputs_of(built, length, run)
        agree(built.run(inputs, seed=run), by_reference(inputs))


def test_what_is_said_is_kept_to_the_memory_that_there_is(monkeypatch):
    built, _ = planned(counted(), 2, monkeypatch, **LEARNT)
    steps = 0
    for run, (told, taken) in enumerate(((-3, 1), (2**31 - 1, built.program.steps), (0, 1), (2, 2))):
        built.run(inputs_of(built, told, run), seed=run)
        steps += taken
        assert built.state[STEPS] == steps


def test_a_model_of_any_length():
    """All its programs one after another: rows by sixteens, the recurrent layer, and its last state."""
    proto = layer("RNN", steps="time", hidden=16)
    shapes = {"x": (1, B, I)}
    programs = plan(load_model(proto, loops=True, shapes=shapes, length=Length("time", MOST, 0, (0,))), 3)
    assert [b.program.graph.trip_count is None for b in programs] == [False, False, False, True]
    for run, length in enumerate((MOST, 1, 17, 16)):
        x = random(length, B, I, seed=run)
        room = np.full((32, B, I), np.nan, "float32")
        room[:length] = x
        count = {"time_of_call": np.array([length], "int32")}
        (products,) = programs[0].run({"x": room} | count, seed=run).values()
        (states,) = programs[1].run({"lv": products} | count, seed=run).values()
        (rows,), (last,) = (b.run({"lv1": states} | count, seed=run).values() for b in programs[2:])
        wanted, wanted_last = by_onnxruntime(proto, x=x)
        np.testing.assert_allclose(rows[:length], wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(last, wanted_last, rtol=1e-4, atol=1e-5)


BEGIN, LENGTHS = (0, 40, 7), (7, MOST, 1)
DATA_LOOP = {"data_loops": True}
LAST = "before % (unsigned)blocks == (unsigned)blocks - 1"
WRONGS = [
    (until, DATA_LOOP, BEGIN, r"\bbreak;", ";"),
    (until, DATA_LOOP, BEGIN, r"= rammer_steps_before", "= 1 + rammer_steps_before"),
    (until, DATA_LOOP, BEGIN, re.escape(LAST), "before % (unsigned)blocks == 0"),
    (until, DATA_LOOP, BEGIN, r"__nv_atomic_store_n\(steps, done", "__nv_atomic_store_n(steps, done + 1"),
    (counted, LEARNT, LENGTHS, r"= rammer_steps_before", "= 1 + rammer_steps_before"),
    (counted, LEARNT, LENGTHS, re.escape(LAST), "false"),
    (counted, LEARNT, LENGTHS, r"__nv_atomic_store_n\(steps, done", "__nv_atomic_store_n(steps, done - 1"),
    (counted, LEARNT, LENGTHS, r"\((\d+) - run_steps\)", r"(\1 - run_steps + 1)"),
]


@pytest.mark.parametrize("wrong", range(len(WRONGS)))
def test_a_wrong_number_of_steps_is_found(wrong, monkeypatch):
    make, loaded, numbers, right, instead = WRONGS[wrong]
    built, by_reference = planned(make(), 3, monkeypatch, **loaded)
    source, places = re.subn(right, instead, built.source)
    assert places
    with pytest.raises((AssertionError, EmulationError)):
        for run, number in enumerate(numbers):
            inputs = inputs_of(built, number, run)
            agree(built.run(inputs, seed=run, source=source), by_reference(inputs))


@needs_nvcc
@pytest.mark.parametrize(
    ("make", "loaded", "relaxed"),
    [(until, DATA_LOOP, ["ld.relaxed.gpu.b32", "ld.relaxed.gpu.b32"]), (counted, LEARNT, ["ld.relaxed.gpu.b32"])],
)
def test_what_nvcc_makes_of_the_number_of_steps(make, loaded, relaxed, monkeypatch):
    """The last block has seen what all others have done; a condition is read where it was written."""
    built, _ = planned(make(), 3, monkeypatch, **loaded)
    kernel = compile_ptx(built.source, f"{built.program.name}_kernel", "sm_90")
    assert [i.split()[0] for i in kernel.matching(r"ld\.relaxed")] == relaxed
    assert [i.split()[0] for i in kernel.matching(r"st\.relaxed")] == ["st.relaxed.gpu.b32"]
    atomics = sorted(re.sub(r"^(atom|red)\.", "", i.split()[0]) for i in kernel.matching(r"(?:atom|red)\."))
    assert atomics == ["add.acq_rel.gpu.u64", "add.release.gpu.s32"]
    written = {"state", "workspace", *(f"segment{len(built.cuda.inputs) + i}" for i in range(len(built.cuda.outputs)))}
    assert not [i for i, origins in kernel.accesses(r"ld\.global\.nc") if not origins or origins & written]
