"""Compiling CUDA text without a GPU, and reading what ptxas says that its kernels need."""

import functools
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .errors import ToolError

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


@functools.cache
def nvcc_version() -> str | None:
    """Version of the nvcc on the PATH, as `13.0.88`; None where there is none."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return None
    told = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    found = re.search(r"\bV(\d+(?:\.\d+)+)", told)
    return found[1] if found else "unknown"


def compile_report(source: str, arch: str, *, time_limit_s: float = TIME_LIMIT_S) -> str:
    """Compile CUDA text with nvcc and return the report of `ptxas -v`. No GPU is needed.

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
    return done.stderr


def parse_report(report: str) -> Resources:
    """Read the report of `ptxas -v` on a file with one kernel, and perhaps functions that it calls.

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


def parse_reports(report: str) -> dict[str, Resources]:
    """Read the report on a file of several kernels that call no functions: what each needs, by its name."""
    parts = re.split(r"(?=ptxas info\s*: Compiling entry function ')", report)
    found = ((re.search(r"Compiling entry function '(\w+)'", part), part) for part in parts)
    return {match[1]: parse_report(part) for match, part in found if match}
