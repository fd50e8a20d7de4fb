"""Recurrent layers of PyTorch are loops in the rProgram, as those of ONNX are."""

import warnings

import numpy as np
import pytest

import tvm_rammer

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")

from torch import nn

from .check import agree, compiled, graphs_of

STEPS = 11

LAYERS = {
    "lstm, two layers both ways, batch first": (nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    "gru, two layers": (nn.GRU, {"num_layers": 2}),
    "rnn both ways, no biases": (nn.RNN, {"bidirectional": True, "bias": False}),
    "rnn of rectifiers": (nn.RNN, {"nonlinearity": "relu"}),
}


class Layer(nn.Module):
    """A layer, whose first state is zero or given."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(6, 8, **options)
        self.requires_grad_(False)

    def forward(self, x, state=None):
        return self.layer(x, state)


def exported(model, *inputs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        return torch.export.export(model.eval(), inputs, **options)


def given_to(kind, options):
    """An input of a layer, and a state."""
    x = torch.randn((3, STEPS, 6) if options.get("batch_first") else (STEPS, 3, 6))
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    h, c = torch.randn(2, count, 3, 8)
    return x, (h, c) if kind is nn.LSTM else h


def check(module, model, *inputs):
    """Compare a module's results with PyTorch's."""
    leaves = torch.utils._pytree.tree_leaves
    expected = leaves(model(*inputs))
    results = module.leaves(*leaves(inputs))
    assert len(results) == len(expected)
    for result, right in zip(results, expected, strict=True):
        np.testing.assert_allclose(result.numpy(), right.numpy(), rtol=1e-5, atol=1e-6)


def loops_of(module):
    """The steps of a module's loops, program after program."""
    return [program.graph.steps for program in module.rprograms if program.graph.steps > 1]


@pytest.mark.parametrize("name", LAYERS)
def test_an_exported_layer_is_a_loop(name):
    kind, options = LAYERS[name]
    model = Layer(kind, **options)
    x, state = given_to(kind, options)
    module = tvm_rammer.compile(exported(model, x, state), cache=False)
    assert loops_of(module) == [STEPS] * options.get("num_layers", 1)
    check(module, model, x, state)


def test_a_layer_that_is_unrolled_computes_the_same():
    kind, options = LAYERS["lstm, two layers both ways, batch first"]
    model = Layer(kind, **options)
    x, _ = given_to(kind, options)
    module = tvm_rammer.compile(exported(model, x), cache=False, loops=False)
    assert not loops_of(module)
    check(module, model, x)


def test_the_time_of_compiling_does_not_depend_on_the_steps(tmp_path):
    model, x = Layer(nn.LSTM), torch.randn(500, 1, 6)
    torch.export.save(exported(model, x), tmp_path / "lstm.pt2")
    module = tvm_rammer.compile(tmp_path / "lstm.pt2", cache=False)
    assert loops_of(module) == [500]
    check(module, model, x)


@pytest.mark.parametrize("options", [{}, {"freeze": False}])
def test_a_layer_in_a_graph_of_dynamo_is_a_loop(options):
    kind, made = LAYERS["lstm, two layers both ways, batch first"]
    model = Layer(kind, **made).eval()
    x, state = given_to(kind, made)
    function = compiled(model, dynamic=False, **options)
    (graph,) = graphs_of(lambda: agree(function(x, state), model(x, state)))
    assert not graph.refusals
    assert loops_of(graph.modules[0]) == [STEPS, STEPS]


def test_a_sequence_without_a_batch():
    model, x = Layer(nn.GRU).eval(), torch.randn(STEPS, 6)
    function = compiled(model, dynamic=False)
    (graph,) = graphs_of(lambda: agree(function(x), model(x)))
    assert loops_of(graph.modules[0]) == [STEPS]


def test_weights_that_change_are_heeded():
    model, x = Layer(nn.GRU).eval(), torch.randn(STEPS, 3, 6)
    function = compiled(model, dynamic=False)
    agree(function(x), model(x))
    model.layer.weight_hh_l0.mul_(2.0)
    agree(function(x), model(x))


def test_an_open_batch():
    model, batch = Layer(nn.GRU, num_layers=2), torch.export.Dim("batch", min=1, max=8)
    program = exported(model, torch.randn(STEPS, 3, 6), dynamic_shapes=({1: batch},))
    module = tvm_rammer.compile(program, cache=False)
    for size in (1, 4):
        check(module, model, torch.randn(STEPS, size, 6))
    module = tvm_rammer.compile(program, cache=False, on_new_shape="stock")  # TVM has no such layer: the call waits
    check(module, model, torch.randn(STEPS, 2, 6))


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
def test_projections_are_unrolled():
    model, x = Layer(nn.LSTM, proj_size=3), torch.randn(STEPS, 3, 6)
    module = tvm_rammer.compile(exported(model, x), cache=False)
    assert not loops_of(module)
    check(module, model, x)


def test_a_layer_after_another_operator_and_before_one():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = nn.Linear(5, 6), Layer(nn.LSTM, batch_first=True), nn.Linear(8, 2)
            self.requires_grad_(False)

        def forward(self, x):
            y, (h, _) = self.second(torch.relu(self.first(x)))
            return self.head(y), h[-1]

    model, x = Net(), torch.randn(2, STEPS, 5)
    module = tvm_rammer.compile(exported(model, x), cache=False)
    assert loops_of(module) == [STEPS]
    check(module, model, x)
