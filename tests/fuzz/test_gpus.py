"""Models on GPUs that are made up: the plans that only large models have on real ones; some random ones."""

import contextlib

import numpy as np
import onnx
import pytest

from tests.emulation.models import Way, emulated_model
from tests.relay_passes.models import by_onnxruntime, model, node, random, tensor, value
from tvm_rammer.errors import RammerError
from tvm_rammer.zoo.onnx_lstm import onnx_lstm

from .judge import gpus
from .judge.onnx_judges import judge
from .kinds import KINDS


def branches():
    """Convolutions of one image side by side, of which one is long, and a choice between their results."""
    nodes = [
        node("Conv", ["x", "v"], ["a"], pads=[1, 1, 1, 1]),
        node("Conv", ["x", "w"], ["b"]),
        node("Less", ["a", "b"], ["smaller"]),
        node("Not", ["smaller"], ["larger"]),
        node("Softmax", ["b"], ["c"], axis=1),
        node("Where", ["larger", "a", "c"], ["y"]),
    ]
    weights = [tensor("v", random(12, 8, 3, 3)), tensor("w", random(12, 8, 1, 1, seed=1))]
    return model(nodes, [value("x", [1, 8, 6, 4])], ["y"], weights)


def runs_right(proto, made, runs=3):
    for seed in range(runs):
        feeds = {spec.name: random(*spec.shape, seed=seed) for spec in made.inputs}
        for got, want in zip(made.run(feeds, seed), by_onnxruntime(proto, **feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("blocks", [2, 3])
def test_several_veus_on_a_unit_and_sums_that_are_split(blocks):
    proto = branches()
    made = emulated_model(proto, Way(units=2, blocks=blocks, policy="list", split=True))
    (program,) = made.record.programs
    assert len(program.lanes) == 2 * blocks and f", {blocks}) region0_0_kernel" in made.text
    assert any(op.function.endswith("_parts") for op in program.graph.operators)
    runs_right(proto, made)


def test_several_loops_that_stay_loops():
    proto = onnx_lstm(2, 8, 16, bidirectional=True)
    made = emulated_model(proto, Way(several_loops=True))
    assert [program.steps for program in made.record.programs if program.steps > 1] == [8, 8]
    runs_right(proto, made)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_models(seed):
    case = KINDS["gpus"](seed)
    verdict = judge(onnx.load_from_string(case.data), case.feeds)
    with contextlib.suppress(RammerError):
        fault = gpus.judge_gpu(seed, case.data, case.feeds, None if isinstance(verdict, str) else verdict)
        assert fault in ("", "unstable")
