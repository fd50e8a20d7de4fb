"""A user's target as a device, and a device as TVM's target."""

from typing import Any

import tvm

from ..device import DeviceSpec, from_target_config, preset
from ..errors import TargetError


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
    if isinstance(target, tvm.target.Target):
        return from_target_config(target.export())
    raise TargetError(f"{type(target).__name__} is no target; give a preset's name, a tvm Target or a DeviceSpec")


def tvm_target(device: DeviceSpec) -> tvm.target.Target:
    """The target for which TVM compiles for a device."""
    return tvm.target.Target(device.target_config())
