"""Whether all lanes can be resident at once, by the verifier's own count of what a unit holds."""

from ...device import DeviceSpec
from ...errors import VerificationError
from ...ir import RProgram

_PARTITIONS = 4
"""Parts of a streaming multiprocessor, each with its own registers, of which a warp takes some of one part."""

_REGISTER_UNIT, _SHARED_UNIT, _RESERVED_SHARED = 256, 128, 1024


def check_residency(program: RProgram, device: DeviceSpec) -> None:
    """Prove that a device holds as many vEUs as a program has lanes, as far as its kernels say what they need.

    The persistent kernel has at least the threads, shared memory and registers of its largest rKernel. What the
    compiled kernel needs is asked of ptxas once there is code.

    Raises
    ------
    VerificationError
        A lane might never start, and others wait for it.
    """
    threads = max((kernel.threads for kernel in program.kernels), default=1)
    shared = max((kernel.shared_bytes for kernel in program.kernels), default=0)
    if program.kept_bytes:  # behind the arena of all rTasks
        shared = _round_up(shared, _SHARED_UNIT) + program.kept_bytes
    registers = max((kernel.registers or 0 for kernel in program.kernels), default=0)
    resident = device.units * _blocks_per_unit(device, threads, shared, registers)
    if len(program.lanes) > resident:
        raise VerificationError(
            f"program {program.name!r}: {len(program.lanes)} lanes, but only {resident} vEUs can be resident at once: "
            f"{device.name} has {device.units} units, and a vEU needs {threads} threads, {shared} bytes of shared "
            f"memory and {registers} registers a thread; plan with fewer vEUs or smaller tiles"
        )


def _blocks_per_unit(device: DeviceSpec, threads: int, shared: int, registers: int) -> int:
    if device.kind == "cpu":
        return 1
    if threads > device.threads_per_block or shared > device.shared_per_block:
        return 0
    warps = -(-threads // device.warp)
    limits = [
        device.blocks_per_unit,
        device.threads_per_unit // device.warp // warps,
        device.unit_bytes // (_round_up(shared, _SHARED_UNIT) + _RESERVED_SHARED),
    ]
    if registers:
        of_warp = _round_up(registers * device.warp, _REGISTER_UNIT)
        if of_warp * _round_up(warps, _PARTITIONS) > device.registers_per_unit:
            return 0  # a launch is checked as if its warps took registers of all parts alike
        limits.append(device.registers_per_unit // _PARTITIONS // of_warp * _PARTITIONS // warps)
    return min(limits)


def _round_up(number: int, to: int) -> int:
    return -(-number // to) * to
