"""What ptxas says that a persistent kernel needs, and how many of its blocks a GPU holds at once."""

from ...device import DeviceSpec
from ...errors import ResidencyError
from ...nvcc import TIME_LIMIT_S, Resources, compile_cuda, parse_report


def measure_resources(source: str, arch: str, *, time_limit_s: float = TIME_LIMIT_S) -> Resources:
    """Compile CUDA text of one kernel with nvcc and read what it needs. No GPU is needed.

    Parameters
    ----------
    source : str
    arch : str
        `sm_80`, `sm_90`, `sm_90a`, ...
    time_limit_s : float

    Raises
    ------
    MissingToolError
        nvcc is not on the PATH, or does not know `arch`.
    ToolError
        It takes too long, or rejects the text.
    """
    return parse_report(compile_cuda(source, arch, time_limit_s=time_limit_s).report)


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
