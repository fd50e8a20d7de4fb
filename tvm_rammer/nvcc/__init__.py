"""Compiling CUDA text without a GPU, and reading what ptxas says that its kernels need.

    compile  CUDA text -> cubin and report, with the flags that TVM itself gives to nvcc
    ptxas    the report -> registers, shared memory and spills of each kernel
    kept     the same of a whole program, from the disk where its text was compiled before
    code     how much code a cubin holds
    sass     the loops of a kernel, and how fast a unit would issue them
    rows     what a row of the plan costs in a persistent kernel

Where nvcc is missing, `nvcc_version` is None and `compile_cuda` raises a ToolError.
"""

from .code import code_bytes
from .compile import TIME_LIMIT_S, Compiled, compile_cuda, nvcc_version
from .kept import measure_resources
from .ptxas import Resources, parse_report, parse_reports

__all__ = [
    "TIME_LIMIT_S",
    "Compiled",
    "Resources",
    "code_bytes",
    "compile_cuda",
    "measure_resources",
    "nvcc_version",
    "parse_report",
    "parse_reports",
]
