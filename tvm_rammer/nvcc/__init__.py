"""Compiling CUDA text without a GPU, and reading what ptxas says that its kernels need.

    compile  CUDA text -> cubin and report, with the flags that TVM itself gives to nvcc
    ptxas    the report -> registers, shared memory and spills of each kernel

Where nvcc is missing, `nvcc_version` is None and `compile_cuda` raises a ToolError.
"""

from .compile import TIME_LIMIT_S, Compiled, compile_cuda, nvcc_version
from .ptxas import Resources, parse_report, parse_reports

__all__ = [
    "TIME_LIMIT_S",
    "Compiled",
    "Resources",
    "compile_cuda",
    "nvcc_version",
    "parse_report",
    "parse_reports",
]
