"""What was measured of this machine's processor, once, and is kept in the cache folder."""

import contextlib
import hashlib
import json
import os
import pathlib
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from .. import debug


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of a processor, rounded so that measuring again mostly gives the same.

    Parameters
    ----------
    clock_ghz : float
        While it multiplies vectors: some processors are slower then.
    flops_per_cycle : int
        Single-precision operations of a core in a cycle, with the vectors that code is made for.
    step_cycles : float
        Cycles of a step of a register tile beside its multiply-adds.
    loads_per_cycle : float
        Loads of vectors and of broadcast elements that a core does in a cycle, beside its multiply-adds.
    unit_gbps : float
        Bandwidth of a core to its own second-level cache, in GB/s.
    core_cache_gbps : float
        Bandwidth of a core to the last-level cache, in GB/s.
    line_ns : float
        Of a step of a register tile that reads a line of the last-level cache, each on another page, in nanoseconds; 0
        where that takes hardly longer than other steps.
    memory_gbps : float
        Bandwidth of all cores to memory, in GB/s.
    signal_us : float
        From a store on one core until a thread that polls on another has seen it, in microseconds.
    wake_us : float
        From the call that wakes a thread until it runs, in microseconds.
    """

    clock_ghz: float
    flops_per_cycle: int
    step_cycles: float
    loads_per_cycle: float
    unit_gbps: float
    core_cache_gbps: float
    line_ns: float
    memory_gbps: float
    signal_us: float
    wake_us: float


LIMITS = {
    "clock_ghz": (0.25, 10.0), "flops_per_cycle": (2, 1024), "step_cycles": (0.0, 4.0),
    "loads_per_cycle": (0.5, 8.0), "line_ns": (0.0, 100.0), "unit_gbps": (1.0, 10_000.0),
    "core_cache_gbps": (1.0, 10_000.0), "memory_gbps": (0.5, 10_000.0), "signal_us": (0.005, 10.0),
    "wake_us": (0.5, 500.0),
}  # fmt: skip
"""The least and the most that is believed of each figure. Beyond that others had the cores while it was measured: a
thread that waits for one takes longer by a time slice, thousands of microseconds."""


def doubtful(figures: Measured) -> list[str]:
    """The names of figures that are beyond what is believed."""
    found = asdict(figures)
    return [name for name, (least, most) in LIMITS.items() if not least <= found[name] <= most]


def measured_path(processor: str, arch: str) -> pathlib.Path:
    """Where the figures of a processor are kept: another one, other vectors, other figures have a file of their own."""
    key = hashlib.sha256(repr((processor, arch, [field.name for field in fields(Measured)])).encode()).hexdigest()[:16]
    return debug.cache_folder() / f"cpu-{key}.json"


def read_measured(path: pathlib.Path) -> Measured | None:
    """What was measured; None where nothing was, or what is there cannot be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return _checked(found)


def _checked(found: Any) -> Measured | None:
    names = [field.name for field in fields(Measured)]
    if not isinstance(found, Mapping) or set(found) != set(names):
        return None
    numbers = [found[name] for name in names]
    good = all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
    figures = Measured(**found) if good and isinstance(found["flops_per_cycle"], int) else None
    return figures if figures and not doubtful(figures) else None


def write_measured(path: pathlib.Path, figures: Measured) -> None:
    """Keep figures; where that cannot be done they are measured again next time."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=path.parent, prefix=".cpu-")
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(figures), file, indent=1)
        os.replace(made, path)
