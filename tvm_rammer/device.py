"""A device is a value: everything a stage may know about the hardware, and no question asked of a GPU.

Figures of the GPU presets are the vendor's published ones; prices of synchronisation were measured by
others on an H100 (docs/architecture.md) and are to be measured again on each device.
"""

import os
import pathlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from .errors import TargetError


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A vDevice's hardware (Rammer, 3.2).

    Parameters
    ----------
    name : str
    kind : {"cpu", "cuda"}
    arch : str
        LLVM's `mcpu` for a CPU, `sm_NN` for a GPU.
    units : int
        Cores or streaming multiprocessors.
    clock_ghz : float
    flops_per_cycle : int
        Single-precision operations (a multiply-add counts two) of one unit in one cycle.
    vector_bytes : int
        Width of a vector register (CPU) or of one thread's widest load (GPU).
    memory_gbps, cache_gbps : float
        Bandwidth of main memory and of the last-level cache, whole device, in GB/s.
    cache_bytes : int
        Size of that cache.
    unit_bytes : int
        A unit's own fast memory: L2 of a core, shared memory of an SM.
    unit_gbps : float
        Bandwidth of one unit to it, in GB/s, where it is a cache that keeps what one rTask reads for the next; else 0.
    launch_us, signal_us, barrier_us : float
        Prices in microseconds: a launch; a counter from the release to the one who acquires it; a barrier
        over all vEUs.
    threads_per_unit, threads_per_block, registers_per_unit, blocks_per_unit, shared_per_block, warp : int
        Limits of a GPU; a CPU has one thread a unit.
    """

    name: str
    kind: Literal["cpu", "cuda"]
    arch: str
    units: int
    clock_ghz: float
    flops_per_cycle: int
    vector_bytes: int
    memory_gbps: float
    cache_gbps: float
    cache_bytes: int
    unit_bytes: int
    launch_us: float
    signal_us: float
    barrier_us: float
    threads_per_unit: int = 1
    threads_per_block: int = 1
    registers_per_unit: int = 0
    blocks_per_unit: int = 1
    shared_per_block: int = 0
    warp: int = 1
    unit_gbps: float = 0.0

    def target_config(self) -> dict[str, Any]:
        """The same device as the dictionary that `tvm.target.Target` takes."""
        if self.kind == "cpu":
            config = {"kind": "llvm", "mcpu": self.arch, "num-cores": self.units}
            # LLVM would use half of a 64-byte register in the loops that it makes vectors of itself.
            return config | {"mattr": ["-prefer-256-bit"]} if self.vector_bytes == 64 else config
        return {
            "kind": "cuda",
            "arch": self.arch,
            "max_shared_memory_per_block": min(self.shared_per_block, 48 * 1024),
            "max_threads_per_block": self.threads_per_block,
            "thread_warp_size": self.warp,
            "registers_per_block": self.registers_per_unit,
            "host": {"kind": "llvm"},
        }

    def resident_blocks(self, threads: int, registers: int, shared_bytes: int) -> int:
        """Blocks of a kernel that one unit holds at once (0: not even one).

        Parameters
        ----------
        threads : int
            Threads of a block.
        registers : int
            Registers of a thread, as ptxas reports them.
        shared_bytes : int
            Static and dynamic shared memory of a block.

        Notes
        -----
        Registers are given out to warps, 256 at a time; each block reserves 1 KB of shared memory.
        """
        if self.kind == "cpu":
            return 1
        if threads > self.threads_per_block or shared_bytes > self.shared_per_block:
            return 0
        warps = -(-threads // self.warp)
        by_registers = self.registers_per_unit // max(1, warps * (-(-registers * self.warp // 256) * 256))
        by_threads = self.threads_per_unit // (warps * self.warp)
        by_shared = self.unit_bytes // (shared_bytes + 1024)
        return min(by_registers, by_threads, by_shared, self.blocks_per_unit)


def _gpu(
    name: str, arch: str, units: int, clock: float, memory: float, cache: float, cache_mb: int, kb: int
) -> DeviceSpec:
    return DeviceSpec(
        name=name, kind="cuda", arch=arch, units=units, clock_ghz=clock,
        flops_per_cycle=256 if arch == "sm_90" else 128,
        vector_bytes=16, memory_gbps=memory, cache_gbps=cache, cache_bytes=cache_mb << 20, unit_bytes=kb << 10,
        launch_us=2.1, signal_us=0.6, barrier_us=1.1, threads_per_unit=2048, threads_per_block=1024,
        registers_per_unit=65536, blocks_per_unit=32, shared_per_block=(kb - 1) << 10, warp=32,
    )  # fmt: skip


PRESETS = {
    "cuda:h200": _gpu("cuda:h200", "sm_90", 132, 1.98, 4800, 5500, 50, 228),
    "cuda:h100": _gpu("cuda:h100", "sm_90", 132, 1.98, 3350, 5500, 50, 228),
    "cuda:a100": _gpu("cuda:a100", "sm_80", 108, 1.41, 1555, 4500, 40, 164),
    "cuda:v100": _gpu("cuda:v100", "sm_70", 80, 1.53, 900, 2500, 6, 96),
}
"""GPUs by name. `cuda:v100` is for planning: CUDA 13 no longer compiles for it."""


def host_cpu() -> DeviceSpec:
    """Describe this machine's processor: the cores that this process may use, and its vector unit.

    `TVM_NUM_THREADS`, where it is set, says how many cores: TVM's thread pool heeds it too.

    Returns
    -------
    DeviceSpec
        Clock and bandwidths are typical figures, not measured.
    """
    flags = _cpu_flags()
    if platform.machine() not in ("x86_64", "AMD64"):
        arch, vector, flops = "generic", 16, 16
    elif {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= flags:
        arch, vector, flops = "x86-64-v4", 64, 64
    elif {"avx2", "fma"} <= flags:
        arch, vector, flops = "x86-64-v3", 32, 32
    else:
        arch, vector, flops = "x86-64", 16, 8
    units = _cores()
    return DeviceSpec(
        name="cpu", kind="cpu", arch=arch, units=units, clock_ghz=4.0, flops_per_cycle=flops,
        vector_bytes=vector, memory_gbps=40, cache_gbps=100 * units, cache_bytes=32 << 20, unit_bytes=1 << 20,
        launch_us=2.0, signal_us=0.1, barrier_us=0.1, unit_gbps=200,
    )  # fmt: skip


def _cores() -> int:
    """Workers that TVM's thread pool will have: as many as the user says, else one for each core."""
    wanted = os.environ.get("TVM_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu_flags() -> set[str]:
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    return {flag for line in text.splitlines() if line.startswith("flags") for flag in line.split(":")[1].split()}


def preset(name: str) -> DeviceSpec:
    """Look a device up by its name.

    Raises
    ------
    TargetError
        The name is not known.
    """
    if name == "cpu":
        return host_cpu()
    if name in PRESETS:
        return PRESETS[name]
    raise TargetError(f"unknown target {name!r}; give one of cpu, {', '.join(PRESETS)}, a tvm Target or a DeviceSpec")


def from_target_config(config: Mapping[str, Any]) -> DeviceSpec:
    """Describe the device of a TVM target.

    Parameters
    ----------
    config : mapping
        What `tvm.target.Target(...).export()` returns.

    Returns
    -------
    DeviceSpec
        This machine's CPU with the target's `mcpu` and `num-cores`, or the GPU preset of the same `arch`.

    Raises
    ------
    TargetError
        Neither a CPU of LLVM nor a GPU of CUDA, or an `arch` without a preset.
    """
    kind = config.get("kind")
    if kind == "llvm":
        host = host_cpu()
        mcpu = str(config.get("mcpu") or host.arch)
        vector = _VECTOR_BYTES.get(mcpu, host.vector_bytes if mcpu == host.arch else 16)
        cores = int(config.get("num-cores") or host.units)
        return replace(host, arch=mcpu, vector_bytes=vector, units=max(1, cores))
    if kind == "cuda":
        arch = str(config.get("arch", "")).removesuffix("a")
        for spec in PRESETS.values():
            if spec.arch == arch:
                return replace(spec, arch=str(config["arch"]))
        raise TargetError(f"no preset has the CUDA architecture {config.get('arch')!r}; pass a DeviceSpec instead")
    raise TargetError(f"target kind {kind!r} has no vDevice; use llvm or cuda")


_VECTOR_BYTES = {"x86-64": 16, "x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64, "generic": 16}
