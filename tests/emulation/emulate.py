"""Compile generated CUDA text as C++ and run it on the CPU (cuda_host.h says how)."""

import ctypes
import functools
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

import numpy as np

HERE = pathlib.Path(__file__).parent
GUARD = 4096
"""Bytes of a known pattern before and after each array, to see writes out of bounds."""

ALIGNMENT = 256
"""Of arrays in a GPU's memory."""

_ENTRY = """
extern "C" const char* emu_run_{kernel}(
    const int* shape, unsigned long long shared_bytes, unsigned long long seed, void** args) {{
  emu::Dim3 grid{{shape[0], shape[1], shape[2]}}, block{{shape[3], shape[4], shape[5]}};
  emu::run(grid, block, shared_bytes, seed, [=] {{ {kernel}({arguments}); }});
  return emu::failure.empty() ? nullptr : emu::failure.c_str();
}}
"""

_KERNEL = r"__global__ void (?:__launch_bounds__\(\d+\) )?{}\("


class EmulationError(Exception):
    """What the program did would hang or corrupt memory on a GPU."""


def run_emulated(
    source: str,
    kernel: str,
    grid: Sequence[int],
    block: Sequence[int],
    shared_bytes: int,
    args: dict[str, np.ndarray],
    seed: int,
) -> None:
    """Run a kernel; what it writes is in `args` afterwards.

    Parameters
    ----------
    source : str
        CUDA text as TVM emits it.
    kernel : str
        Name of the `__global__` function in it.
    grid, block : sequence of int
        Up to three extents.
    shared_bytes : int
        Dynamic shared memory.
    args : dict of str to numpy.ndarray
        Arrays by the kernel's parameter names, `_ptr` left off. TVM orders parameters by name.
    seed : int
        Decides the order in which threads run.

    Raises
    ------
    EmulationError
        Diverging barriers, a deadlock, or a write out of bounds.
    """
    launch = _library(source)[f"emu_run_{kernel}"]
    launch.restype = ctypes.c_char_p
    launch.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p]
    names = [name.removesuffix("_ptr") for name, _ in kernel_parameters(source, kernel)]
    guarded = {name: _guarded(args[name]) for name in names}
    pointers = (ctypes.c_void_p * len(names))(*(guarded[n][GUARD:].ctypes.data for n in names))
    shape = (ctypes.c_int * 6)(*[*grid, 1, 1][:3], *[*block, 1, 1][:3])
    failure = launch(shape, shared_bytes, seed, pointers)
    if failure:
        raise EmulationError(failure.decode())
    for name in names:
        memory, array = guarded[name], args[name]
        if not ((memory[:GUARD] == 0xFF).all() and (memory[GUARD + array.nbytes :] == 0xFF).all()):
            raise EmulationError(f"{name}: a write before its start or after its end")
        if array.flags.writeable:
            array[...] = memory[GUARD : GUARD + array.nbytes].view(array.dtype).reshape(array.shape)


def kernel_parameters(source: str, kernel: str) -> list[tuple[str, str]]:
    """(name, C++ type) of each parameter of a `__global__` function."""
    found = re.search(_KERNEL.format(kernel) + r"([^)]*)\)", source)
    if not found:
        raise EmulationError(f"the text has no kernel {kernel!r}")
    listed = [p.replace("__restrict__", "").rsplit(None, 1) for p in found[1].split(",") if p.strip()]
    return [(name, kind.strip()) for kind, name in listed]


def _guarded(array: np.ndarray) -> np.ndarray:
    room = np.full(array.nbytes + 2 * GUARD + ALIGNMENT, 0xFF, np.uint8)
    memory = room[-room.ctypes.data % ALIGNMENT :][: array.nbytes + 2 * GUARD]
    memory[GUARD : GUARD + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memory


def as_host_text(source: str) -> str:
    """Return the text without TVM's header, and with shared arrays as cuda_host.h has them."""
    text = source[source.rindex("#define ushort unsigned short") :].split("\n", 2)[2]
    text = re.sub(
        r"extern __shared__ (?:__align__\(\d+\) )?(\w+) (\w+)\[\];", r"\1* \2 = (\1*)emu::shared_arena();", text
    )
    return re.sub(
        r"(?<!extern )__shared__ (?:alignas\(\d+\) |__align__\(\d+\) )?(?:volatile )?(\w+) (\w+)\[(\d+)\];",
        r"\1 (&\2)[\3] = emu::shared_array<\1, \3>(__LINE__);",
        text,
    )


COMPILE = ("g++", "-O1", "-std=c++20", "-w", "-fPIC", "-fno-strict-aliasing")


@functools.cache
def _headers() -> tempfile.TemporaryDirectory:
    """A folder with cuda_host.h as g++ reads it fastest: parsed once, it is half of what a kernel takes."""
    folder = tempfile.TemporaryDirectory(prefix="cuda_host_")
    header = shutil.copy(HERE / "cuda_host.h", folder.name)
    subprocess.run([*COMPILE, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True, timeout=300)
    return folder


@functools.lru_cache(maxsize=64)
def _library(source: str) -> ctypes.CDLL:
    """All kernels of a text, compiled at once."""
    if shutil.which("g++") is None:
        raise EmulationError("g++ is needed to run CUDA text on the CPU; install it")
    text = '#include "cuda_host.h"\n' + as_host_text(source)
    for kernel in dict.fromkeys(re.findall(_KERNEL.format(r"(\w+)"), source)):
        kinds = [kind for _, kind in kernel_parameters(source, kernel)]
        arguments = ", ".join(f"({kind})args[{i}]" for i, kind in enumerate(kinds))
        text += _ENTRY.format(kernel=kernel, arguments=arguments)
    with tempfile.TemporaryDirectory() as folder:
        path, binary = pathlib.Path(folder, "kernel.cpp"), pathlib.Path(folder, "kernel.so")
        path.write_text(text, encoding="utf-8")
        command = [*COMPILE, "-shared", f"-I{_headers().name}", str(path), "-o", str(binary)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise EmulationError(f"g++ does not accept the text:\n{done.stderr[:4000]}")
        return ctypes.CDLL(str(binary))
