"""An rProgram becomes one persistent CUDA kernel: a grid of vEUs that each walk through their part of the plan.

    block v:  for each row of `code` that belongs to lane v
                WAIT    thread 0 acquires
                SIGNAL  block barrier, then thread 0 releases
                RUN     block barrier, then the rTask's threads do rTask after rTask

The barrier before a Run covers both the Run before it on this vEU (what it wrote, and the arena it used) and
the waits since. Every block barrier lies outside of any branch on the thread index.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from tvm import tirx
from tvm.ir import GlobalVar

from ...device import DeviceSpec
from ...errors import CodegenError
from ...ir import RProgram
from ...kernel import RTaskFunction
from ..layout import Layout
from ..tables import build_tables
from .kernel import build_kernel
from .state import make_state


@dataclass(frozen=True, slots=True)
class CudaProgram:
    """A persistent kernel and what it needs.

    Parameters
    ----------
    func : tirx.PrimFunc
        Parameters: the program's inputs; `constants` one by one; the program's outputs; the workspace.
    helpers : mapping of GlobalVar to tirx.PrimFunc
        The rTask functions. They belong into the same module, under these very GlobalVars, private.
    constants : tuple of numpy.ndarray
        weights (uint8), begin, code, arguments (int32: see tables.py), and state (int32: see state.py).
        The kernel writes to the state: it must be one array, the same in every run, and used by nothing else.
    workspace_bytes : int
        Size of the workspace, a tensor of uint8.
    lanes, threads, shared_bytes : int
        Grid, block and dynamic shared memory of the launch.
    """

    func: tirx.PrimFunc
    helpers: Mapping[GlobalVar, tirx.PrimFunc]
    constants: tuple[np.ndarray, ...]
    workspace_bytes: int
    lanes: int
    threads: int
    shared_bytes: int


def assemble_cuda(
    program: RProgram,
    layout: Layout,
    functions: Sequence[RTaskFunction],
    device: DeviceSpec,
    shared: Mapping[str, GlobalVar] | None = None,
) -> CudaProgram:
    """Assemble the persistent kernel of a program.

    Parameters
    ----------
    program : RProgram
        Verified.
    layout : Layout
        Laid out without scratch arenas: on a GPU those are shared memory.
    functions : sequence of RTaskFunction
        For each operator, the function of its kernel.
    device : DeviceSpec
    shared : mapping of str to GlobalVar, optional
        Under which variable the module holds each rTask function, where several programs share them.

    Raises
    ------
    CodegenError
        An rTask needs more threads or shared memory than a block of the device has.
    """
    tables = build_tables(program, layout, functions)
    threads = max((f.function.threads for f in tables.forms), default=device.warp)
    shared_bytes = max((f.function.scratch_bytes for f in tables.forms), default=0)
    if shared_bytes > device.shared_per_block or threads > device.threads_per_block:
        raise CodegenError(
            f"{program.name} needs {threads} threads and {shared_bytes} bytes of shared memory a block, but "
            f"{device.name} has {device.threads_per_block} and {device.shared_per_block}: choose smaller tiles"
        )
    rtasks = {f.function.name: f.function.func for f in tables.forms}
    callees = {name: shared[name] if shared else GlobalVar(name) for name in rtasks}
    flat = tables.begin, tables.code.reshape(-1), tables.arguments.reshape(-1)
    constants = (layout.constants, *flat, make_state(program))
    func = build_kernel(program, layout, tables, constants, callees, threads, shared_bytes)
    helpers = MappingProxyType({callees[name]: f for name, f in rtasks.items()})
    return CudaProgram(func, helpers, constants, layout.workspace_bytes, len(program.lanes), threads, shared_bytes)


def module_of(program: CudaProgram) -> dict[GlobalVar, tirx.PrimFunc]:
    """Return the functions of a program as a module's: the kernel under its name, and the rTask functions."""
    return {GlobalVar(program.func.attrs["global_symbol"]): program.func, **program.helpers}
