"""Graphs that nobody thought of: compiled, run, and compared with ONNX Runtime."""

import numpy as np
import pytest

import tvm_rammer
from tests.end_to_end.models import by_onnxruntime, image
from tests.end_to_end.random_graphs import random_graph
from tests.marks import slow_but


def check(seed, **how):
    model = random_graph(seed)
    module = tvm_rammer.compile(model, **how)
    x = image(module.inputs[0].shape, seed)
    got = module(x)
    got = got if isinstance(got, tuple) else (got,)
    want = by_onnxruntime(model, x)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4 * max(1e-3, np.abs(b).max()))
    return module


@pytest.mark.parametrize("seed", slow_but(range(4), range(12)))
def test_a_random_graph_runs_as_rprograms(seed):
    module = check(seed)
    assert module.report()["left_to_stock"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 132))
def test_many_random_graphs(seed):
    check(seed, sync=["auto", "global"][seed % 2], policy=["wavefront", "sequential"][seed // 2 % 2])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 206))
def test_random_graphs_become_cuda_text(seed):
    module = tvm_rammer.compile(random_graph(seed), target="cuda:h200")
    assert "__global__" in module.cuda_source()
