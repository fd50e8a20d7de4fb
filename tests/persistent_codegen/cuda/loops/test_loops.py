"""Loops on an emulated GPU: texts of recurrent layers, in random interleavings, against the reference interpreter."""

import importlib

import numpy as np
import pytest

import tvm_rammer
from tests.emulation.programs import plan
from tests.marks import one_in
from tests.persistent_codegen.regions import planned_loop
from tests.relay_passes.models import random
from tvm_rammer.compilation.unrolling import FEW_STEPS
from tvm_rammer.ir import Run, Wait
from tvm_rammer.persistent_codegen.reference import interpret
from tvm_rammer.persistent_codegen.reference_rtasks import compile_rtasks
from tvm_rammer.relay_passes import load_model
from tvm_rammer.wavefront.pipeline import pipeline_stages
from tvm_rammer.zoo.onnx_lstm import onnx_lstm

STEPS, HIDDEN = 9, 64


def by_reference(proto, inputs, **loaded):
    """What the loop of a model makes of its inputs, by the CPU's kernels."""
    region = planned_loop(proto, units=1, **loaded)
    rtasks, packs = compile_rtasks(region.kernels, region.device), [k.packs for k in region.kernels]
    return interpret(region.program, rtasks, region.constants | inputs, packs=packs)


@pytest.mark.parametrize("kind", one_in(2, ["LSTM", "GRU", "RNN"]))
@pytest.mark.parametrize(("veus", "both_ways"), one_in(2, [(3, False), (3, True), (1, False), (8, False)]))
def test_loops_compute_what_the_reference_does(kind, veus, both_ways, monkeypatch):
    # A step this short is worth a single vEU, and a single rTask.
    scheduling = importlib.import_module("tvm_rammer.wavefront.schedule_loop")
    monkeypatch.setattr(scheduling, "choose_veus", lambda plan, most, cost, *_: plan(most))
    proto = onnx_lstm(1, STEPS, HIDDEN, kind=kind, bidirectional=both_ways)
    programs = plan(
        load_model(proto, loops=True), veus, choose=lambda made: [max(made, key=lambda k: k.spec.num_rtasks)]
    )
    (built,) = [b for b in programs if b.program.steps > 1]
    assert any(isinstance(i, Wait) and i.back for _, _, i in built.program.instructions()) == (veus > 1)
    for run in range(3):  # counters go on from run to run
        inputs = {b.name: random(*b.shape, seed=run) for b in built.program.graph.buffers if b.kind == "input"}
        got = built.run(inputs, seed=run)
        for name, array in by_reference(proto, inputs).items():
            np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", one_in(2, ["LSTM", "GRU", "RNN"]))
def test_layers_that_are_one_loop_compute_what_the_reference_does(kind, monkeypatch):
    scheduling = importlib.import_module("tvm_rammer.wavefront.schedule_loop")
    monkeypatch.setattr(scheduling, "choose_veus", lambda plan, most, cost, *_: plan(most))
    proto = onnx_lstm(2, STEPS, HIDDEN, kind=kind)
    module = load_model(proto, loops=True, join=True)
    programs = plan(module, 8, choose=lambda made: [max(made, key=lambda k: k.spec.num_rtasks)])
    (built,) = [b for b in programs if b.program.steps > 1]
    stages = pipeline_stages(built.program.graph, built.program.graph.predecessors())
    of_lanes = [{stages[i.operator] for i in lane if isinstance(i, Run)} for lane in built.program.lanes]
    assert {0, 1} == set().union(*of_lanes) and all(len(of_lane) == 1 for of_lane in of_lanes)
    for run in range(3):
        inputs = {b.name: random(*b.shape, seed=run) for b in built.program.graph.buffers if b.kind == "input"}
        got = built.run(inputs, seed=run)
        for name, array in by_reference(proto, inputs, join=True).items():
            np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_layer_that_is_alone_is_a_loop():
    module = tvm_rammer.compile(onnx_lstm(1, 40, 128), target="cuda:h200", cache=False)
    assert [p.steps for p in module.compilation.programs if p.steps > 1] == [40]
    assert "weights that each vEU keeps in shared memory over all steps: " in module.explain()


@pytest.mark.slow
def test_stacked_layers_are_one_loop():
    module = tvm_rammer.compile(onnx_lstm(3, 10, 32), target="cuda:h200", cache=False)
    assert [p.steps for p in module.compilation.programs if p.steps > 1] == [10]


@pytest.mark.slow
def test_layers_that_go_both_ways_are_a_loop_each_and_unrolled_where_they_are_short():
    module = tvm_rammer.compile(onnx_lstm(2, FEW_STEPS // 2, 16, bidirectional=True), target="cuda:h200", cache=False)
    assert [p.steps for p in module.compilation.programs if p.steps > 1] == [FEW_STEPS // 2] * 2
    module = tvm_rammer.compile(onnx_lstm(2, 4, 16, bidirectional=True), target="cuda:h200", cache=False)
    assert not [p for p in module.compilation.programs if p.steps > 1]
