"""Exported projects, built for the CPU: their host program runs against the emulated kernels (cuda_runtime.h)."""

import os
import pathlib
import re
import subprocess
from collections.abc import Mapping

from tests.emulation.emulate import COMPILE, KERNEL, EmulationError, as_host_text, compiled_with_machine

INCLUDES = re.compile(r"^#include [<\"][\w.]+[>\"]$", re.MULTILINE)


def build_project(folder: pathlib.Path, main: str | None = None) -> pathlib.Path:
    """Compile a project with g++: one program of its .cu, its header, and its main or another one."""
    (source,) = folder.glob("*.cu")
    text = source.read_text(encoding="utf-8")
    kernels = dict.fromkeys(re.findall(KERNEL.format(r"(\w+)"), text))
    program = [
        *INCLUDES.findall(text[: text.index("// ----")]),
        as_host_text(text),
        *(f"static emu::Registered registered_{kernel}(&{kernel});" for kernel in kernels),
        main if main is not None else (folder / "main.cpp").read_text(encoding="utf-8"),
    ]
    path, made = folder / "emulated.cpp", folder / "emulated"
    path.write_text("\n".join(program), encoding="utf-8")
    command = [*COMPILE, str(path), *compiled_with_machine(), f"-I{folder}", "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise EmulationError(f"g++ does not accept the project:\n{done.stderr[:4000]}")
    return made


def run_project(
    program: pathlib.Path, *options: str, seed: int = 0, units: int = 4, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Let a project check itself; a launch that hangs returns, and its stream is never ready."""
    settings = {"EMU_SEED": str(seed), "EMU_UNITS": str(units), **(env or {})}
    return subprocess.run(
        [program, program.parent, *options], capture_output=True, text=True, timeout=300, env={**os.environ, **settings}
    )
