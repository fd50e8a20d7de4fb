"""A user's target as a device, and a device as TVM's target."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..arguments import whole
from ..device import DeviceSpec, from_target_config, preset
from ..device.cores import MOST_THREADS
from ..errors import TargetError

if TYPE_CHECKING:
    import tvm


def resolve_device(target: Any) -> DeviceSpec:
    """Turn what the user calls a target into a device.

    Raises
    ------
    TargetError
        It is no target, or one without a vDevice.
    """
    if isinstance(target, DeviceSpec):
        return target
    if isinstance(target, str):
        return preset(target)
    import tvm

    if isinstance(target, tvm.target.Target):
        return from_target_config(target.export())
    raise TargetError(f"{type(target).__name__} is no target; give a preset's name, a tvm Target or a DeviceSpec")


def with_threads(device: DeviceSpec, threads: int | None) -> DeviceSpec:
    """A CPU with so many vEUs.

    Raises
    ------
    TargetError
        It is no CPU, or no number of threads.
    """
    if threads is None:
        return device
    if device.kind != "cpu":
        raise TargetError(f"threads is {threads!r}, but {device.name} is no CPU; leave it out")
    return replace(device, units=whole("threads", threads, 1, MOST_THREADS, TargetError))


def tvm_target(device: DeviceSpec) -> "tvm.target.Target":
    """The target for which TVM compiles for a device."""
    import tvm

    return tvm.target.Target(device.target_config())
