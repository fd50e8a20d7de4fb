"""A device is a value: everything a stage may know about the hardware, and no question asked of a GPU.

    spec       DeviceSpec, the figures of a device
    host       host_cpu, this machine's processor
    measured   what was measured of it, and is kept
    measure    how that is measured
    exchange   the same of what two cores tell each other
    processors pausing and sleeping, as LLVM IR
    cores      how many cores this process may use
    presets    GPUs by name; the device of a TVM target
    occupancy  how many blocks of a kernel one unit holds

A name or a TVM target goes in, a DeviceSpec comes out.
"""

from .host import figures_file, host_cpu, measured_cpu, why_not_here
from .presets import PRESETS, from_target_config, preset
from .spec import DeviceSpec

__all__ = [
    "PRESETS",
    "DeviceSpec",
    "figures_file",
    "from_target_config",
    "host_cpu",
    "measured_cpu",
    "preset",
    "why_not_here",
]
