"""RProgram -> one function per program, for TVM's own code generators (docs/architecture.md, D1, D2, D9)."""

from collections.abc import Mapping, Sequence

import numpy as np
import tvm
from tvm import tirx
from tvm.ir import GlobalVar

from ..device import DeviceSpec
from ..ir import RProgram
from ..kernel import ScheduledKernel
from ..nvcc import Resources
from .assembled import AssembledProgram
from .cpu.program import assemble_cpu
from .cpu.rtask import extract_cpu
from .cpu.stamps import Stamps, collect_stamps, read_stamps
from .cuda.pipeline import PIPELINE as CUDA_PIPELINE
from .cuda.program import assemble_cuda
from .cuda.resources import check_residency, measure_resources
from .cuda.rtask import extract_cuda
from .layout import lay_out
from .library import RTaskLibrary


def assemble(
    program: RProgram,
    values: Mapping[int, np.ndarray],
    kernels: Sequence[ScheduledKernel],
    device: DeviceSpec,
    library: RTaskLibrary,
    *,
    stamped: bool = False,
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
    """
    packs = [k.packs for k in kernels]
    functions = [library.function(k) for k in kernels]
    if device.kind == "cpu":
        return assemble_cpu(program, values, packs, functions, library.variables, stamped=stamped)
    layout = lay_out(program, values, packs)
    made = assemble_cuda(program, layout, functions, device, library.variables)
    return AssembledProgram(
        name=program.name,
        func=made.func,
        helpers=made.helpers,
        inputs=layout.external[: layout.num_inputs],
        outputs=layout.external[layout.num_inputs :],
        embedded=made.constants,
        workspace_bytes=made.workspace_bytes,
        threads=made.threads,
        shared_bytes=made.shared_bytes,
    )


def rtask_library(device: DeviceSpec) -> RTaskLibrary:
    """An empty library of rTask functions for a device."""
    return RTaskLibrary(extract_cpu if device.kind == "cpu" else lambda kernel: extract_cuda(kernel, device))


def source_of(program: AssembledProgram, device: DeviceSpec) -> str:
    """The CUDA text of one program by itself."""
    functions = {GlobalVar(program.name): program.func, **program.helpers}
    target = tvm.target.Target(device.target_config())
    host = tirx.build(tvm.IRModule(functions), target=target, pipeline=CUDA_PIPELINE)
    return str(host.imports[0].inspect_source("cuda"))


__all__ = [
    "CUDA_PIPELINE",
    "AssembledProgram",
    "RTaskLibrary",
    "Resources",
    "Stamps",
    "assemble",
    "check_residency",
    "collect_stamps",
    "measure_resources",
    "read_stamps",
    "rtask_library",
    "source_of",
]
