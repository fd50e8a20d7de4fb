"""The CUDA driver, by ctypes: the few functions that a bundle needs, and errors with their names."""

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from ...errors import ToolError

LIBRARY_NAMES = ("libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1")
"""Where the driver's library may be; the last is where container runtimes mount it."""

_MULTIPROCESSORS, _L2_BYTES, _MAJOR, _MINOR, _COOPERATIVE = 16, 38, 75, 76, 95
_FUNCTION_SHARED, _FUNCTION_LOCAL, _FUNCTION_REGISTERS, _FUNCTION_MAX_DYNAMIC = 1, 3, 4, 8
_THREAD_LOCAL_CAPTURE, _NON_BLOCKING = 1, 1


class Cuda:
    """The first GPU, with its primary context current on this thread.

    Parameters
    ----------
    library : str
        Path of the driver's library; empty to look for it.

    Raises
    ------
    ToolError
        There is no driver, no GPU, or a call fails: each with CUDA's own name for the error.
    """

    def __init__(self, library: str = "") -> None:
        self.library = _load(library)
        self.call("cuInit", c_uint(0))
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        if not count.value:
            raise ToolError("the CUDA driver finds no GPU; run this on a machine with an NVIDIA GPU")
        self._device = c_int()
        self.call("cuDeviceGet", byref(self._device), c_int(0))
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self.call("cuCtxSetCurrent", context)
        self._start, self._end = self.event(), self.event()

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver.

        Raises
        ------
        ToolError
            It does not exist, or returns an error.
        """
        status = self.function(name)(*arguments)
        if status:
            self.fail(name, status)

    def function(self, name: str) -> Any:
        """Look a function of the driver up.

        Raises
        ------
        ToolError
            The driver has none of this name.
        """
        try:
            return getattr(self.library, name)
        except AttributeError as error:
            raise ToolError(f"the CUDA driver has no function {name}; update it to CUDA 12 or newer") from error

    def fail(self, name: str, status: int) -> None:
        """Raise the error that the driver returned."""
        text = c_char_p()
        self.library.cuGetErrorName(c_int(status), byref(text))
        label = text.value.decode() if text.value else "unknown error"
        raise ToolError(f"{name} failed: {label} ({status})")

    def describe(self) -> dict[str, object]:
        """Name, architecture, units, cache and driver of the GPU."""
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, c_int(256), self._device)
        version = c_int()
        self.call("cuDriverGetVersion", byref(version))
        return {
            "name": name.value.decode(),
            "architecture": f"sm_{self._attribute(_MAJOR)}{self._attribute(_MINOR)}",
            "multiprocessors": self._attribute(_MULTIPROCESSORS),
            "l2_bytes": self._attribute(_L2_BYTES),
            "cooperative_launch": bool(self._attribute(_COOPERATIVE)),
            "cuda_driver": f"{version.value // 1000}.{version.value % 1000 // 10}",
        }

    def _attribute(self, which: int) -> int:
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), c_int(which), self._device)
        return value.value

    def allocate(self, nbytes: int) -> int:
        """Allocate memory on the GPU; it lives as long as the process."""
        pointer = c_uint64()
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(nbytes))
        return pointer.value

    def upload(self, pointer: int, data: bytes) -> None:
        """Copy to the GPU."""
        self.call("cuMemcpyHtoD_v2", c_uint64(pointer), data, c_size_t(len(data)))

    def download(self, pointer: int, nbytes: int) -> bytes:
        """Copy from the GPU."""
        data = ctypes.create_string_buffer(nbytes)
        self.call("cuMemcpyDtoH_v2", data, c_uint64(pointer), c_size_t(nbytes))
        return data.raw

    def fill(self, pointer: int, nbytes: int, byte: int) -> None:
        """Set every byte."""
        self.call("cuMemsetD8_v2", c_uint64(pointer), ctypes.c_ubyte(byte), c_size_t(nbytes))

    def synchronize(self) -> None:
        """Wait for all work; errors of kernels show up here."""
        self.call("cuCtxSynchronize")

    def load_module(self, path: Path) -> c_void_p:
        """Load a cubin."""
        module = c_void_p()
        self.call("cuModuleLoadData", byref(module), path.read_bytes())
        return module

    def kernel(self, module: c_void_p, name: str, dynamic_bytes: int) -> c_void_p:
        """Look a kernel up, and allow it its dynamic shared memory."""
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, name.encode())
        if dynamic_bytes > 48 * 1024:
            self.call("cuFuncSetAttribute", function, c_int(_FUNCTION_MAX_DYNAMIC), c_int(dynamic_bytes))
        return function

    def resources(self, function: c_void_p, threads: int, dynamic_bytes: int) -> dict[str, int]:
        """What a kernel uses, and how many of its blocks a multiprocessor holds."""
        blocks, name = c_int(), "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        self.call(name, byref(blocks), function, c_int(threads), c_size_t(dynamic_bytes))
        return {
            "resident_blocks": blocks.value,
            "threads": threads,
            "dynamic_shared_bytes": dynamic_bytes,
            "registers": self._function_attribute(_FUNCTION_REGISTERS, function),
            "static_shared_bytes": self._function_attribute(_FUNCTION_SHARED, function),
            "local_bytes": self._function_attribute(_FUNCTION_LOCAL, function),
        }

    def _function_attribute(self, which: int, function: c_void_p) -> int:
        value = c_int()
        self.call("cuFuncGetAttribute", byref(value), c_int(which), function)
        return value.value

    def stream(self) -> c_void_p:
        """Make a stream."""
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), c_uint(_NON_BLOCKING))
        return stream

    def event(self) -> c_void_p:
        """Make an event that takes the time."""
        event = c_void_p()
        self.call("cuEventCreate", byref(event), c_uint(0))
        return event

    def record(self, event: c_void_p, stream: c_void_p) -> None:
        """Put an event into a stream."""
        self.call("cuEventRecord", event, stream)

    def elapsed_us(self, start: c_void_p, end: c_void_p) -> float:
        """Wait for `end`; return the microseconds since `start`."""
        milliseconds = c_float()
        self.call("cuEventSynchronize", end)
        self.call("cuEventElapsedTime", byref(milliseconds), start, end)
        return milliseconds.value * 1e3

    def timed_us(self, stream: c_void_p, launch: Callable[[], None]) -> float:
        """Wait for what is launched on the stream; return the microseconds that it took by GPU events."""
        self.record(self._start, stream)
        launch()
        self.record(self._end, stream)
        return self.elapsed_us(self._start, self._end)

    def begin_capture(self, stream: c_void_p) -> None:
        """Collect what is launched on the stream into a graph."""
        self.call("cuStreamBeginCapture_v2", stream, c_int(_THREAD_LOCAL_CAPTURE))

    def end_capture(self, stream: c_void_p) -> c_void_p:
        """Return the executable graph of what was launched."""
        graph = c_void_p()
        self.call("cuStreamEndCapture", stream, byref(graph))
        return self.instantiate(graph)

    def new_graph(self) -> c_void_p:
        """Make a graph without nodes."""
        graph = c_void_p()
        self.call("cuGraphCreate", byref(graph), c_uint(0))
        return graph

    def add_kernel(
        self,
        graph: c_void_p,
        before: Sequence[c_void_p],
        function: c_void_p,
        shape: Sequence[int],
        parameters: c_void_p,
    ) -> c_void_p:
        """Add a launch to a graph, behind some of its nodes; return its node.

        `shape`: extents of the grid, of a block, and bytes of dynamic shared memory.
        """
        node, nodes = c_void_p(), (c_void_p * max(1, len(before)))(*(n.value for n in before))
        launch = _KernelNode(function, *shape, parameters, None, None, None)
        self.call("cuGraphAddKernelNode_v2", byref(node), graph, nodes, c_size_t(len(before)), byref(launch))
        return node

    def instantiate(self, graph: c_void_p) -> c_void_p:
        """Make a graph executable."""
        executable = c_void_p()
        self.call("cuGraphInstantiateWithFlags", byref(executable), graph, ctypes.c_ulonglong(0))
        return executable


class _KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [
        ("function", c_void_p),
        *((name, c_uint) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_bytes")),
        *((name, c_void_p) for name in ("parameters", "extra", "kernel", "context")),
    ]


def _load(library: str) -> ctypes.CDLL:
    reasons = []
    for name in (library,) if library else LIBRARY_NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise ToolError(f"there is no CUDA driver here ({reasons[0]}); run this on a machine with an NVIDIA GPU")
