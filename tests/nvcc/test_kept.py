"""What ptxas said of a program is kept, and the code of a cubin is measured."""

import subprocess

import pytest

from tvm_rammer.errors import ToolError
from tvm_rammer.nvcc import code_bytes, kept
from tvm_rammer.nvcc.compile import Compiled

REPORT = """ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used {} registers, used 1 barriers, 360 bytes cmem[0]
"""


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The texts that nvcc was given, in a fresh cache; each needs as many registers as it has letters."""
    texts = []

    def compile_cuda(source, arch, *, time_limit_s):
        texts.append((source, arch))
        return Compiled(b"", REPORT.format(len(source)))

    monkeypatch.setenv("RAMMER_CACHE", str(tmp_path))
    monkeypatch.setattr(kept, "compile_cuda", compile_cuda)
    monkeypatch.setattr(kept, "nvcc_version", lambda: "13.0.88")
    return texts


def test_a_program_is_compiled_once(compiled):
    assert [kept.measure_resources("text", "sm_90").registers for _ in range(3)] == [4, 4, 4]
    assert compiled == [("text", "sm_90")]
    kept.measure_resources("text", "sm_80")
    assert kept.measure_resources("texts", "sm_90").registers == 5
    assert len(compiled) == 3


def test_another_nvcc_or_a_broken_file_compiles_again(compiled, monkeypatch, tmp_path):
    kept.measure_resources("text", "sm_90")
    (file,) = (tmp_path / "ptxas" / "programs").iterdir()
    file.write_text("{")
    assert kept.measure_resources("text", "sm_90").registers == 4
    monkeypatch.setattr(kept, "nvcc_version", lambda: "13.1")
    kept.measure_resources("text", "sm_90")
    assert len(compiled) == 3


def test_code_is_counted_by_function(tmp_path):
    source = tmp_path / "code.c"
    source.write_text("int small(void) { return 1; }\nint large(int x) { while (x & 7) x += x / 3; return x * 5; }\n")
    made = tmp_path / "code.o"
    subprocess.run(["gcc", "-O1", "-ffunction-sections", "-c", source, "-o", made], check=True, timeout=300)
    found = code_bytes(made.read_bytes())
    assert found.keys() == {"small", "large"} and 0 < found["small"] < found["large"] < 200
    with pytest.raises(ToolError, match="not as an ELF file of 64 bits"):
        code_bytes(b"PTX text")
