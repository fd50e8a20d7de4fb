"""TVM's callback for CUDA text: persistent kernels are compiled at ptxas's default level, all others as TVM does."""

import os

import pytest
import tvm
from tvm.support import nvcc

from tvm_rammer.nvcc.compile import FLAGS, STOCK_FLAGS
from tvm_rammer.persistent_codegen.cuda.pipeline import LEVEL

PERSISTENT, STOCK = 'extern "C" __global__ void k() { rammer_finish(0); }', 'extern "C" __global__ void k() {}'


@pytest.fixture
def flags_of(monkeypatch):
    """Compile a text by TVM's callback; the flags for ptxas that TVM would give to its compiler."""
    seen = []
    monkeypatch.setattr(nvcc, "compile_cuda", lambda *_, **__: seen.append(nvcc._ptxas_option_flags()) or b"code")

    def flags(text):
        assert bytes(tvm.get_global_func("tvm_callback_cuda_compile")(text)) == b"code"
        return seen[-1]

    return flags


def test_levels_are_those_that_were_measured(flags_of, monkeypatch):
    monkeypatch.delenv(LEVEL, raising=False)
    for text, flags in ((PERSISTENT, FLAGS), (STOCK, STOCK_FLAGS)):
        (level,) = [flag for flag in flags_of(text) if "register-usage-level" in flag]
        assert any(level in flag for flag in flags)
    assert LEVEL not in os.environ


def test_a_level_that_somebody_set_stays(flags_of, monkeypatch):
    monkeypatch.setenv(LEVEL, "7")
    assert "--register-usage-level=7" in flags_of(PERSISTENT)
    assert os.environ[LEVEL] == "7"


def test_the_environment_is_as_before_when_the_compiler_fails(monkeypatch):
    monkeypatch.delenv(LEVEL, raising=False)

    def fail(*_, **__):
        raise RuntimeError("no NVRTC")

    monkeypatch.setattr(nvcc, "compile_cuda", fail)
    with pytest.raises(RuntimeError, match="no NVRTC"):
        tvm.get_global_func("tvm_callback_cuda_compile")(PERSISTENT)
    assert LEVEL not in os.environ
