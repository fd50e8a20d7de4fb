"""Generate the function of an rProgram with the backend of its device."""

from collections.abc import Mapping, Sequence

import numpy as np
import tvm

from ..device import DeviceSpec
from ..ir import RProgram
from ..kernel import ScheduledKernel
from .assembled import AssembledProgram
from .cpu.program import assemble_cpu
from .cpu.rtask import extract_cpu
from .cpu.workers import workers_module
from .cuda.program import assemble_cuda
from .cuda.rtask import extract_cuda
from .library import RTaskLibrary

_IMPORTS = "external_mods"
"""The attribute of a module with what its executable imports, in memory and as a library; `relax.build` reads it."""


def assemble(
    program: RProgram,
    values: Mapping[int, np.ndarray],
    kernels: Sequence[ScheduledKernel],
    device: DeviceSpec,
    library: RTaskLibrary,
    *,
    stamped: bool = False,
    watchdog_s: float | None = None,
) -> AssembledProgram:
    """Generate the function of a verified program.

    Parameters
    ----------
    program : RProgram
    values : mapping of int to numpy.ndarray
        The value of each constant buffer.
    kernels : sequence of ScheduledKernel
        The kernel of each operator.
    device : DeviceSpec
    library : RTaskLibrary
        The rTask functions of the module that the program becomes part of.
    stamped : bool
        On a CPU: whether the program reports when each of its instructions ended (`collect_stamps`).
    watchdog_s : float, optional
        On a GPU: seconds after which a wait that does not come true ends the kernel, and is written into its state.

    Returns
    -------
    AssembledProgram

    Raises
    ------
    CodegenError
        A kernel cannot become an rTask function, or an rTask needs more than a block of the device has.
    """
    packs = [k.packs for k in kernels]
    functions = [library.function(k) for k in kernels]
    if device.kind == "cpu":
        return assemble_cpu(program, values, packs, functions, device, library.variables, stamped=stamped)
    return assemble_cuda(program, values, packs, functions, device, library.variables, watchdog_s=watchdog_s)


def rtask_library(device: DeviceSpec) -> RTaskLibrary:
    """Make an empty library of rTask functions for a device."""
    return RTaskLibrary(extract_cpu if device.kind == "cpu" else lambda kernel: extract_cuda(kernel, device))


def with_imports(mod: tvm.IRModule, device: DeviceSpec) -> tvm.IRModule:
    """Let the executable of a module import what the code of its programs needs: on a CPU the workers."""
    if device.kind != "cpu":
        return mod
    workers = workers_module(str(device.target_config().get("mtriple", "")), device.machine)
    imported = list((mod.get_attr(_IMPORTS) if mod.attrs else None) or [])
    return mod if workers in imported else mod.with_attr(_IMPORTS, [*imported, workers])
