"""PyTorch's `scan` is a loop in the rProgram, too."""

import pytest

import tvm_rammer

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")

from torch import nn
from torch._higher_order_ops.scan import scan

from .check import agree, compiled, graphs_of
from .test_recurrent import STEPS, check, exported, loops_of


class Scanned(nn.Module):
    """Two states, one of which is a result of each step, too; a weight; from the last step to the first."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4) / 2, requires_grad=False)

    def forward(self, x, h):
        def step(states, row):
            new = torch.tanh(states[0] @ self.weight + row)
            return (new, 0.5 * states[1] + new), new.clone()

        (h, total), y = scan(step, (h, h + 1), x, dim=1, reverse=True)
        return h, total, 2 * y


class Sums(nn.Module):
    """A state that no result has, and results that no state has."""

    def forward(self, x):
        def step(total, row):
            return total + row, row * row

        return scan(step, torch.zeros(4), x, dim=0)


def given(steps=STEPS):
    return torch.randn(3, steps, 4), torch.zeros(3, 4)


@pytest.mark.parametrize("loops", [True, False])
def test_an_exported_scan(loops):
    model, inputs = Scanned(), given()
    module = tvm_rammer.compile(exported(model, *inputs), cache=False, loops=loops)
    assert loops_of(module) == ([STEPS] if loops else [])
    assert not module.compilation.stock_calls
    check(module, model, *inputs)


def test_a_file_of_many_steps(tmp_path):
    model, inputs = Scanned(), given(300)
    torch.export.save(exported(model, *inputs), tmp_path / "scan.pt2")
    module = tvm_rammer.compile(tmp_path / "scan.pt2", cache=False)
    assert loops_of(module) == [300]
    check(module, model, *inputs)


def test_few_steps_are_unrolled():
    model, inputs = Scanned(), given(3)
    module = tvm_rammer.compile(exported(model, *inputs), cache=False)
    assert not loops_of(module)
    check(module, model, *inputs)


def test_states_and_results_that_have_nothing_in_common():
    model, x = Sums(), torch.randn(STEPS, 4)
    module = tvm_rammer.compile(exported(model, x), cache=False)
    assert loops_of(module) == [STEPS]
    check(module, model, x)


def test_a_state_that_stays_is_unrolled():
    class Kept(nn.Module):
        def forward(self, x):
            def step(states, row):
                return (states[0].clone(), states[1] + row * states[0]), row + 1

            return scan(step, (torch.full((4,), 2.0), torch.zeros(4)), x, dim=0)

    model, x = Kept(), torch.randn(STEPS, 4)
    module = tvm_rammer.compile(exported(model, x), cache=False)
    assert not loops_of(module)
    check(module, model, x)


def test_a_scan_in_a_graph_of_dynamo():
    model, inputs = Scanned().eval(), given()
    function = compiled(model, dynamic=False)
    (graph,) = graphs_of(lambda: agree(function(*inputs), model(*inputs)))
    assert not graph.refusals
    assert loops_of(graph.modules[0]) == [STEPS]
