"""What the report of `ptxas -v` says of kernels."""

import re
from dataclasses import dataclass

from ..errors import ToolError


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
