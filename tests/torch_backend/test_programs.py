"""Programs of torch.export, in memory and as .pt2 files."""

import warnings

import numpy as np
import pytest

import tvm_rammer
from tvm_rammer.cli import main

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")

from .models import MODELS, Scaled


def _exported(model, *inputs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        return torch.export.export(model.eval(), inputs, **options)


@pytest.fixture(scope="module")
def linear_file(tmp_path_factory):
    """A file, the model in it and an input."""
    torch.manual_seed(0)
    model, x = torch.nn.Linear(4, 3), torch.randn(2, 4)
    path = tmp_path_factory.mktemp("programs") / "linear.pt2"
    torch.export.save(_exported(model, x), path)
    return path, model, x


def test_a_convolutional_net_with_batch_norm():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.BatchNorm2d(32),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 16, 1),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 16 * 16, 10),
    )
    x = torch.randn(1, 3, 32, 32)
    module = tvm_rammer.compile(_exported(net, x))
    np.testing.assert_allclose(module(x).numpy(), net(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    assert module.report()["launches"] == 1


@pytest.mark.parametrize("name", ["lstm", pytest.param("gru", marks=pytest.mark.slow)])
def test_recurrent_layers_of_few_steps_are_unrolled(name):
    make, shape, _ = MODELS[name]
    model, x = make(), torch.randn(shape)
    module = tvm_rammer.compile(_exported(model, x))
    np.testing.assert_allclose(module.leaves(x)[0].numpy(), model(x)[0].detach().numpy(), rtol=1e-4, atol=1e-5)
    assert module.report()["launches"] == 1


def test_a_symbolic_dimension_by_its_name():
    batch = torch.export.Dim("batch", min=2, max=9)
    model, x = torch.nn.Linear(4, 3), torch.randn(5, 4)
    program = _exported(model, torch.randn(3, 4), dynamic_shapes=({0: batch},))
    for module in (tvm_rammer.compile(program), tvm_rammer.compile(program, shapes={"input": (5, 4)})):
        np.testing.assert_allclose(module(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_an_operator_that_is_lacking_is_named():
    class Svd(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.svd(x)[1]

    with pytest.raises(tvm_rammer.UnsupportedOperatorError, match=r"aten\._linalg_svd\.default"):
        tvm_rammer.compile(_exported(Svd(), torch.randn(3, 3)))


def test_a_program_that_writes_its_state_is_refused():
    with pytest.raises(tvm_rammer.ModelError, match="the program writes calls, which a compiled module does not"):
        tvm_rammer.compile(_exported(Scaled(), torch.randn(2, 4)))


def test_a_program_is_taken_from_the_cache(tmp_path, with_cache, linear_file):
    path, model, x = linear_file
    for kept, given in enumerate((_exported(model, x), path), 1):
        modules = [tvm_rammer.compile(given, cache=tmp_path) for _ in range(2)]
        assert len(list(tmp_path.iterdir())) == kept
        for module in modules:
            np.testing.assert_allclose(module(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_the_command_line_takes_a_file(linear_file, tmp_path, capsys):
    path, model, x = linear_file
    np.save(tmp_path / "x.npy", x.numpy())
    arguments = ["run", str(path), "--no-cache", "--input", f"input={tmp_path / 'x.npy'}"]
    assert main([*arguments, "--output", str(tmp_path / "y.npz")]) == 0
    (result,) = np.load(tmp_path / "y.npz").values()
    np.testing.assert_allclose(result, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    assert main(["explain", str(path), "--no-cache"]) == 0
    assert "fused_matmul_add" in capsys.readouterr().out


def test_a_file_that_is_no_program_is_an_error(tmp_path):
    path = tmp_path / "broken.pt2"
    path.write_bytes(b"no program")
    with pytest.raises(tvm_rammer.ModelError, match=r"cannot be read as a torch\.export program"):
        tvm_rammer.compile(path)
