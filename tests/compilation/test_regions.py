"""What becomes of functions whose kernels cannot be lowered, and of kernels that nvcc does not compile."""

import os
import pathlib
import stat

import numpy as np
import pytest

import tvm_rammer
from tests.two_inputs import two_inputs
from tvm_rammer.errors import CodegenError, MissingToolError, ToolError
from tvm_rammer.nvcc import nvcc_version
from tvm_rammer.persistent_codegen.library import RTaskLibrary

X, B = np.ones((2, 16), np.float32), np.ones((2, 32), np.float32)


@pytest.mark.parametrize("error", [CodegenError("too odd"), RuntimeError("Check failed: too odd")])
@pytest.mark.parametrize("explore", [0, 6])
def test_a_function_that_cannot_be_lowered_is_a_stock_call(monkeypatch, error, explore):
    want = tvm_rammer.compile(two_inputs())(X, B)
    lower = RTaskLibrary.function

    def refuse(self, kernel):
        if "matmul" in kernel.spec.function:
            raise error
        return lower(self, kernel)

    monkeypatch.setattr(RTaskLibrary, "function", refuse)
    module = tvm_rammer.compile(two_inputs(), explore=explore)
    assert module.report()["left_to_stock"] == len(module.compilation.stock_calls) == 1
    assert "no kernel of it can become an rTask function" in module.explain()
    assert module.report()["rprogram_launches"] >= 1
    for got, expected in zip(module(X, B), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def fake_nvcc(folder: pathlib.Path, script: str) -> None:
    path = folder / "nvcc"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "Cuda compilation tools, V13.0.88" && exit 0\n{script}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def nvcc(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RAMMER_CACHE", str(tmp_path / "cache"))
    nvcc_version.cache_clear()
    yield lambda script: fake_nvcc(tmp_path, script)
    nvcc_version.cache_clear()


def test_a_text_that_nvcc_rejects_is_an_error(nvcc):
    nvcc("echo 'kernel.cu(1): error: nonsense' >&2; exit 2")
    with pytest.raises(ToolError, match="nvcc rejects the text") as raised:
        tvm_rammer.compile(two_inputs(), target="cuda:h200")
    assert not isinstance(raised.value, MissingToolError)


def test_a_text_that_nvcc_takes_too_long_for_is_an_error(nvcc, monkeypatch):
    nvcc("sleep 5")
    monkeypatch.setattr("tvm_rammer.rkernel_gen.cuda.resources.FILE_LIMIT_S", 0.1)
    monkeypatch.setattr("tvm_rammer.rkernel_gen.cuda.resources.KERNEL_LIMIT_S", 0.1)
    limited = tvm_rammer.persistent_codegen.measure_resources
    monkeypatch.setattr("tvm_rammer.persistent_codegen.measure_resources", lambda *a: limited(*a, time_limit_s=0.1))
    with pytest.raises(ToolError, match=r"nvcc took more than 0\.1 s"):
        tvm_rammer.compile(two_inputs(), target="cuda:h200")


def test_an_architecture_that_nvcc_does_not_know_leaves_residency_unknown(nvcc):
    nvcc("echo \"nvcc fatal : Unsupported gpu architecture 'sm_90'\" >&2; exit 1")
    module = tvm_rammer.compile(two_inputs(), target="cuda:h200")
    (resources,) = module.report()["resources"].values()
    assert "does not compile for sm_90" in resources["unknown"]
