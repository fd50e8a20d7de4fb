"""The native launcher, by ctypes."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_double, c_uint, c_uint64, c_void_p
from pathlib import Path

from ...errors import ToolError
from .cuda import Cuda
from .plan import PlanLaunch


class _Launch(Structure):
    _fields_ = [
        ("function", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("cooperative", c_uint),
        ("parameters", POINTER(c_void_p)),
    ]


class _Driver(Structure):
    _fields_ = [(name, c_void_p) for name in ("launch", "launch_cooperative", "launch_graph", "synchronize")]


class _Work(Structure):
    _fields_ = [("launches", POINTER(_Launch)), ("count", c_uint), ("graph", c_void_p)]


class Work:
    """One run of a model, ready to be launched: the launches themselves, or a graph of them.

    Parameters
    ----------
    launches : sequence of (PlanLaunch, function, sequence of int)
        With the driver's function and the address of each argument.
    graph : c_void_p, optional
        An executable graph, to be launched instead.
    """

    def __init__(
        self,
        launches: Sequence[tuple[PlanLaunch, c_void_p, Sequence[int]]],
        graph: c_void_p | None = None,
    ) -> None:
        self._kept: list[object] = []  # what the records point to
        records = (_Launch * max(1, len(launches)))()
        for record, (launch, function, addresses) in zip(records, launches, strict=False):
            values = (c_uint64 * max(1, len(addresses)))(*addresses)
            size = ctypes.sizeof(c_uint64)
            pointers = (c_void_p * max(1, len(addresses)))(
                *(ctypes.addressof(values) + i * size for i in range(len(addresses)))
            )
            self._kept += [values, pointers]
            record.function = function.value
            record.grid[:], record.block[:] = launch.grid, launch.block
            record.shared_bytes, record.cooperative = launch.shared_bytes, int(launch.cooperative)
            record.parameters = ctypes.cast(pointers, POINTER(c_void_p))
        self._kept.append(records)
        self.record = _Work(records, len(launches), graph)

    def parameters(self, number: int) -> c_void_p:
        """The array of pointers to the arguments of a launch."""
        return ctypes.cast(self.record.launches[number].parameters, c_void_p)


class Launcher:
    """Launches work on a stream of its own.

    Parameters
    ----------
    path : pathlib.Path
        The compiled launcher.
    cuda : Cuda

    Raises
    ------
    ToolError
        The launcher cannot be loaded here.
    """

    def __init__(self, path: Path, cuda: Cuda) -> None:
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ToolError(
                f"cannot load the launcher: {error}; build the bundle on the same kind of system"
            ) from error
        self._cuda = cuda
        self.stream = cuda.stream()
        names = ("cuLaunchKernel", "cuLaunchCooperativeKernel", "cuGraphLaunch", "cuStreamSynchronize")
        self._driver = _Driver(*(ctypes.cast(cuda.function(name), c_void_p) for name in names))

    def run(self, work: Work, repeats: int = 1) -> None:
        """Launch runs back to back, without waiting for them."""
        status = self._library.rammer_run(byref(self._driver), byref(work.record), c_uint(repeats), self.stream)
        if status:
            self._cuda.fail("a launch", status)

    def latencies_us(self, work: Work, repeats: int) -> list[float]:
        """Run and wait, again and again; return the microseconds of each run."""
        times = (c_double * repeats)()
        status = self._library.rammer_latencies(
            byref(self._driver), byref(work.record), c_uint(repeats), self.stream, times
        )
        if status:
            self._cuda.fail("a run", status)
        return list(times)
