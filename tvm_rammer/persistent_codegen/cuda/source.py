"""The CUDA text of a persistent kernel by itself, to look at, to measure and to emulate."""

import tvm
from tvm import tirx

from ...device import DeviceSpec
from .pipeline import PIPELINE
from .program import CudaProgram, module_of


def cuda_source(program: CudaProgram, device: DeviceSpec) -> str:
    """Generate the CUDA text that `tvm.compile` generates for a program. No GPU is needed.

    Parameters
    ----------
    program : CudaProgram
    device : DeviceSpec
    """
    target = tvm.target.Target(device.target_config())
    host = tirx.build(tvm.IRModule(module_of(program)), target=target, pipeline=PIPELINE)
    return host.imports[0].inspect_source("cuda")


def kernel_name(program: CudaProgram) -> str:
    """Name of the `__global__` function in the text."""
    return f"{program.func.attrs['global_symbol']}_kernel"
