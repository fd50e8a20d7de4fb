"""Devices by name, and the device of a TVM target.

Figures of the GPU presets are the vendor's published ones. What launches and synchronisation cost was measured on an
H200 (docs/gpu-results.md); for older GPUs they are those that others measured on an H100 (docs/architecture.md), and
are to be measured again on each device.
"""

import json
import pathlib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ..errors import TargetError
from .host import measured_cpu
from .processors import MACHINES
from .spec import MACHINE_NAMES, DeviceSpec

_MEASURED, _OF_OTHERS = (3.4, 0.53, 0.58, 0.86), (2.1, 1.3, 0.6, 1.1)
"""Microseconds of a launch, an edge of a CUDA graph, a signal and a barrier."""


def _gpu(
    name: str, arch: str, units: int, clock: float, memory: float, cache: float, cache_mb: int, kb: int
) -> DeviceSpec:
    launch, node, signal, barrier = _MEASURED if arch == "sm_90" else _OF_OTHERS
    return DeviceSpec(
        name=name, kind="cuda", arch=arch, units=units, clock_ghz=clock,
        flops_per_cycle=256 if arch == "sm_90" else 128,
        vector_bytes=16, memory_gbps=memory, cache_gbps=cache, cache_bytes=cache_mb << 20, unit_bytes=kb << 10,
        launch_us=launch, node_us=node, signal_us=signal, barrier_us=barrier, threads_per_unit=2048,
        threads_per_block=1024, registers_per_unit=65536, blocks_per_unit=32, shared_per_block=(kb - 1) << 10, warp=32,
    )  # fmt: skip


PRESETS = {
    "cuda:h200": _gpu("cuda:h200", "sm_90", 132, 1.98, 4800, 5500, 60, 228),
    "cuda:h100": _gpu("cuda:h100", "sm_90", 132, 1.98, 3350, 5500, 50, 228),
    "cuda:a100": _gpu("cuda:a100", "sm_80", 108, 1.41, 1555, 4500, 40, 164),
    "cuda:v100": _gpu("cuda:v100", "sm_70", 80, 1.53, 900, 2500, 6, 96),
}
"""GPUs by name. `cuda:v100` is for planning: CUDA 13 no longer compiles for it."""


TF32 = "+tf32"
"""Behind the name of a GPU: products of single precision may be those of TF32."""


def preset(name: str) -> DeviceSpec:
    """Look a device up by its name, or read it from a JSON file, such as `device.json` of a GPU bundle's results.

    Parameters
    ----------
    name : str
        A name behind which `+tf32` stands is that of a GPU whose tensor cores may multiply numbers of single precision.

    Raises
    ------
    TargetError
        The name is not known, the file is no device, or the device has no TF32.
    """
    if name.endswith(TF32):
        device = preset(name.removesuffix(TF32))
        if device.compute_capability < 80:
            raise TargetError(f"{device.name} has no TF32, so {name!r} is no target; leave out {TF32!r}")
        return replace(device, name=name, tf32=True)
    if name == "cpu":
        return measured_cpu()
    if name in PRESETS:
        return PRESETS[name]
    if name.endswith(".json"):
        return _read(name)
    raise TargetError(
        f"unknown target {name!r}; give one of cpu, {', '.join(PRESETS)}, a .json file with the figures of a device, "
        "a tvm Target or a DeviceSpec"
    )


def _read(path: str) -> DeviceSpec:
    """A device from a file with its figures, by name."""
    try:
        given = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TargetError(
            f"the device in {path!r} cannot be read: {error}; give a .json file of its figures"
        ) from error
    kinds = {field.name: field.type for field in fields(DeviceSpec)}
    wrong = [k for k, v in given.items() if k not in kinds or not _fits(v, kinds[k])] if isinstance(given, dict) else []
    try:
        if not isinstance(given, dict) or wrong or given.get("kind") not in ("cpu", "cuda"):
            raise TypeError(f"wrong are {', '.join(wrong) or 'kind'}")
        return DeviceSpec(**given)
    except TypeError as error:
        raise TargetError(
            f"{path!r} is no device: {error}; it holds the figures of a tvm_rammer.DeviceSpec, as gpu_bench writes them"
        ) from error


def _fits(value: object, kind: object) -> bool:
    """Whether a figure is a number that is not negative, a whole one for int; else a bool or a string."""
    if kind is bool:
        return isinstance(value, bool)
    if kind not in (int, float):
        return isinstance(value, str)
    return isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool) and value >= 0


def from_target_config(config: Mapping[str, Any]) -> DeviceSpec:
    """Describe the device of a TVM target.

    Parameters
    ----------
    config : mapping
        What `tvm.target.Target(...).export()` returns.

    Returns
    -------
    DeviceSpec
        A CPU with the target's vectors and `num-cores`, and otherwise this machine's figures, which compiles for just
        this target; or the GPU preset of the same `arch`.

    Raises
    ------
    TargetError
        Neither a CPU of LLVM nor a GPU of CUDA, an `arch` without a preset, or a CPU for which there are no workers.
    """
    kind = config.get("kind")
    if kind == "llvm":
        _check_triple(str(config.get("mtriple") or ""))
        host, plain = measured_cpu(), _plain(config)
        cores, vector = int(plain.get("num-cores") or host.units), vector_bytes(config)
        return replace(
            host,
            arch=str(plain.get("mcpu") or "generic"),
            vector_bytes=vector,
            flops_per_cycle=min(vector if vector > 16 else 8, host.flops_per_cycle),
            dot=byte_products(config),
            units=max(1, cores),
            target=json.dumps(plain, sort_keys=True),
        )
    if kind == "cuda":
        arch = str(config.get("arch", "")).removesuffix("a")
        for spec in PRESETS.values():
            if spec.arch == arch:
                return replace(spec, arch=str(config["arch"]))
        raise TargetError(f"no preset has the CUDA architecture {config.get('arch')!r}; pass a DeviceSpec instead")
    raise TargetError(f"target kind {kind!r} has no vDevice; use llvm or cuda")


def _check_triple(triple: str) -> None:
    """Workers sleep and wake by system calls of Linux, whose numbers are known for some processors."""
    machine, *others = triple.split("-")
    if triple and (MACHINE_NAMES.get(machine, machine) not in MACHINES or not any("linux" in o for o in others)):
        raise TargetError(
            f"there are no workers for the mtriple {triple!r}, only for Linux on {', '.join(MACHINES)}; "
            "compile for one of these, or by TVM's own pipeline"
        )


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a user may write into a target: without what TVM derives from it."""
    derived = ("keys", "tag")
    kept = {k: v for k, v in config.items() if k not in derived and not k.startswith("feature.") and v is not None}
    return {k: list(map(str, v)) if not isinstance(v, str | int | Mapping) else v for k, v in kept.items()}


def vector_bytes(config: Mapping[str, Any]) -> int:
    """Width of the vector registers that LLVM uses for a target."""
    if _has(config, "avx512f", "avx512bw", "avx512dq", "avx512vl"):
        return 64
    return 32 if _has(config, "avx2", "fma") else 16


def byte_products(config: Mapping[str, Any]) -> int:
    """Products of bytes that one instruction of a target adds to an element of a vector (`DeviceSpec.dot`)."""
    if vector_bytes(config) == 64 and _has(config, "avx512vnni"):
        return 4
    return 2 if _has(config, "sse2") else 1


def _has(config: Mapping[str, Any], *features: str) -> bool:
    """Whether LLVM uses all of these features for a target."""
    import tvm

    target = tvm.target.Target(_plain(config))
    return all(tvm.target.codegen.target_has_features(feature, target) for feature in features)
