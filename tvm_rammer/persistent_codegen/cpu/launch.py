"""The launch of a program on a CPU: how its code and the workers come together."""

import importlib.resources
from collections.abc import Sequence

from tvm import tirx
from tvm.ir import GlobalVar

from ...ir import RProgram
from .stamps import CLOCK
from .workers import client_text, plain_functions

_LAUNCH = """
declare i32 @{name}_walk(ptr, i32, ptr, ptr)
{tables}
define internal i1 @{name}_launch({parameters}, ptr %begin, i32 %lanes) {{
  %environment = alloca [{count} x ptr]
{stores}
{asked}
  %ran = call i1 @rammer_run(ptr @{name}_walk, ptr %environment, ptr %begin, i32 %lanes)
  ret i1 %ran
}}
"""


LARGE_PAGE = 2 << 20
"""Bytes of a page that takes one entry of a processor's translation buffers in the place of 512."""
_PLACES = 8
"""Addresses of an array that are asked for: calls at the same time have workspaces of their own."""


def launch_text(name: str, pointers: int, machine: str, sizes: Sequence[int], *, stamped: bool) -> str:
    """The LLVM IR that a program calls: its `NAME_launch`, the workers' client, and what its interpreter needs.

    Parameters
    ----------
    name : str
        The program's. Its launch takes pointers, the table `begin` and the lanes as `lanes_argument` says them, and
        returns whether there are workers.
    pointers : int
        How many segments and tables the interpreter finds in its environment.
    machine : str
        What it is compiled for (`DeviceSpec.machine`).
    sizes : sequence of int
        Bytes of the first segments: Linux is asked for large pages for those that may hold one.
    stamped : bool
        Whether the interpreter notes the time.
    """
    place = "  %at{0} = getelementptr ptr, ptr %environment, i64 {0}\n  store ptr %p{0}, ptr %at{0}"
    stores = "\n".join(place.format(i) for i in range(pointers))
    parameters = ", ".join(f"ptr %p{i}" for i in range(pointers))
    large = [(i, size) for i, size in enumerate(sizes) if size >= LARGE_PAGE]
    tables = "\n".join(f"@{name}_asked{i} = internal global [{_PLACES} x ptr] zeroinitializer" for i, _ in large)
    asked = "\n".join(
        f"  call void @rammer_ask_large_pages(ptr @{name}_asked{i}, i64 {_PLACES}, ptr %p{i}, i64 {size})"
        for i, size in large
    )
    launch = _LAUNCH.format(
        name=name, parameters=parameters, count=pointers, stores=stores, tables=tables, asked=asked
    )  # fmt: skip
    texts = [client_text(machine), _file("sync.ll"), environment_text(), _file("large_pages.ll")]
    return "".join([*texts, CLOCK if stamped else "", launch])


def environment_text() -> str:
    """The functions that read an environment, as LLVM IR."""
    return _file("environment.ll")


def lanes_argument(program: RProgram) -> int:
    """The number of lanes as `rammer_run` (workers.c) takes it: negative for a brief program (`RProgram.brief`)."""
    return -len(program.lanes) if program.brief else len(program.lanes)


def _file(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def walk(name: str, interpreter: tirx.PrimFunc) -> dict[GlobalVar, tirx.PrimFunc]:
    """The interpreter of a program as the function whose address its launch takes, under its variable of the module."""
    return plain_functions({f"{name}_walk": interpreter})
