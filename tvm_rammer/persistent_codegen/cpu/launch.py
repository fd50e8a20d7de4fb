"""The launch of a program on a CPU: how its code and the workers come together."""

import importlib.resources

from tvm import tirx
from tvm.ir import GlobalVar

from .stamps import CLOCK
from .workers import entries_text, plain_functions, pool_entries, workers_text

_LAUNCH = """
define internal void @{name}_launch({parameters}, ptr %begin, i32 %lanes) {{
  %environment = alloca [{count} x ptr]
{stores}
  call void @rammer_run(ptr @{name}_entries, ptr %environment, ptr %begin, i32 %lanes)
  ret void
}}
"""


def launch_text(name: str, pointers: int, machine: str, *, stamped: bool) -> str:
    """The LLVM IR that a program calls: its `NAME_launch`, the workers, and what the interpreter needs beside TIR.

    Parameters
    ----------
    name : str
        The program's. Its launch takes pointers, the table `begin` and the number of lanes.
    pointers : int
        How many segments and tables the interpreter finds in its environment.
    machine : str
        What it is compiled for (`DeviceSpec.machine`).
    stamped : bool
        Whether the interpreter notes the time.
    """
    place = "  %at{0} = getelementptr ptr, ptr %environment, i64 {0}\n  store ptr %p{0}, ptr %at{0}"
    stores = "\n".join(place.format(i) for i in range(pointers))
    parameters = ", ".join(f"ptr %p{i}" for i in range(pointers))
    launch = _LAUNCH.format(name=name, parameters=parameters, count=pointers, stores=stores)
    sync = importlib.resources.files(__package__).joinpath("sync.ll").read_text(encoding="utf-8")
    return workers_text(machine) + sync + (CLOCK if stamped else "") + entries_text(name) + launch


def entries(name: str, interpreter: tirx.PrimFunc) -> dict[GlobalVar, tirx.PrimFunc]:
    """The functions whose addresses the launch of a program takes, each under its variable of the module."""
    return plain_functions({f"{name}_walk": interpreter, **pool_entries(name)})
