"""Resources of many kernels at once, and their cache on disk."""

import json
from collections import Counter

import pytest

from tests.emulation.programs import H200
from tests.functions import chosen
from tests.marks import needs_nvcc
from tests.rkernel_gen.cuda.operators import function_of
from tvm_rammer.ir import align
from tvm_rammer.nvcc import ptxas as tool
from tvm_rammer.rkernel_gen.cuda import resources as ptxas
from tvm_rammer.rkernel_gen.cuda.resources import resources, without_spills

SMALL = tool.Resources(registers=32, static_shared_bytes=0, spill_bytes=0, stack_bytes=0, barriers=0)
TWO = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k1_kernel' for 'sm_90'
ptxas info    : Function properties for k1_kernel
    0 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 90 registers, used 1 barriers, 512 bytes smem
ptxas info    : Compiling entry function 'k0_kernel' for 'sm_90'
ptxas info    : Function properties for k0_kernel
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers
"""


@pytest.fixture
def kernels():
    return chosen("elementwise", function_of("elementwise"), H200)[:3]


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """A compiler that says which files it got, and what its kernels need: their position among all."""
    files = []

    def reports(source, arch, time_limit_s):
        files.append((source, arch))
        names = [n for n in (f"k{i}_kernel" for i in range(99)) if f"{n}(" in source]
        return {n: tool.Resources(32 + i, 0, 0, 0, 0) for i, n in enumerate(names)}

    monkeypatch.setenv("RAMMER_CACHE", str(tmp_path))
    monkeypatch.setattr(ptxas, "nvcc_version", lambda: "1.2.3")
    monkeypatch.setattr(ptxas, "_reports", reports)
    return files


def test_a_report_on_several_kernels_is_read_by_their_names():
    found = tool.parse_reports(TWO)
    assert found == {"k0_kernel": SMALL, "k1_kernel": tool.Resources(90, 512, 4, 0, 1)}


def test_all_kernels_share_a_file_and_are_compiled_once(kernels, compiled):
    first = resources(kernels, H200)
    assert [r.registers for r in first] == [32, 33, 34] and len(compiled) == 1
    assert resources(kernels[::-1], H200) == first[::-1] and len(compiled) == 1


def test_another_architecture_is_another_result(kernels, compiled):
    from tvm_rammer.device import preset

    resources(kernels, H200)
    resources(kernels, preset("cuda:a100"))
    assert [arch for _, arch in compiled] == ["sm_90", "sm_80"]


def test_many_kernels_are_several_files(kernels, compiled, monkeypatch):
    monkeypatch.setattr(ptxas, "KERNELS_PER_FILE", 2)
    assert None not in resources(kernels, H200) and len(compiled) == 2


def test_torn_files_are_made_again(kernels, compiled, tmp_path):
    first = resources(kernels, H200)
    files = sorted(tmp_path.rglob("*.json"))
    assert len(files) == 3 and all(json.loads(f.read_text()) for f in files)
    files[0].write_text('{"registers": 3')
    files[1].write_text("[]")
    assert sorted(r.registers for r in resources(kernels, H200)) != [] and len(compiled) == 2
    assert len(first) == 3 and not list(tmp_path.rglob("*.new"))


def test_what_is_not_known_may_be_left_so(kernels, compiled):
    assert resources(kernels, H200, compile_new=False) == [None] * 3 and not compiled


def test_a_kernel_that_breaks_its_file_is_the_only_one_without_a_result(kernels, compiled, monkeypatch):
    original = ptxas._reports

    def reports(source, arch, time_limit_s):
        broken = ptxas.source_of([kernels[1]], H200) == source or "k1_kernel(" in source
        return {} if broken else original(source, arch, time_limit_s)

    monkeypatch.setattr(ptxas, "_reports", reports)
    found = resources(kernels, H200)
    assert [r is None for r in found] == [False, True, False]


def test_without_nvcc_nothing_is_known(kernels, monkeypatch):
    monkeypatch.setattr(ptxas, "nvcc_version", lambda: None)
    assert resources(kernels, H200) == [None] * 3


@needs_nvcc
def test_ptxas_itself_is_asked(monkeypatch, tmp_path):
    monkeypatch.setenv("RAMMER_CACHE", str(tmp_path))
    kernels = chosen("matmul", function_of("matmul"), H200)[:2]
    for kernel, found in zip(kernels, resources(kernels, H200), strict=True):
        assert 16 <= found.registers <= 255 and found.spill_bytes == 0
        assert align(found.static_shared_bytes) == kernel.spec.shared_bytes  # TVM leaves out the last row's padding


def needs(spilt):
    return tool.Resources(registers=40 + spilt, static_shared_bytes=0, spill_bytes=spilt, stack_bytes=0, barriers=0)


@pytest.mark.parametrize(
    ("spilt", "kept"), [([0, 8, 0], [0, 2]), ([8, 4, 8], [1]), ([None, None, None], [0, 1, 2]), ([0, None, 4], [0])]
)
def test_kernels_that_spill_are_dropped_and_counted(kernels, monkeypatch, spilt, kept):
    monkeypatch.setattr(ptxas, "resources", lambda *_: [None if n is None else needs(n) for n in spilt])
    dropped = Counter()
    found = without_spills({"f": kernels}, H200, dropped)
    assert [k.spec.name for k in found["f"]] == [kernels[i].spec.name for i in kept]
    assert [k.spec.registers for k in found["f"]] == [None if spilt[i] is None else 40 + spilt[i] for i in kept]
    assert dropped["nvcc does not compile it"] == (spilt.count(None) if any(n is not None for n in spilt) else 0)
    assert dropped.total() == 3 - len(kept)


@pytest.mark.parametrize(("registers", "kept"), [([200, 201, 32], [0, 2]), ([255, 240, 255], [1])])
def test_kernels_that_leave_no_registers_to_a_persistent_one_are_dropped(kernels, monkeypatch, registers, kept):
    found = [tool.Resources(n, static_shared_bytes=0, spill_bytes=0, stack_bytes=0, barriers=0) for n in registers]
    monkeypatch.setattr(ptxas, "resources", lambda *_: found)
    left = without_spills({"f": kernels}, H200, Counter())["f"]
    assert [k.spec.registers for k in left] == [registers[i] for i in kept]
