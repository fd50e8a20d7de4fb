"""The launch of a program on a CPU: how its code and the workers come together."""

import importlib.resources

from tvm import tirx
from tvm.ir import GlobalVar

from .stamps import CLOCK
from .workers import client_text, plain_functions

_LAUNCH = """
declare i32 @{name}_walk(ptr, i32, ptr, ptr)
define internal i1 @{name}_launch({parameters}, ptr %begin, i32 %lanes) {{
  %environment = alloca [{count} x ptr]
{stores}
  %ran = call i1 @rammer_run(ptr @{name}_walk, ptr %environment, ptr %begin, i32 %lanes)
  ret i1 %ran
}}
"""


def launch_text(name: str, pointers: int, machine: str, *, stamped: bool) -> str:
    """The LLVM IR that a program calls: its `NAME_launch`, the workers' client, and what its interpreter needs.

    Parameters
    ----------
    name : str
        The program's. Its launch takes pointers, the table `begin` and the number of lanes, and says whether there are
        workers.
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
    return client_text(machine) + sync + (CLOCK if stamped else "") + launch


def walk(name: str, interpreter: tirx.PrimFunc) -> dict[GlobalVar, tirx.PrimFunc]:
    """The interpreter of a program as the function whose address its launch takes, under its variable of the module."""
    return plain_functions({f"{name}_walk": interpreter})
