"""Presets, the devices of TVM targets, this machine's processor, and occupancy."""

import json
import os
from dataclasses import asdict, replace

import pytest
import tvm

from tvm_rammer.device import PRESETS, from_target_config, host_cpu, preset
from tvm_rammer.errors import TargetError


@pytest.mark.parametrize("name", ["cpu", *PRESETS])
def test_a_preset_is_a_tvm_target_and_back(name):
    device = preset(name)
    again = from_target_config(tvm.target.Target(device.target_config()).export())
    assert (again.kind, again.arch, again.units) == (device.kind, device.arch, device.units)


@pytest.mark.parametrize("name", ["cuda:h200", "cuda:a100"])
def test_a_gpu_may_be_asked_for_tf32(name):
    assert preset(f"{name}+tf32") == replace(preset(name), name=f"{name}+tf32", tf32=True)
    assert not preset(name).tf32


@pytest.mark.parametrize("name", ["cpu", "cuda:v100"])
def test_what_has_no_tf32_is_refused_with_it(name):
    with pytest.raises(TargetError, match=r"has no TF32, so .*\+tf32' is no target"):
        preset(f"{name}+tf32")


@pytest.mark.parametrize(("tf32", "arch", "fine"), [(True, "sm_90a", 1), (1, "sm_90", 0), ("yes", "sm_90", 0)])
def test_a_file_may_say_tf32(tmp_path, tf32, arch, fine):
    path = tmp_path / "device.json"
    path.write_text(json.dumps(asdict(preset("cuda:h200")) | {"tf32": tf32, "arch": arch}), encoding="utf-8")
    if fine:
        assert preset(str(path)).tf32 and preset(f"{path}+tf32").compute_capability == 90
        return
    with pytest.raises(TargetError, match="wrong are tf32"):
        preset(str(path))


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
