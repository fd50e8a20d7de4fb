"""Whole models through torch.compile: compiled for inference, left to PyTorch where gradients are recorded."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")

from .check import agree, compiled, graphs_of
from .models import MODELS

_QUICK = ("mlp", "lstm", "transformer")


@pytest.mark.parametrize("name", [n if n in _QUICK else pytest.param(n, marks=pytest.mark.slow) for n in MODELS])
def test_a_model_is_compiled_for_each_shape(name):
    make, *shapes = MODELS[name]
    model = make().eval()
    function = compiled(model)
    for shape in shapes:
        x = torch.randn(shape)
        with torch.no_grad():
            graphs = graphs_of(lambda x=x: function(x))
            agree(function(x), model(x))
        assert [graph.refusals for graph in graphs] == [[]]
        (module,) = graphs[0].modules
        assert module.report()["launches"] == 1
        assert len(module.inputs) == 1  # the weights are constants


@pytest.mark.parametrize("name", MODELS)
def test_a_model_whose_gradients_are_recorded_runs_in_pytorch(name):
    make, shape, other = MODELS[name]
    model = make().eval()
    function = compiled(model, dynamic=False)
    with pytest.warns(
        UserWarning, match=r"leaves a graph to PyTorch: gradients are recorded.*torch\.no_grad"
    ) as caught:
        for size in (shape, shape, other):
            x = torch.randn(size)
            agree(function(x), model(x))
    assert len(caught) == 2  # one for each graph
    result = function(torch.randn(shape))
    (result[0] if isinstance(result, tuple) else result).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("name", ["cnn", *(pytest.param(n, marks=pytest.mark.slow) for n in ("lstm", "transformer"))])
def test_a_model_whose_shapes_are_open_from_the_start_is_compiled(name):
    make, *shapes = MODELS[name]
    model = make().eval()
    function = compiled(model, dynamic=True)
    graphs = []
    with torch.no_grad():
        for shape in shapes:
            x = torch.randn(shape)
            graphs += graphs_of(lambda x=x: function(x))
            agree(function(x), model(x))
    assert graphs and not any(graph.refusals for graph in graphs)
    assert sum(len(graph.modules) for graph in graphs) == len(shapes)


def test_weights_without_gradients_need_no_no_grad():
    model = MODELS["mlp"][0]().eval().requires_grad_(False)
    function, x = compiled(model), torch.randn(2, 8)
    (graph,) = graphs_of(lambda: function(x))
    agree(function(x), model(x))
    assert graph.modules


def test_static_shapes_make_a_graph_each():
    model = MODELS["mlp"][0]().eval()
    function = compiled(model, dynamic=False)
    with torch.no_grad():
        for rows in (2, 3):
            x = torch.randn(rows, 8)
            (graph,) = graphs_of(lambda x=x: function(x))
            agree(function(x), model(x))
            assert len(graph.modules) == 1


def test_open_shapes_are_compiled_one_after_another_up_to_a_limit(monkeypatch):
    from tvm_rammer.torch_backend import graph as room

    monkeypatch.setattr(room, "MOST_SHAPES", 2)
    function = compiled(lambda x: x * x.shape[0], dynamic=True)
    graphs = graphs_of(lambda: function(torch.ones(3, 2)))
    function(torch.ones(4, 2))
    with pytest.warns(UserWarning, match="compiled for 2 sets of shapes"):
        agree(function(torch.ones(5, 2)), torch.full((5, 2), 5.0))
    agree(function(torch.ones(6, 2)), torch.full((6, 2), 6.0))
    agree(function(torch.ones(4, 2)), torch.full((4, 2), 4.0))
    assert len(graphs[0].modules) == 2 and len(graphs[0].refusals) == 1
