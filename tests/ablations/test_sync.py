"""The ablation of synchronisation: what is irregular, and how modules are planned and measured."""

import json
import pathlib
import subprocess

import pytest

from tests.forking import python
from tests.wavefront.graphs import BRANCHES, DIAMOND, make_graph
from tvm_rammer.ablations.lowering import Lowering
from tvm_rammer.ablations.sync import SyncGain, is_irregular, measure_gains, predict_gains, sample
from tvm_rammer.device import host_cpu, preset
from tvm_rammer.errors import ModelError
from tvm_rammer.zoo.inception_module import inception_module
from tvm_rammer.zoo.nasbench import nasbench, random_module

ROOT = pathlib.Path(__file__).parents[2]
SMALL = {"channels": 4, "size": 6}


@pytest.mark.parametrize(
    ("reads", "irregular"),
    [
        ({"a": "", "b": "a", "c": "b"}, False),
        (DIAMOND, False),
        ({"a": "", "b": "", "c": "a b", "d": "a b"}, False),
        ({"a": "", "b": "", "c": "a", "d": "b"}, True),  # two chains
        ({"a": "", "b": "a", "c": "a", "d": "b", "e": "d c"}, True),  # c is done when b is, but d needs b alone
        ({"a": "", "b": "a", "c": "a b"}, False),  # by way of b
        (BRANCHES, True),
    ],
)
def test_irregular_is_where_a_barrier_orders_what_no_path_does(reads, irregular):
    assert is_irregular(make_graph(reads)) is irregular


def test_equal_functions_get_their_kernels_once():
    lowering = Lowering(preset("cuda:h200"))
    one, two = (lowering.lower(nasbench(random_module(seed), **SMALL)) for seed in (2, 3))
    common = set(one.kernels) & set(two.kernels)
    assert common
    assert all(one.kernels[name] is two.kernels[name] for name in common)
    for lowered in (one, two):
        assert {op.function for op in lowered.graph.operators} == set(lowered.kernels)
        assert all(k.function == name for name, kernels in lowered.kernels.items() for k in kernels)


def test_other_shapes_are_other_functions():
    lowering = Lowering(host_cpu())
    one, two = (lowering.lower(inception_module(channels=c, size=6, widths=(2, 3, 4, 5, 6, 7))) for c in (4, 8))
    first, other = (next(op.function for op in low.graph.operators) for low in (one, two))
    assert first != other


def test_modules_that_come_again_are_planned_once():
    said = []
    gains = predict_gains([5, 0, 5], host_cpu(), **SMALL, progress=said.append)
    assert len(said) == 2
    assert [g.seed for g in gains] == [5, 0, 5]
    assert gains[0].gain == gains[2].gain


def test_one_operator_has_nothing_to_wait_for():
    seed = next(s for s in range(100) if len(random_module(s).kinds) == 1 == random_module(s).operators)
    (gain,) = predict_gains([seed], preset("cuda:h200"), **SMALL)
    assert gain.gain == 1
    assert not gain.irregular


@pytest.mark.slow
def test_waits_are_predicted_to_gain_on_a_gpu():
    gains = [g for g in predict_gains(range(12), preset("cuda:h200"), **SMALL) if g.operators > 1]
    assert gains
    assert all(g.gain > 1 for g in gains)


def test_a_sample_is_half_irregular_where_it_can_be():
    gains = [SyncGain(seed, 1 + seed % 3, seed % 4 == 1, 1.0, 1.0) for seed in range(60)]
    chosen = sample(gains, 10)
    by_seed = {g.seed: g for g in gains}
    assert len(chosen) == len({random_module(s) for s in chosen}) == 10
    assert sum(by_seed[s].irregular for s in chosen) == 5
    assert all(by_seed[s].operators > 1 for s in chosen)
    assert len(sample(gains[:3], 10)) <= 3


def test_a_model_that_is_not_one_region_is_refused(monkeypatch):
    import tvm_rammer.ablations.lowering as lowering

    partition = lowering.relay_passes.partition
    monkeypatch.setattr(
        lowering.relay_passes, "partition", lambda mod: type(partition(mod))((), (("op", "some reason"),))
    )
    with pytest.raises(ModelError, match="0 regions and 1 stock calls"):
        Lowering(host_cpu()).lower(nasbench(random_module(0), **SMALL))


@pytest.mark.slow
def test_both_kinds_run_on_the_cpu():
    gains = measure_gains([0, 3], host_cpu(), **SMALL, repeat=3)
    assert [g.seed for g in gains] == [0, 3]
    assert all(g.auto_us > 0 and g.global_us > 0 for g in gains)


@pytest.mark.slow
def test_the_script_prints_a_table(tmp_path):
    options = ["--modules", "3", "--channels", "4", "--size", "6", "--measure", "2", "--repeat", "2", "--json"]
    done = subprocess.run(
        [python(), ROOT / "scripts" / "programs" / "ablation" / "sync.py", *options, tmp_path / "found.json"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert "| predicted, all | 3 | 100 % |" in done.stdout
    assert {name: len(gains) for name, gains in json.loads((tmp_path / "found.json").read_text()).items()} == {
        "predicted": 3,
        "measured": 2,
    }
