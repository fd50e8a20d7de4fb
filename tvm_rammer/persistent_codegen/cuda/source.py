"""The CUDA text of a persistent kernel by itself, to look at, to measure and to emulate."""

import tvm
from tvm import tirx

from ...device import DeviceSpec
from ..assembled import AssembledProgram
from .pipeline import PIPELINE


def cuda_source(program: AssembledProgram, device: DeviceSpec) -> str:
    """Generate the CUDA text that `tvm.compile` generates for a program. No GPU is needed.

    Parameters
    ----------
    program : AssembledProgram
    device : DeviceSpec
        A GPU.

    Returns
    -------
    str
        Its `__global__` function is called `{program.name}_kernel`.
    """
    target = tvm.target.Target(device.target_config())
    host = tirx.build(tvm.IRModule(program.functions()), target=target, pipeline=PIPELINE)
    return str(host.imports[0].inspect_source("cuda"))
