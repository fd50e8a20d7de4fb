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
