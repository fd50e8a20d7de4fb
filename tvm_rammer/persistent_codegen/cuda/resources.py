"""How many blocks of a persistent kernel a GPU holds at once."""

from ...device import DeviceSpec
from ...errors import ResidencyError
from ...nvcc import Resources


def check_residency(device: DeviceSpec, threads: int, resources: Resources, lanes: int, dynamic_bytes: int = 0) -> int:
    """Make sure that all blocks of a persistent kernel are resident at once, or it would deadlock.

    Parameters
    ----------
    device : DeviceSpec
    threads : int
        Of a block.
    resources : Resources
    lanes : int
        Blocks of the grid.
    dynamic_bytes : int
        Dynamic shared memory of a block.

    Returns
    -------
    int
        Blocks that one unit holds.

    Raises
    ------
    ResidencyError
        The device holds fewer than `lanes` blocks.
    """
    shared = resources.static_shared_bytes + dynamic_bytes
    resident = device.resident_blocks(threads, resources.registers, shared)
    if resident * device.units < lanes:
        raise ResidencyError(
            f"{lanes} vEUs do not fit on {device.name}: {device.units} units hold {resident} blocks each of {threads} "
            f"threads, {resources.registers} registers a thread and {shared} bytes of shared memory; plan with at most "
            f"{resident * device.units} vEUs, or with kernels of fewer threads, registers or shared memory"
        )
    return resident
