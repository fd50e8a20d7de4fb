"""What ptxas says that a kernel needs, and how many of its blocks a GPU holds at once."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..device import DeviceSpec
from ..errors import ResidencyError, ToolError

TIME_LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel needs, as ptxas reports it.

    Parameters
    ----------
    registers : int
        Of a thread.
    static_shared_bytes : int
        Shared memory of a block that the text declares; dynamic memory is the launch's business.
    spill_bytes : int
        Bytes that a thread stores to local memory for want of registers.
    stack_bytes : int
        Stack of a thread, those of the functions it calls included.
    barriers : int
        Hardware barriers of a block.
    """

    registers: int
    static_shared_bytes: int
    spill_bytes: int
    stack_bytes: int
    barriers: int


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
    ToolError
        nvcc is not on the PATH, does not know `arch`, takes too long, or rejects the text.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise ToolError("nvcc is not on the PATH; install the CUDA toolkit, or plan without measured registers")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cu")
        path.write_text(source, encoding="utf-8")
        command = [nvcc, "-cubin", f"-arch={arch}", "-O3", "-Xptxas", "-v", "-diag-suppress", "177"]
        try:
            done = subprocess.run(
                [*command, str(path), "-o", str(Path(folder, "kernel.cubin"))],
                capture_output=True, text=True, timeout=time_limit_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise ToolError(
                f"nvcc took more than {time_limit_s:g} s; choose smaller tiles or raise the limit"
            ) from error
    if "Unsupported gpu architecture" in done.stderr:
        raise ToolError(
            f"this nvcc does not compile for {arch} (CUDA 13 begins at sm_75); choose another device or toolkit"
        )
    if done.returncode:
        raise ToolError(f"nvcc rejects the text for {arch}:\n{done.stderr[:2000]}")
    return parse_report(done.stderr)


def parse_report(report: str) -> Resources:
    """Read the report of `ptxas -v` on a file with one kernel.

    Raises
    ------
    ToolError
        It has another form than CUDA 12 and 13 give it.
    """
    used = re.search(
        r"Compiling entry function.*?Used (\d+) registers(?:, used (\d+) barriers)?([^\n]*)", report, re.DOTALL
    )
    if used is None:
        raise ToolError(f"ptxas reports no kernel:\n{report[:2000]}")
    rest = used[3]
    shared = re.search(r"(\d+) bytes smem", rest)
    stacks = [int(n) for n in re.findall(r"(\d+) bytes (?:stack frame|cumulative stack size)", report)]
    spills = [int(n) for n in re.findall(r"(\d+) bytes spill stores", report)]
    return Resources(
        registers=int(used[1]),
        static_shared_bytes=int(shared[1]) if shared else 0,
        spill_bytes=sum(spills),
        stack_bytes=max(stacks, default=0),
        barriers=int(used[2] or 0),
    )


def check_residency(device: DeviceSpec, threads: int, resources: Resources, lanes: int, dynamic_bytes: int = 0) -> int:
    """Make sure that all blocks of a persistent kernel run at once, or they would wait for one another for ever.

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
