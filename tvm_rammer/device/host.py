"""The processor of this machine."""

import contextlib
import functools
import pathlib
import platform
from dataclasses import replace

from .. import debug
from ..errors import first_line
from .cores import chosen_workers, usable_cores
from .measured import Measured, doubtful, measured_path, read_measured, write_measured
from .spec import DeviceSpec

CACHES = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")
TYPICAL_WAKE_US = 20.0
"""Of a thread that sleeps, on a Linux that is not busy."""


def host_cpu() -> DeviceSpec:
    """Describe this machine's processor: the cores that this process may use, and its vector unit.

    `TVM_NUM_THREADS` or `OMP_NUM_THREADS`, where one is set, says how many cores: TVM's thread pool heeds them too.

    Returns
    -------
    DeviceSpec
        Clock, bandwidths and costs of signals as they were measured (`measured_cpu`); typical ones where nothing was.
    """
    return _as_measured(typical_cpu())


def measured_cpu() -> DeviceSpec:
    """The same, and measure it where that was not done before; `RAMMER_MEASURE=0` forbids it."""
    typical = typical_cpu()
    path = _path(typical)
    if debug.measures() and path not in _MADE and read_measured(path) is None:
        _MADE[path] = None
        try:
            from .measure import measure_cpu

            _MADE[path] = found = _believed(measure_cpu(typical), typical)
        except Exception as error:  # whatever TVM does not like here: figures that are typical will do
            debug.say(1, f"this processor cannot be measured: {first_line(error)}")
        else:
            write_measured(path, found)
    return _as_measured(typical)


def _believed(found: Measured, typical: DeviceSpec) -> Measured:
    """What was measured, with typical figures in the place of those that cannot be."""
    usual = Measured(
        clock_ghz=typical.clock_ghz, flops_per_cycle=typical.flops_per_cycle, unit_gbps=typical.unit_gbps,
        core_cache_gbps=typical.cache_gbps / typical.units, memory_gbps=typical.memory_gbps,
        signal_us=typical.signal_us, wake_us=typical.wake_us, step_cycles=typical.step_cycles,
        loads_per_cycle=typical.loads_per_cycle, line_ns=typical.line_ns,
    )  # fmt: skip
    names = doubtful(found)
    for name in names:
        debug.say(1, f"{name} was measured as {getattr(found, name)}, which is not believed: {getattr(usual, name)}")
    return replace(found, **{name: getattr(usual, name) for name in names})


_MADE: dict[pathlib.Path, Measured | None] = {}
"""What this process measured itself, by the file to keep it in: it does so once, even if that cannot be written."""


def figures_file() -> pathlib.Path:
    """Where the figures of this machine's processor are kept, once they were measured."""
    return _path(typical_cpu())


def _path(typical: DeviceSpec) -> pathlib.Path:
    return measured_path(typical.processor, typical.arch)


def _as_measured(typical: DeviceSpec) -> DeviceSpec:
    """The processor with what was measured of it, where something was."""
    path = _path(typical)
    found = _MADE.get(path) or read_measured(path) if debug.measures() else None
    return typical if found is None else _with(typical, found)


def _with(typical: DeviceSpec, found: Measured) -> DeviceSpec:
    return replace(
        typical, clock_ghz=found.clock_ghz, flops_per_cycle=found.flops_per_cycle, unit_gbps=found.unit_gbps,
        cache_gbps=found.core_cache_gbps * typical.units, memory_gbps=found.memory_gbps,
        signal_us=found.signal_us, barrier_us=found.signal_us, wake_us=found.wake_us, step_cycles=found.step_cycles,
        loads_per_cycle=found.loads_per_cycle, line_ns=found.line_ns,
    )  # fmt: skip


def typical_cpu() -> DeviceSpec:
    """This machine's processor as Linux describes it, with a typical clock, operations a cycle and bandwidths."""
    flags, dot = cpu_flags(), 2
    if platform.machine() not in ("x86_64", "AMD64"):
        arch, vector, flops, dot = "generic", 16, 16, 1
    elif {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= flags:
        arch, vector, flops = "x86-64-v4", 64, 64
        dot = 4 if _VNNI in flags else 2
    elif {"avx2", "fma"} <= flags:
        arch, vector, flops = "x86-64-v3", 32, 32
    else:
        arch, vector, flops = "x86-64", 16, 8
    units = chosen_workers() or usable_cores()
    private, shared = cache_sizes()
    return DeviceSpec(
        name="cpu", kind="cpu", arch=arch, units=units, clock_ghz=4.0, flops_per_cycle=flops,
        vector_bytes=vector, memory_gbps=40, cache_gbps=100 * units, cache_bytes=shared, unit_bytes=private,
        launch_us=2.0, signal_us=0.1, barrier_us=0.1, wake_us=TYPICAL_WAKE_US, unit_gbps=200, dot=dot,
        processor=_processor(),
    )  # fmt: skip


@functools.cache
def cache_sizes(folder: pathlib.Path = CACHES) -> tuple[int, int]:
    """Bytes of a core's own second-level cache, and of the last-level cache; typical ones where Linux does not say."""
    found = {}
    for index in folder.glob("index*"):
        with contextlib.suppress(OSError, ValueError):
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction" and size.endswith("K"):
                found[int(level)] = int(size.removesuffix("K")) << 10
    private = found.get(2, 1 << 20)
    return private, max(found.get(3, 32 << 20), private)


def cpu_flags() -> set[str]:
    """What Linux says that this processor can; empty where it says nothing."""
    return set(_cpu_info().get("flags", "").split())


def _processor() -> str:
    """Model and family, such as "AMD EPYC, family 26": virtual machines leave the number out of the model's name."""
    info = _cpu_info()
    parts = [info.get("model name") or platform.processor()]
    parts += [f"{name} {info[key]}" for key, name in _PROCESSOR_DETAILS.items() if key in info]
    return ", ".join(part for part in parts if part)


_PROCESSOR_DETAILS = {"cpu family": "family", "CPU implementer": "implementer", "CPU part": "part"}
"""Fields of /proc/cpuinfo, the last two on ARM, and what they are called here."""


@functools.cache
def _cpu_info() -> dict[str, str]:
    """What Linux says of the first core; asked once, since machines of many cores take their time to answer."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def why_not_here(device: DeviceSpec) -> str:
    """Why code for a CPU cannot run on this machine's processor; empty where it can."""
    here = platform.machine()
    if device.machine and device.machine != here.replace("AMD64", "x86_64"):
        return f"it is code for {device.machine}, and this processor is {here}"
    needed = _FLAGS_OF_WIDTH.get(device.vector_bytes, set()) if here in ("x86_64", "AMD64") else set()
    missing = (needed | ({_VNNI} if device.dot == 4 else set())) - cpu_flags()
    return f"this processor has no {', '.join(sorted(missing))}" if missing else ""


_VNNI = "avx512_vnni"
"""Linux's name of what adds up products of four bytes."""
_FLAGS_OF_WIDTH = {32: {"avx2", "fma"}, 64: {"avx512f", "avx512bw", "avx512dq", "avx512vl"}}
