"""The ablation of interplay: four plans of one model."""

import runpy

import pytest

from tests.ablations.test_sync import ROOT
from tests.wavefront.graphs import DIAMOND, make_kernels, plan
from tvm_rammer.ablations.interplay import (
    agreement,
    fastest_kernels,
    measure_interplay,
    predict_interplay,
    selected_kernels,
)
from tvm_rammer.ablations.variants import Variants
from tvm_rammer.device import host_cpu, preset
from tvm_rammer.runtime.tensors import TensorSpec, random_inputs
from tvm_rammer.wavefront import CostModel, simulate
from tvm_rammer.zoo.inception_module import inception_module
from tvm_rammer.zoo.models import MODELS

SMALL = {"channels": 8, "size": 8, "widths": (4, 4, 8, 4, 4, 4)}


@pytest.fixture(scope="module")
def variants():
    return Variants(inception_module(0, **SMALL), preset("cuda:h200"))


def test_the_fastest_kernel_is_so_on_all_units():
    kernels = {name: tuple(made) for name, made in make_kernels(a=[(4, 2.0), (1, 5.0), (400, 1.0)]).items()}
    (fastest,) = fastest_kernels(kernels, preset("cuda:h200"))["f_a"]
    assert fastest.num_rtasks == 4  # 400 rTasks take four turns on 132 vEUs


def test_the_usual_kernel_is_taken():
    programs = plan(DIAMOND, veus=4)
    chosen = selected_kernels(programs)
    assert chosen == {f"f_{name}": (programs[0].kernels[n],) for n, name in enumerate(DIAMOND)}


@pytest.mark.slow
def test_one_by_one_means_that_operators_do_not_overlap(variants):
    (program,) = variants.plan("sequential", "global")
    spans = [s for s in simulate(program, CostModel.of(variants.record.device)).spans if s.kind == "run"]
    for a in spans:
        for b in spans:
            assert a.operator == b.operator or a.end_us <= b.start_us or b.end_us <= a.start_us


def test_four_ways_are_predicted(variants):
    times = predict_interplay(variants)
    assert times.together_selected == sum(p.makespan_us for p in variants.plan("wavefront", "auto"))
    assert times.together_fastest < times.one_by_one_fastest
    assert times.together_selected < times.one_by_one_selected
    assert 0 < agreement(variants) <= 1


def test_kernels_can_be_prescribed(variants):
    fastest = fastest_kernels(variants.record.kernels, variants.record.device)
    for program in variants.plan("wavefront", "auto", fastest):
        assert all((k,) == fastest[op.function] for op, k in zip(program.graph.operators, program.kernels, strict=True))


@pytest.mark.slow
def test_four_ways_run_on_the_cpu():
    variants = Variants(inception_module(0, **SMALL), host_cpu())
    inputs = random_inputs([TensorSpec("x", (1, 8, 8, 8), "float32")], 0)
    times = measure_interplay(variants, inputs, 3, lambda message: None)
    assert min(times.one_by_one_fastest, times.one_by_one_selected) > 0
    assert min(times.together_fastest, times.together_selected) > 0


@pytest.mark.slow
def test_the_script_prints_a_table(monkeypatch, capsys):
    small = {**MODELS, "Inception module": lambda: inception_module(0, **SMALL)}
    monkeypatch.setattr("tvm_rammer.zoo.models.MODELS", small)
    program = ROOT / "scripts" / "programs" / "ablation" / "interplay.py"
    options = ["--models", "Inception module", "--measure", "--repeat", "2"]
    monkeypatch.setattr("sys.argv", [str(program), *options])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(program), run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.count("| Inception module |") == 3
