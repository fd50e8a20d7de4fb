"""An executable of TVM as a shared library."""

import os
import pathlib
from typing import TYPE_CHECKING

from ..errors import RammerError, ToolError, last_line
from ..files import check_writable, replacing

if TYPE_CHECKING:
    from tvm import relax


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
        with replacing(target) as new:
            executable.export_library(os.fspath(new))
    except (RuntimeError, ValueError) as error:
        reason = next((line for line in str(error).splitlines() if "ld: " in line), last_line(error))
        raise ToolError(f"cannot link the library {str(target)!r}: {reason.strip()}") from error
    except RammerError as error:
        raise ToolError(str(error)) from error
