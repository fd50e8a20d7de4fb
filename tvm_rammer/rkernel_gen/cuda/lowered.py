"""The launch of a scheduled CUDA function: its grid, threads and shared memory, read from the lowered function."""

import importlib
import math
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from ...device import DeviceSpec
from ...ir import ITEM_BYTES, align
from ...keep_indices import keep_indices

MAX_THREADS = 256
"""Threads of an rTask at most: the block of the persistent kernel is as large as that of its largest rTask."""

MAX_SHARED = 48 * 1024
"""Static shared memory at most, in bytes."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Blocks, threads of a block, and shared memory of a block in bytes."""

    blocks: int
    threads: int
    shared_bytes: int


def launch_of(func: tirx.PrimFunc, device: DeviceSpec) -> Launch | None:
    """Lower a scheduled function as TVM does, and read its launch.

    Returns
    -------
    Launch or None
        None where it is no single kernel, or breaks a limit of an rTask.
    """
    body = func.body.block.body if isinstance(func.body, s_tir.SBlockRealize) else func.body
    # There is code outside of the kernel, or a thread computes a part of a producer that depends on which thread it is.
    if not isinstance(body, tirx.For) or not _has_constant_loops(body):
        return None
    try:
        kernels = lowered_kernels(keep_indices(func), device)
    except (RuntimeError, ValueError):  # a schedule that does not lower is no candidate
        return None
    if len(kernels) != 1:
        return None
    launch = read_launch(kernels[0])
    if (
        launch is None
        or launch.threads % device.warp
        or launch.threads > MAX_THREADS
        or launch.shared_bytes > MAX_SHARED
    ):
        return None
    limits = {"max_threads_per_block": MAX_THREADS, "max_shared_memory_per_block": MAX_SHARED, "max_vthread": 8}
    return launch if s_tir.analysis.verify_gpu_code(kernels[0], limits) else None


def lowered_kernels(func: tirx.PrimFunc, device: DeviceSpec) -> list[tirx.PrimFunc]:
    """The kernels of a scheduled function, lowered as TVM does, in the order in which they are launched."""
    target = tvm.target.Target(device.target_config())
    mod = tirx.transform.BindTarget(target)(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))
    lowered = tirx.get_tir_pipeline("s_tir")[0](mod)
    _, devices = importlib.import_module("tvm.tirx.build").split_host_device_mods(lowered)
    return [f for m in devices.values() for f in m.functions.values()]


def _has_constant_loops(body: tirx.Stmt) -> bool:
    loops: list[tirx.For] = []
    tvm_ffi.structural_walk(body, [(tirx.For, loops.append)], order="pre")
    return all(isinstance(loop.extent, tirx.IntImm) for loop in loops)


def read_launch(kernel: tirx.PrimFunc) -> Launch | None:
    """The launch of a lowered kernel; None where it allocates global memory or an array of dynamic shape."""
    extents: dict[str, int] = {}
    shared, on_chip = 0, True

    def attribute(node: tirx.AttrStmt) -> None:
        if node.attr_key == "thread_extent":
            extents[node.node.thread_tag] = int(node.value)

    def allocation(node: tirx.AllocBuffer) -> None:
        nonlocal shared, on_chip
        if str(node.buffer.scope()) == "global" or not all(isinstance(n, tirx.IntImm) for n in node.buffer.shape):
            on_chip = False
        elif str(node.buffer.scope()).startswith("shared"):
            scalar, _, width = str(node.buffer.dtype).partition("x")
            elements = math.prod(int(n) for n in node.buffer.shape) * int(width or 1)
            shared += align(elements * ITEM_BYTES[scalar])

    tvm_ffi.structural_walk(kernel.body, [(tirx.AttrStmt, attribute), (tirx.AllocBuffer, allocation)], order="pre")

    def count(prefix: str) -> int:
        return math.prod(n for tag, n in extents.items() if tag.startswith(prefix))

    return Launch(count("blockIdx."), count("threadIdx."), shared) if on_chip else None
