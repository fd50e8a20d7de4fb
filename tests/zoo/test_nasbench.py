"""Random modules: within their limits, connected, and running."""

import collections

import pytest

from tvm_rammer.zoo.nasbench import EDGES, KINDS, OPERATORS, VERTICES, NasbenchModule, nasbench, random_module

from .onnx_models import count, run, tells_right_from_wrong

DIAMOND = NasbenchModule(("conv3x3", "conv1x1", "maxpool3x3"), ((0, 1), (1, 2), (1, 3), (2, 4), (3, 4)))


def test_modules_are_within_their_limits():
    sizes = collections.Counter()
    for seed in range(300):
        module = random_module(seed)
        assert module == random_module(seed)
        assert set(module.kinds) <= set(KINDS)
        assert len(module.kinds) + 2 <= VERTICES and len(module.edges) <= EDGES
        assert 1 <= module.operators <= OPERATORS
        sizes[module.operators] += 1
    assert len(sizes) >= 5


def test_every_vertex_lies_between_input_and_output():
    for seed in range(300):
        module = random_module(seed)
        last = len(module.kinds) + 1
        for v in range(1, last):
            assert module.sources(v)
            assert any(a == v for a, b in module.edges)
        assert module.sources(last)
        assert all(a < b <= last for a, b in module.edges)


def test_vertices_become_nodes_and_joints_become_sums():
    model = nasbench(DIAMOND, channels=4, size=6)
    assert DIAMOND.operators == 4
    assert count(model) == {"Conv": 2, "Relu": 2, "MaxPool": 1, "Add": 1, "Identity": 1}


@pytest.mark.parametrize("seed", range(8))
def test_random_modules_run(seed):
    model = nasbench(random_module(seed), channels=4, size=6, batch=2, seed=seed)
    output = run(model)
    assert output.shape == (2, 4, 6, 6)
    assert tells_right_from_wrong(output)
