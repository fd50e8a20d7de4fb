"""An executable of TVM as a shared library."""

import os
import pathlib
import re
import tempfile
from math import prod
from typing import TYPE_CHECKING

from ..errors import RammerError, ToolError, last_line
from ..files import check_room, check_writable, replacing

if TYPE_CHECKING:
    from tvm import relax


CODE_BYTES = 32 << 20
"""Room for object files, the constants aside: more than any model's code has taken."""


def can_link() -> bool:
    """Whether there is a C compiler on this machine."""
    from tvm.support import cc

    return cc.get_cc() is not None


def link_library(executable: "relax.VMExecutable", target: pathlib.Path) -> None:
    """Write a library that plain TVM loads.

    Parameters
    ----------
    executable : relax.VMExecutable
    target : pathlib.Path
        Ends in `.so`.

    Raises
    ------
    ToolError
        The library could not be linked or written.
    """
    if not can_link():
        raise ToolError("no C compiler to link a library with; install g++, or name one in the variable CXX")
    try:
        check_writable(target)
        check_room(tempfile.gettempdir(), CODE_BYTES + 2 * _constant_bytes(executable))
        with replacing(target) as new:
            executable.export_library(os.fspath(new))
    except (RuntimeError, ValueError) as error:
        reason = next((line for line in str(error).splitlines() if "ld: " in line), last_line(error))
        raise ToolError(
            f"cannot link the library {str(target)!r}: {reason.strip()}; "
            "mend the compiler, or name another in the variable CXX"
        ) from error
    except RammerError as error:
        raise ToolError(str(error)) from error


def _constant_bytes(executable: "relax.VMExecutable") -> int:
    """What the constants take: nearly all of it are rPrograms', which are arrays of bytes."""
    pool = executable.stats().partition("Constant pool")[2].partition("\n")[0]
    return sum(prod(map(int, shape.split(","))) for shape in re.findall(r"(?<!shapetuple)\[([\d, ]+)\]", pool))
