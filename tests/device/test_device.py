"""Presets, the devices of TVM targets, this machine's processor, and occupancy."""

import os

import pytest
import tvm

from tvm_rammer.device import PRESETS, from_target_config, host_cpu, preset
from tvm_rammer.errors import TargetError


@pytest.mark.parametrize("name", ["cpu", *PRESETS])
def test_a_preset_is_a_tvm_target_and_back(name):
    device = preset(name)
    again = from_target_config(tvm.target.Target(device.target_config()).export())
    assert (again.kind, again.arch, again.units) == (device.kind, device.arch, device.units)


def test_a_target_says_how_many_cores_and_how_wide_the_vectors():
    device = from_target_config({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 3})
    assert (device.units, device.vector_bytes, device.arch) == (3, 32, "x86-64-v3")
    assert from_target_config({"kind": "llvm"}).units == host_cpu().units


@pytest.mark.parametrize(("text", "cores"), [("3", 3), ("1", 1), ("0", None), ("many", None), ("", None)])
def test_a_cpu_has_as_many_veus_as_the_pool_has_workers(monkeypatch, text, cores):
    monkeypatch.setenv("TVM_NUM_THREADS", text)
    assert host_cpu().units == (cores or len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kind": "opencl"}, "target kind 'opencl' has no vDevice"),
        ({"kind": "cuda", "arch": "sm_61"}, "no preset has the CUDA architecture 'sm_61'"),
    ],
)
def test_a_target_without_a_vdevice(config, message):
    with pytest.raises(TargetError, match=message):
        from_target_config(config)


def test_resident_blocks_are_limited_by_each_resource():
    h200 = preset("cuda:h200")
    assert h200.resident_blocks(256, 32, 0) == 8  # 2048 threads
    assert h200.resident_blocks(256, 128, 0) == 2  # 65536 registers
    assert h200.resident_blocks(32, 16, 0) == 32  # 32 blocks
    assert h200.resident_blocks(32, 16, 100 * 1024) == 2  # 228 KB
    assert h200.resident_blocks(256, 255, 0) == 1
    assert h200.resident_blocks(2048, 16, 0) == 0
    assert h200.resident_blocks(32, 16, 228 * 1024) == 0
    assert h200.resident_blocks(32, 200, 0) == 8  # two warps of 6,400 registers in each part's 16,384
    assert h200.resident_blocks(96, 168, 0) == 4
    assert h200.resident_blocks(64, 32, 14500) == 14  # 14,592 and 1,024 bytes each of 233,472
