"""Weights are built in, and never stale."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")

from torch import nn

from tvm_rammer.torch_backend import core
from tvm_rammer.torch_backend.weights import FrozenWeights

from .check import agree, compiled, graphs_of
from .models import Scaled


def _grow(model: nn.Linear) -> None:
    model.weight.add_(1)


def _load(model: nn.Linear) -> None:
    model.load_state_dict(nn.Linear(4, 3).state_dict())


def _replace(model: nn.Linear) -> None:
    model.weight = nn.Parameter(torch.randn(3, 4))


def _write_data(model: nn.Linear) -> None:
    model.weight.data.mul_(3)


def _write_numpy(model: nn.Linear) -> None:
    model.bias.detach().numpy()[1] = 7


CHANGES = (_grow, _load, _replace, _write_data, _write_numpy)


@torch.no_grad()
def test_changed_weights_are_seen_however_they_were_changed(monkeypatch):
    builds = []
    original = core.compile
    monkeypatch.setattr(core, "compile", lambda mod, **how: builds.append(mod) or original(mod, **how))
    model = nn.Linear(4, 3)
    function, x = compiled(model), torch.randn(2, 4)
    (graph,) = graphs_of(lambda: function(x))
    for change in CHANGES:
        change(model)
        agree(function(x), model(x))
        agree(function(x), model(x))
    assert [len(module.inputs) for module in graph.modules] == [3]  # they changed often: now they are inputs
    # At first, twice with both built in anew, without the weight after its third change, and without the bias.
    assert len(builds) == 1 + core.FREEZES + 2


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_found(change):
    model = nn.Linear(4, 3)
    frozen = FrozenWeights((1, 2), (None, model.weight, model.bias))
    assert frozen.changed((None, model.weight, model.bias)) == []
    with torch.no_grad():
        change(model)
    assert frozen.changed((None, model.weight, model.bias))


def test_large_and_strided_weights_are_sampled():
    images = torch.randn(8, 8, 3, 3).to(memory_format=torch.channels_last)
    args = (images, torch.randn(3, 5).t(), torch.empty(0))
    frozen = FrozenWeights((0, 1, 2), args)
    assert frozen.changed(args) == []
    images.data.mul_(2)
    assert frozen.changed(args) == [0]


@torch.no_grad()
def test_a_buffer_that_the_model_writes_is_an_input_from_the_start():
    model, other = Scaled(), Scaled()
    other.load_state_dict(model.state_dict())
    function, x = compiled(model), torch.randn(2, 4)
    (graph,) = graphs_of(lambda: agree(function(x), other(x)))
    (module,) = graph.modules
    agree(function(x), other(x))
    agree(model.calls, torch.full((3,), 2.0))
    assert graph.modules == (module,) and len(module.inputs) == 2


@torch.no_grad()
def test_weights_may_stay_inputs():
    model = nn.Linear(4, 3)
    function, x = compiled(model, freeze=False), torch.randn(2, 4)
    (graph,) = graphs_of(lambda: function(x))
    (module,) = graph.modules
    model.weight.add_(1)
    agree(function(x), model(x))
    assert graph.modules == (module,) and len(module.inputs) == 3
