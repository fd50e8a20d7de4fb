"""Programs of torch.export. PyTorch is optional for users, and so it is for this test."""

import warnings

import numpy as np
import pytest

import tvm_rammer

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")


def test_a_convolutional_net_with_batch_norm():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.BatchNorm2d(32),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 16, 1),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 16 * 16, 10),
    ).eval()
    x = torch.randn(1, 3, 32, 32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        module = tvm_rammer.compile(torch.export.export(net, (x,)))
    np.testing.assert_allclose(module(x).numpy(), net(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    assert module.report()["launches"] == 1


def test_a_program_is_taken_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RAMMER_CACHE_BYTES", str(1 << 30))
    net, x = torch.nn.Linear(4, 3).eval(), torch.randn(2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        program = torch.export.export(net, (x,))
        modules = [tvm_rammer.compile(program, cache=tmp_path) for _ in range(2)]
    assert len(list(tmp_path.iterdir())) == 1
    for module in modules:
        np.testing.assert_allclose(module(x).numpy(), net(x).detach().numpy(), rtol=1e-4, atol=1e-5)
