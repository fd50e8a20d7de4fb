"""What a bundle is compiled for, and its native launcher."""

import pathlib
import shutil
import subprocess

from ..errors import ToolError

TIME_LIMIT_S = 900.0
"""For the kernels of one model; nvcc takes minutes where they are many."""

LAUNCHER = pathlib.Path(__file__).parent / "launcher.c"


def build_launcher(target: pathlib.Path) -> pathlib.Path:
    """Compile the native launcher; it needs the C library and nothing else.

    Raises
    ------
    ToolError
        There is no C compiler, or it fails.
    """
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise ToolError("no C compiler (cc, gcc or clang) is on the PATH; install one: a bundle has a native launcher")
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-s")
    done = subprocess.run(
        [compiler, *flags, str(LAUNCHER), "-o", str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ToolError(f"{compiler} failed with status {done.returncode}:\n{done.stderr[:2000]}")
    return target
