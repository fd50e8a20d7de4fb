"""What runs in PyTorch, with one warning; and options that make no sense, which are errors."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")

from torch._dynamo.exc import BackendCompilerFailed

from tvm_rammer.relay_passes.aten import converters
from tvm_rammer.torch_backend import core
from tvm_rammer.torch_backend import graph as room

from .check import agree, compiled, graphs_of


def _autocast(x):
    with torch.autocast("cpu"):
        return x @ x.t()


LEFT = {
    r"lacks aten\._linalg_svd\.default \(1 x\)": (lambda x: torch.linalg.svd(x @ x.t())[1], torch.randn(3, 3)),
    r"lacks aten\.native_dropout": (lambda x: torch.nn.functional.dropout(x, 0.5, training=True) * 0, torch.ones(3)),
    r"lacks aten\._upsample_bilinear2d_aa": (
        lambda x: torch.nn.functional.interpolate(x, size=(2, 3), mode="bilinear", antialias=True),
        torch.randn(1, 2, 5, 6),
    ),
    "results beside the first one": (
        lambda x: torch.nn.functional.max_pool2d(x, 2, return_indices=True),
        torch.randn(1, 2, 4, 4),
    ),
    "a divisor of windows that differ": (
        lambda x: torch.nn.functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False, divisor_override=2),
        torch.randn(1, 2, 8, 8),
    ),
    "is float16": (lambda x: x + 1, torch.randn(3).half()),
    "is bfloat16": (torch.nn.Linear(3, 2).bfloat16().requires_grad_(False), torch.randn(1, 3).bfloat16()),
    "misreads .*which is bfloat16": (lambda x: x.bfloat16() + 1, torch.randn(3)),
    "is complex64": (lambda x: x + 1, torch.randn(3, dtype=torch.complex64)),
    "gradients are recorded": (lambda x: x * 2, torch.randn(3, requires_grad=True)),
    "turns autocast on": (_autocast, torch.randn(3, 3)),
    "is on meta": (lambda x: x + 1, torch.empty(3, device="meta")),
}


@pytest.mark.parametrize("reason", LEFT)
def test_what_cannot_be_compiled_runs_in_pytorch_with_one_warning(reason):
    function, x = LEFT[reason]
    made = compiled(function)
    with pytest.warns(UserWarning, match=reason) as caught:
        (graph,) = graphs_of(lambda: made(x))
        for _ in range(2):
            result = made(x)
    assert len(caught) == 1
    assert len(graph.refusals) == 1 and not graph.modules
    if x.device.type == "cpu":
        agree(result, function(x))


def test_a_number_that_varies_is_compiled_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(room, "MOST_SHAPES", 2)
    made, x = compiled(lambda x, factor: x * factor + factor / 2), torch.ones(3)
    for factor in (2.5, 3.5, 4.5, 3.5):
        agree(made(x, factor), x * factor + factor / 2)
    with pytest.warns(UserWarning, match="compiled for 2 sets of shapes and numbers"):
        agree(made(x, 5.5), x * 5.5 + 2.75)


def test_data_that_decide_what_is_traced_are_left_to_pytorch():
    made, x = compiled(lambda x: torch.ones(3)[: int(x.sum().item())] * x, dynamic=True), torch.ones(1)
    with torch._dynamo.config.patch(capture_scalar_outputs=True), pytest.warns(UserWarning, match="leaves a graph"):
        agree(made(x), torch.ones(1))


def test_a_graph_that_is_too_long_is_left_to_pytorch(monkeypatch):
    monkeypatch.setattr(core, "MOST_OPERATORS", 3)
    model, x = torch.nn.GRU(2, 2).requires_grad_(False), torch.randn(4, 1, 2)
    with pytest.warns(UserWarning, match=r"it has \d+ operators, of which 3 are compiled"):
        agree(compiled(model)(x), model(x))


def test_under_autocast_a_graph_runs_in_pytorch():
    made, x = compiled(lambda x: x @ x.t()), torch.randn(3, 3)
    with torch.autocast("cpu"), pytest.warns(UserWarning, match="autocast is on"):
        assert made(x).dtype == torch.bfloat16


@pytest.mark.parametrize("check", [True, False])
def test_the_first_call_is_compared_with_pytorch(monkeypatch, check):
    from tvm import relax

    monkeypatch.setitem(converters._ARITHMETIC, "add", relax.op.subtract)  # a converter that is wrong
    made, x = compiled(lambda x: x + 2, check=check), torch.randn(3)
    if not check:
        agree(made(x), x - 2)
        return
    with pytest.warns(UserWarning, match="is not what PyTorch computes: result 0 differs by 4"):
        agree(made(x), x + 2)
    agree(made(x), x + 2)


def test_a_failing_converter_is_named(monkeypatch):
    def fail(*_):
        raise ValueError("cannot add today")

    monkeypatch.setitem(converters._ARITHMETIC, "add", fail)
    made, x = compiled(lambda x: x + 2), torch.randn(3)
    with pytest.warns(UserWarning, match=r"cannot import aten\.add\.Tensor \(add\): cannot add today"):
        agree(made(x), x + 2)


def test_a_defect_is_no_reason_to_have_no_result(monkeypatch):
    def fail(*_, **__):
        raise KeyError("oh")

    monkeypatch.setattr(core, "compile", fail)
    made, x = compiled(lambda x: x + 2), torch.randn(3)
    with pytest.warns(UserWarning, match="a defect of tvm_rammer: KeyError: 'oh'"):
        agree(made(x), x + 2)


def test_graphs_without_arithmetic_are_neither_compiled_nor_a_reason_to_warn():
    made, x = compiled(lambda x: (x.t(), x[1:])), torch.randn(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (graph,) = graphs_of(lambda: agree(made(x), (x.t(), x[1:])))
    assert not graph.modules and not graph.refusals


WRONG = {
    r"unknown options 'polcy'; choose from policy, .*threads.*freeze, check": {"polcy": "list"},
    "unknown options 'target'": {"target": "cuda:h100"},
    "threads is 0": {"threads": 0},
    "unknown policy 'none'": {"policy": "none"},
    "unknown sync 'never'": {"sync": "never"},
    "freeze is 1": {"freeze": 1},
    "concurrency is 0": {"concurrency": 0},
    "cache is 3": {"cache": 3},
    "options is 'x'": {"options": "x"},
}


@pytest.mark.parametrize("message", WRONG)
def test_an_option_without_sense_is_an_error(message):
    with pytest.raises(BackendCompilerFailed, match=message):
        compiled(lambda x: x + 1, **WRONG[message])(torch.randn(3))


def test_a_mode_is_an_error():
    made = torch.compile(lambda x: x + 1, backend="rammer", mode="max-autotune")
    with pytest.raises(BackendCompilerFailed, match="mode is 'max-autotune'"):
        made(torch.randn(3))


def test_what_was_compiled_comes_from_the_cache(tmp_path, with_cache):
    model, x = torch.nn.Linear(4, 3).requires_grad_(False), torch.randn(2, 4)
    for _ in range(2):
        torch._dynamo.reset()
        agree(compiled(model, cache=tmp_path)(x), model(x))
        assert len(list(tmp_path.iterdir())) == 1


def test_options_reach_the_compiler():
    made = compiled(lambda x: torch.relu(x @ x.t()), threads=1, policy="list", sync="global", concurrency=2)
    (graph,) = graphs_of(lambda: made(torch.randn(8, 8)))
    (module,) = graph.modules
    record = module.compilation
    assert (record.device.units, record.policy, record.sync) == (1, "list", "global")
