"""TVM's runtime by itself: enough to run a compiled model, while importing TVM as a whole takes a second."""

import ctypes
import functools
import importlib.metadata
import importlib.util
import pathlib
import sys
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import tvm_ffi

from ..device.cores import REGISTERED, num_workers
from ..ir import DESTINATIONS, INTO

_CPU, _CUDA = 1, 2
"""Types of devices, as DLPack numbers them."""

_NAIVE, _POOLED = 1, 2
"""Allocators of the virtual machine: one gives memory back to the C library, one keeps it for the same size again."""


def start_runtime() -> None:
    """Load TVM's runtime library, unless TVM is imported already; importing it later works, too."""
    if "tvm" in sys.modules:
        return
    found = importlib.util.find_spec("tvm")
    library = pathlib.Path(found.origin or "").parent / "lib" / "libtvm_runtime.so" if found else None
    if library is None or not library.is_file():
        import tvm  # noqa: F401  # it knows other places
    else:
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def provide(functions: Iterable[str]) -> None:
    """Import TVM as a whole, unless the functions that a library calls by these names are there already."""
    if any(tvm_ffi.get_global_func(name, allow_missing=True) is None for name in functions):
        import tvm  # noqa: F401  # it registers some in Python


@functools.cache
def tvm_version() -> str:
    """The version of TVM, without importing it."""
    try:
        return importlib.metadata.version("apache-tvm")
    except importlib.metadata.PackageNotFoundError:
        import tvm

        return str(tvm.__version__)


def give_memory_back() -> None:
    """Let the pools of all virtual machines give back what they keep for the next call."""
    tvm_ffi.get_global_func("vm.builtin.memory_manager.clear")()


class Machine:
    """The functions of an executable, in a virtual machine of its own: for one thread at a time.

    Parameters
    ----------
    module : tvm.runtime.Module or tvm_ffi.Module
        What `VMExecutable.jit` returns, or a library.
    kind : {"cpu", "cuda"}
        Where it runs.
    grows : bool
        Whether a loop has states whose sizes change from round to round. On a CPU memory is given back then: a pool
        would keep some of each size that there ever was. (Large arrays take longer so: their pages are made anew.)

    Attributes
    ----------
    main : tvm_ffi.Function
        Takes the inputs, returns the results.
    """

    def __init__(self, module: Any, kind: str, *, grows: bool = False) -> None:
        self._machine = machine = module["vm_load_executable"]()
        devices = [_CPU] if kind == "cpu" else [_CUDA, _CPU]
        allocator = _NAIVE if grows and kind == "cpu" else _POOLED
        machine["vm_initialization"](*(number for device in devices for number in (device, 0, allocator)))
        self.main = machine["main"]

    @cached_property
    def into(self) -> Any:
        """The function `ir.INTO`; `main` where no result has a destination."""
        return self._machine[INTO] if any(self.destinations) else self.main

    @cached_property
    def destinations(self) -> tuple[bool, ...]:
        """For each result whether `into` takes a tensor for it."""
        return tuple(map(bool, self._machine[DESTINATIONS]()))

    @cached_property
    def takes_all(self) -> bool:
        """Whether `into` takes a tensor for each result."""
        return all(self.destinations)


def tell_workers() -> None:
    """Tell the workers how many they may be; a library by itself knows nothing of hyper-threads and quotas."""
    workers = tvm_ffi.get_global_func(REGISTERED, allow_missing=True)
    if workers is not None:
        workers(num_workers())
