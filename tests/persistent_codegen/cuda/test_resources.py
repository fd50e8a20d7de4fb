"""Reading ptxas, and what fits on a GPU."""

import shutil
from dataclasses import replace

import pytest

from tests.emulation.programs import plan
from tests.marks import needs_nvcc
from tests.persistent_codegen.cuda.programs import module
from tvm_rammer.device import preset
from tvm_rammer.errors import ResidencyError, ToolError
from tvm_rammer.nvcc import measure_resources
from tvm_rammer.nvcc.ptxas import Resources, parse_report
from tvm_rammer.persistent_codegen.cuda.resources import check_residency

REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 96 registers, used 2 barriers, 8 bytes cumulative stack size, 2048 bytes smem, 416 bytes cmem[0]
"""
H200 = preset("cuda:h200")


def test_a_report_is_read():
    assert parse_report(REPORT) == Resources(96, 2048, 12, 8, 2)


def test_a_report_without_a_kernel_is_an_error():
    with pytest.raises(ToolError, match="no kernel"):
        parse_report("ptxas info    : 0 bytes gmem\n")


def test_residency_counts_the_scarcest_resource():
    small = Resources(registers=32, static_shared_bytes=0, spill_bytes=0, stack_bytes=0, barriers=1)
    assert check_residency(H200, 256, small, 132) == 8
    assert check_residency(H200, 256, replace(small, registers=128), 132) == 2
    assert check_residency(H200, 256, small, 132, dynamic_bytes=100 * 1024) == 2


def test_a_grid_that_does_not_fit_is_refused_with_numbers():
    large = Resources(registers=255, static_shared_bytes=0, spill_bytes=0, stack_bytes=0, barriers=1)
    with pytest.raises(ResidencyError, match=r"133 vEUs.*132 units.*1 blocks.*256.*255 registers.*at most 132"):
        check_residency(H200, 256, large, 133)


@needs_nvcc
@pytest.mark.parametrize("target", ["cuda:h200", "cuda:a100"])
def test_two_blocks_a_unit_are_resident_where_the_plan_has_them(target):
    # Two units stand for all, so that plans are small: three lanes need two blocks on one of them.
    device = replace(preset(target), units=2)
    for veus, blocks in ((2, 1), (3, 2), (4, 2)):
        (built,) = plan(module("two_matmuls"), veus, device)
        threads = built.cuda.threads
        assert built.source.count(f"__launch_bounds__({threads}, {blocks})") == 2  # declared, defined
        needs = measure_resources(built.source, device.arch)
        assert needs.spill_bytes == 0
        assert check_residency(device, threads, needs, veus, built.cuda.shared_bytes) >= blocks


def test_a_missing_nvcc_is_an_error(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ToolError, match="install"):
        measure_resources("", "sm_90")


@needs_nvcc
def test_an_old_architecture_and_a_wrong_text_are_errors():
    with pytest.raises(ToolError, match="sm_70"):
        measure_resources("__global__ void k() {}", "sm_70")
    with pytest.raises(ToolError, match="rejects"):
        measure_resources("this is no CUDA", "sm_90")
