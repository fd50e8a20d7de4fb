"""Compile generated CUDA text as C++ and run it on the CPU (machine/cuda_host.h says how)."""

import atexit
import contextlib
import ctypes
import functools
import hashlib
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Sequence

import numpy as np

from tests.emulation.fences import Fenced, bytes_of

MACHINE = pathlib.Path(__file__).parent / "machine"
GUARD = 1 << 16
"""Bytes of a known pattern before and after each array, to see writes out of bounds: those of a tile or two."""

ALIGNMENT = 256
"""Of arrays in a GPU's memory."""

_PATTERN = np.uint32(0x7FA1B2C3)
"""What guards hold: as a float32 not a number, and another one after each operation on it."""

_CLEAN = np.full((GUARD + ALIGNMENT) // 4 + 1, _PATTERN).view(np.uint8)
"""The longest guard there can be, from any byte of a word on."""

_ENTRY = """
extern "C" {{ extern const int emu_parameters_{kernel} = {count}; }}
extern "C" const char* emu_run_{kernel}(
    const int* shape, unsigned long long shared_bytes, unsigned long long seed, void** args, char* memory,
    unsigned long long bytes) {{
  emu::Dim3 grid{{shape[0], shape[1], shape[2]}}, block{{shape[3], shape[4], shape[5]}};
  emu::run(grid, block, shared_bytes, seed, memory, bytes, [=] {{
    emu::View& view = emu::now->block->view;
    {kernel}({arguments});
  }});
  return emu::failure.empty() ? nullptr : emu::failure.c_str();
}}
"""

KERNEL = r"__global__ void (?:__launch_bounds__\([\d, ]+\) )?{}\("


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
    read_only: Collection[str] = (),
    mutants: Collection[int] = (),
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
        Decides the order in which threads run, and how weak memory is: every third seed has one memory for all
        blocks, every third one in which nothing moves but by release and acquire.
    read_only : collection of str
        Those that the kernel must not write.
    mutants : collection of int
        For which numbers `emu_mutant[number]` in the text is true.

    Raises
    ------
    EmulationError
        Diverging barriers, a deadlock, or a write out of bounds.
    """
    library = _library(source)
    launch = library[f"emu_run_{kernel}"]
    launch.restype = ctypes.c_char_p
    launch.argtypes = [
        ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64
    ]  # fmt: skip
    names = [name.removesuffix("_ptr") for name, _ in kernel_parameters(source, kernel)]
    memory, starts = _global_memory({n: args[n] for n in names if n not in read_only})
    fenced = {n: Fenced(args[n], at_end=seed % 2 == 0) for n in names if n in read_only}
    addresses = {n: memory[start:].ctypes.data for n, start in starts.items()}
    addresses |= {n: fence.address for n, fence in fenced.items()}
    pointers = (ctypes.c_void_p * len(names))(*(addresses[n] for n in names))
    shape = (ctypes.c_int * 6)(*[*grid, 1, 1][:3], *[*block, 1, 1][:3])
    nbytes = len(memory) if starts else 0
    flags = (ctypes.c_ubyte * 1024).in_dll(library, "emu_mutant")
    flags[:] = [n in mutants for n in range(1024)]
    failure = launch(shape, shared_bytes, seed, pointers, memory.ctypes.data, nbytes)
    if failure:
        raise EmulationError(failure.decode())
    before, end = "all arrays", 0
    for name, start in starts.items():
        array = args[name]
        if not _untouched(memory, end, start):
            raise EmulationError(f"a write out of bounds, between {before} and {name}")
        before, end = name, start + array.nbytes
        if array.flags.writeable:
            array[...] = memory[start:end].view(array.dtype).reshape(array.shape)
    for name, fence in fenced.items():
        if not fence.is_as_it_was():
            raise EmulationError(f"{name}: a write to what the kernel should only read")
    if not _untouched(memory, end, len(memory)):
        raise EmulationError(f"a write out of bounds, after {before}")


def kernel_parameters(source: str, kernel: str) -> list[tuple[str, str]]:
    """(name, C++ type) of each parameter of a `__global__` function."""
    found = re.search(KERNEL.format(kernel) + r"([^)]*)\)", source)
    if not found:
        raise EmulationError(f"the text has no kernel {kernel!r}")
    listed = [p.replace("__restrict__", "").rsplit(None, 1) for p in found[1].split(",") if p.strip()]
    return [(name, kind.strip()) for kind, name in listed]


def _global_memory(arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, int]]:
    """One memory with all arrays, and guards before and after each; and where each begins."""
    starts: dict[str, int] = {}
    end = 0
    for name, array in arrays.items():
        starts[name] = -(-(end + GUARD) // ALIGNMENT) * ALIGNMENT
        end = starts[name] + array.nbytes
    size = -(-(end + GUARD) // ALIGNMENT) * ALIGNMENT
    room = np.empty(size + ALIGNMENT, np.uint8)
    memory = room[-room.ctypes.data % ALIGNMENT :][:size]
    memory.view(np.uint32)[:] = _PATTERN
    for name, array in arrays.items():
        memory[starts[name] :][: array.nbytes] = bytes_of(array)
    return memory, starts


def _untouched(memory: np.ndarray, start: int, end: int) -> bool:
    """Whether a guard, which need not begin at a word, is as it was."""
    return np.array_equal(memory[start:end], _CLEAN[start % _PATTERN.nbytes :][: end - start])


def as_host_text(source: str) -> str:
    """Return the text without TVM's header, and with the arrays of blocks and threads as cuda_host.h has them."""
    text = source[source.rindex("#define ushort unsigned short") :].split("\n", 2)[2]
    text = re.sub(
        r"extern __shared__ (?:__align__\(\d+\) )?((?:signed )?\w+) (\w+)\[\];",
        r"\1* \2 = (\1*)emu::shared_arena();",
        text,
    )
    text = re.sub(r"asm volatile\(((?:\s*\"[^\"]*\")+)\s*:([^;]*?)\);", _as_call, text)
    text = re.sub(
        r"^( *)alignas\(\d+\) ((?:signed )?\w+) (\w+)\[(\d+)\];",
        r"\1emu::LocalArray<\2, \4> \3;",
        text,
        flags=re.MULTILINE,
    )
    return re.sub(
        r"(?<!extern )__shared__ (?:alignas\(\d+\) |__align__\(\d+\) )?(?:volatile )?((?:signed )?\w+) (\w+)\[(\d+)\];",
        r"\1 (&\2)[\3] = emu::shared_array<\1, \3>(__LINE__);",
        text,
    )


def _as_call(found: re.Match[str]) -> str:
    """A PTX instruction as the call of a function of its name, with the operands in its order; none does nothing."""
    instruction = "".join(re.findall(r'"([^"]*)"', found[1]))
    if not instruction:
        return ";"
    starts = [m.start() for m in re.finditer(r'"[=+]?[frl]"\(', found[2])]
    texts = [found[2][first:last] for first, last in itertools.pairwise([*starts, len(found[2])])]
    values = [text[text.index("(") + 1 : text.rindex(")")] for text in texts]
    name, _, places = instruction.partition(" ")
    return f"{name.replace('.', '_')}({', '.join(values[int(n)] for n in re.findall('%([0-9]+)', places))});"


COMPILE = ("g++", "-O1", "-std=c++20", "-w", "-fPIC", "-fno-strict-aliasing", "-fsanitize=alignment")


@functools.cache
def _shared() -> pathlib.Path:
    """Where the processes of a session of tests keep what they have compiled: each text is compiled once for all."""
    folder = os.environ.get("RAMMER_CACHE")
    if folder is None:
        folder = tempfile.mkdtemp(prefix="emulation_")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return pathlib.Path(folder, "emulation")


def _made(name: str, make: Callable[[pathlib.Path], None]) -> pathlib.Path:
    """A folder that `make` has filled, here or in another process. It is whole, or not there."""
    there = _shared() / name
    if not there.exists():
        there.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=there.parent) as folder:
            filled = pathlib.Path(folder, "filled")
            filled.mkdir()
            make(filled)
            with contextlib.suppress(OSError):  # another process was faster
                filled.rename(there)
    return there


@functools.cache
def _headers() -> pathlib.Path:
    """A folder with cuda_host.h as g++ reads it fastest, and the machine that kernels are linked with."""

    def make(folder: pathlib.Path) -> None:
        for path in MACHINE.glob("*.h"):
            shutil.copy(path, folder)
        header = folder / "cuda_host.h"
        subprocess.run([*COMPILE, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True, timeout=300)

        for source in MACHINE.glob("*.cpp"):
            command = [*COMPILE, "-O2", f"-I{folder}", "-c", source, "-o", folder / f"{source.stem}.o"]
            subprocess.run(command, check=True, timeout=300)

    texts = [path.read_bytes() for path in sorted([*MACHINE.glob("*.h"), *MACHINE.glob("*.cpp")])]
    return _made(f"headers-{hashlib.sha256(b'|'.join(texts)).hexdigest()[:16]}", make)


def compiled_with_machine() -> list[str]:
    """Arguments of g++ beside `COMPILE` and a text: cuda_host.h is its first header, and the machine is linked.

    It has what misaligned accesses call; the library of it that the driver would link is not needed.
    """
    folder = _headers()
    return ["-Wl,--as-needed", f"-I{folder}", "-include", "cuda_host.h", *map(str, sorted(folder.glob("*.o")))]


@functools.lru_cache(maxsize=64)
def _library(source: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(emulated_library(source)))


def emulated_library(source: str) -> pathlib.Path:
    """All kernels of a text, compiled at once: `emu_run_NAME` for each."""
    if shutil.which("g++") is None:
        raise EmulationError("g++ is needed to run CUDA text on the CPU; install it")
    text = 'extern "C" { unsigned char emu_mutant[1024]; }\n' + as_host_text(source)
    for kernel in dict.fromkeys(re.findall(KERNEL.format(r"(\w+)"), source)):
        kinds = [kind for _, kind in kernel_parameters(source, kernel)]
        arguments = ", ".join(f"({kind})view.seen_from_here(args[{i}])" for i, kind in enumerate(kinds))
        text += _ENTRY.format(kernel=kernel, arguments=arguments, count=len(kinds))

    def make(folder: pathlib.Path) -> None:
        path = folder / "kernel.cpp"
        path.write_text(text, encoding="utf-8")
        command = [*COMPILE, "-shared", str(path), *compiled_with_machine(), "-o", str(folder / "kernel.so")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise EmulationError(f"g++ does not accept the text:\n{done.stderr[:4000]}")

    digest = hashlib.sha256(f"{_headers().name}{text}".encode()).hexdigest()[:32]
    return _made(digest, make) / "kernel.so"
