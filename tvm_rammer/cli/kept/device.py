"""`tvm-rammer device`: what plans are made for on this machine, measured or typical."""

import argparse
from typing import Any

from ... import debug
from ...device import figures_file, measured_cpu


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser("device", help="show this machine's processor as plans see it; measure it")
    parser.add_argument("--again", action="store_true", help="measure again, even if it was done before")
    parser.set_defaults(run=run, writes=())


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    path = figures_file()
    if arguments.again and debug.measures():
        path.unlink(missing_ok=True)
    device = measured_cpu()
    for name, meaning in _MEANING.items():
        print(f"{meaning:48} {getattr(device, name)}")
    peak = device.units * device.clock_ghz * device.flops_per_cycle
    print(f"{'peak of all cores, GFLOP/s':48} {peak:.0f}")
    print(
        f"clock, operations a cycle, bandwidths and what signals cost are {_source(path)}; caches are what Linux says"
    )


def _source(path: Any) -> str:
    if not debug.measures():
        return "typical ones: RAMMER_MEASURE is 0"
    return f"measured, and kept in {path}" if path.exists() else "typical ones: they could not be measured and kept"


_MEANING = {
    "processor": "processor",
    "arch": "instructions",
    "units": "cores that are used",
    "vector_bytes": "bytes of a vector",
    "clock_ghz": "clock, GHz",
    "flops_per_cycle": "float32 operations of a core in a cycle",
    "step_cycles": "cycles of a step of a register tile beside its multiply-adds",
    "loads_per_cycle": "loads in a cycle beside multiply-adds",
    "unit_bytes": "second-level cache of a core, bytes",
    "cache_bytes": "last-level cache, bytes",
    "unit_gbps": "a core from its second-level cache, GB/s",
    "cache_gbps": "all cores from the last-level cache, GB/s",
    "line_ns": "a line of the last-level cache after another, on other pages, ns",
    "memory_gbps": "all cores from memory, GB/s",
    "launch_us": "launch, us",
    "signal_us": "signal of another core, us",
    "barrier_us": "barrier, us",
    "wake_us": "waking a thread, us",
}
