"""Profiles of real runs."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.end_to_end.models import image
from tests.relay_passes.onnx.roll_up.cells import unrolled
from tvm_rammer.cli.main import main
from tvm_rammer.compilation.regions import plan_regions
from tvm_rammer.device import host_cpu
from tvm_rammer.errors import LoopError, ModelError, TargetError, ToolError
from tvm_rammer.runtime import profiler
from tvm_rammer.runtime.profiler import make_profile, profiled_cost
from tvm_rammer.wavefront import CostModel, simulate
from tvm_rammer.zoo.inception_module import inception_module
from tvm_rammer.zoo.light import light


def small_model():
    return inception_module(channels=4, size=6, widths=(3, 4, 5, 2, 3, 2))


@pytest.fixture(scope="module")
def found():
    return tvm_rammer.profile(light("squeezenet"), [image((1, 3, 224, 224))], runs=9)


@pytest.mark.slow
def test_every_kernel_that_ran_has_a_time(found):
    used = {k.name for program in found.compilation.programs for k in program.kernels}
    assert set(found.rtask_us) == used
    assert all(time > 0 for time in found.rtask_us.values())


def test_lanes_wait_and_run_one_after_another(found):
    for program, timeline in zip(found.compilation.programs, found.timelines, strict=True):
        assert len(timeline.by_lane()) == len(program.lanes)
        for lane in timeline.by_lane():
            assert all(span.start_us <= span.end_us for span in lane)
            assert all(a.end_us <= b.start_us for a, b in pairwise(lane))
        assert 0 < timeline.utilisation <= 1


def test_nobody_goes_on_before_the_signals_that_he_waits_for(found):
    for program, timeline in zip(found.compilation.programs, found.timelines, strict=True):
        waits = [span for span in timeline.spans if span.kind == "wait"]
        assert waits
        for span in waits:
            wait = program.lanes[span.lane][span.instruction]
            assert timeline.signals[wait.event][wait.arrivals - 1][0] <= span.end_us


def stamps_of(program, timeline):
    """What a run that takes as long as a timeline would have noted, in nanoseconds."""
    ends = []
    for lane, spans in zip(program.lanes, timeline.by_lane(), strict=True):
        ended = {span.instruction: span.end_us for span in spans}
        now = 0.0
        for instruction in range(len(lane)):
            now = ended.get(instruction, now)
            ends.append(now)
    return (1e3 * np.array([*ends, *[0.0] * len(program.lanes)])).astype("int64")


def test_the_simulation_of_measured_times_is_the_run(found):
    record = found.compilation
    kernels = [kernel for program in record.programs for kernel in program.kernels]
    factors = {kernel.name: 1.0 + number % 3 for number, kernel in enumerate(kernels)}
    slowed = replace(CostModel.of(record.device), factors=factors)
    runs = {program.name: simulate(program, slowed) for program in record.programs}
    stamps = [(program.name, stamps_of(program, runs[program.name])) for program in record.programs]
    measured = make_profile(record, stamps)
    for program, timeline in zip(record.programs, measured.timelines, strict=True):
        assert timeline.makespan_us == pytest.approx(runs[program.name].makespan_us, rel=0.01)
        assert simulate(program, measured.cost()).makespan_us == pytest.approx(timeline.makespan_us, rel=0.05)


def test_a_plan_that_takes_as_long_as_predicted_corrects_nothing(found):
    record = found.compilation
    prices = CostModel.of(record.device)
    predicted = profiled_cost(record, dict.fromkeys(found.rtask_us, 1.0)).factors
    same = profiled_cost(record, {name: 1.0 / predicted[name] for name in found.rtask_us})
    for program in record.programs:
        assert simulate(program, same).makespan_us == pytest.approx(simulate(program, prices).makespan_us)


def test_kernels_that_did_not_run_are_as_far_off_as_those_of_their_function(found):
    factors = found.cost().factors
    called = {op.function for program in found.compilation.programs for op in program.graph.operators}
    for made in (found.compilation.kernels[function] for function in called):
        ran = [factors[k.name] for k in made if k.name in found.rtask_us]
        others = [factors[k.name] for k in made if k.name not in found.rtask_us]
        assert others == [pytest.approx(sum(ran) / len(ran))] * len(others)


def test_text_and_pictures(found, tmp_path):
    assert "measured" in found.text() and found.schedule_svg().startswith("<svg")
    boxes = [e for e in json.loads(found.trace())["traceEvents"] if e["ph"] == "X" and e["cat"] == "run"]
    assert len(boxes) == sum(span.kind == "run" for timeline in found.timelines for span in timeline.spans)


def test_the_command(tmp_path, capsys):
    onnx.save(small_model(), tmp_path / "model.onnx")
    command = ["profile", str(tmp_path / "model.onnx"), "--runs", "2", "--trace", str(tmp_path / "trace.json")]
    assert main(command) == 0
    assert "us each" in capsys.readouterr().out
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("operator", "reason"),
    [("Identity", "its results are inputs or constants"), ("NonZero", "all is left to stock TVM")],
)
def test_a_model_without_rprograms_says_so(operator, reason):
    """An operator whose result has a size that only the data say is stock TVM's."""
    kind, shape = (TensorProto.FLOAT, [3]) if operator == "Identity" else (TensorProto.INT64, [1, "n"])
    x, y = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]), helper.make_tensor_value_info("y", kind, shape)
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "g", [x], [y])
    assert tvm_rammer.profile(helper.make_model(graph), runs=1).text().endswith(f"no rProgram to profile: {reason}.")


def test_what_cannot_be_profiled_is_said(monkeypatch):
    model = small_model()
    with pytest.raises(TargetError, match="only rPrograms for a CPU"):
        tvm_rammer.profile(model, target="cuda:h200")
    with pytest.raises(ModelError, match="runs is 0"):
        tvm_rammer.profile(model, runs=0)
    with pytest.raises(ModelError, match="2 inputs given, but the model has 1"):
        tvm_rammer.profile(model, [np.zeros((1, 3), "f4"), np.zeros(3, "f4")])
    monkeypatch.setattr("tvm_rammer.runtime.profiler.codegen.num_workers", lambda: host_cpu().units - 1)
    with pytest.raises(ToolError, match="TVM_NUM_THREADS"):
        tvm_rammer.profile(model)


def test_what_is_rolled_up_is_profiled_as_it_is_compiled():
    model = unrolled("RNN", 16)
    compiled, measured = tvm_rammer.compile(model, cache=False), tvm_rammer.profile(model, runs=1)
    assert [p.steps for p in measured.compilation.programs] == [p.steps for p in compiled.compilation.programs]
    assert max(p.steps for p in measured.compilation.programs) >= 15


def test_a_loop_that_is_refused_is_profiled_step_by_step(monkeypatch):
    model, refused = unrolled("RNN", 16), []

    def refuse_once(*args):
        if not refused:
            refused.append(args)
            raise LoopError("no such loop")
        return plan_regions(*args)

    monkeypatch.setattr(profiler, "plan_regions", refuse_once)
    measured = tvm_rammer.profile(model, runs=1)
    assert refused and max(p.steps for p in measured.compilation.programs) == 1
