"""Compiling CUDA text with nvcc. No GPU is needed."""

import functools
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import MissingToolError, ToolError

TIME_LIMIT_S = 1800.0
"""The kernel of a large model takes nvcc many minutes."""

# What `tvm.support.nvcc` gives to nvcc in TVM 0.27: what is measured here is the code that TVM's own compilation makes.
STOCK_FLAGS = (
    "-cubin", "-O3",
    "-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__",
    "-U__CUDA_NO_BFLOAT16_OPERATORS__", "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-U__CUDA_NO_BFLOAT162_OPERATORS__", "-U__CUDA_NO_BFLOAT162_CONVERSIONS__",
    "--expt-relaxed-constexpr", "--expt-extended-lambda", "--use_fast_math",
    "--ptxas-options=--register-usage-level=10,-v", "-diag-suppress", "177",
)  # fmt: skip

REGISTER_USAGE = 5
"""How freely ptxas takes registers, from 0 to 10: its default. TVM asks for 10, and then ptxas keeps so much of a
persistent kernel's many functions over its whole loop that it has to spill."""

FLAGS = tuple(re.sub("(?<=register-usage-level=)[0-9]+", str(REGISTER_USAGE), flag) for flag in STOCK_FLAGS)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What nvcc made of a text.

    Parameters
    ----------
    cubin : bytes
    report : str
        Of `ptxas -v`, for `ptxas.parse_report`.
    """

    cubin: bytes
    report: str


@functools.cache
def nvcc_version() -> str | None:
    """Version of the nvcc on the PATH, as `13.0.88`; None where there is none."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return None
    output = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    found = re.search(r"\bV(\d+(?:\.\d+)+)", output)
    return found[1] if found else "unknown"


def compile_cuda(source: str, arch: str, *, time_limit_s: float = TIME_LIMIT_S, stock: bool = False) -> Compiled:
    """Compile CUDA text to a cubin.

    Parameters
    ----------
    source : str
    arch : str
        `sm_80`, `sm_90`, `sm_90a`, ...
    time_limit_s : float
    stock : bool
        Whether these are kernels of stock TVM's, to be compiled as TVM does.

    Raises
    ------
    MissingToolError
        nvcc is not on the PATH, or does not know `arch`.
    ToolError
        It takes too long, or rejects the text.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise MissingToolError(
            "nvcc is not on the PATH; install the CUDA toolkit 12.8 or newer; without it plans are made without "
            "measured registers"
        )
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        text.write_text(source, encoding="utf-8")
        try:
            done = subprocess.run(
                [nvcc, *(STOCK_FLAGS if stock else FLAGS), f"-arch={arch}", str(text), "-o", str(cubin)],
                capture_output=True, text=True, timeout=time_limit_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise ToolError(
                f"nvcc took more than {time_limit_s:g} s; compile a smaller model, or one without nvcc on the PATH"
            ) from error
        if "Unsupported gpu architecture" in done.stderr:
            raise MissingToolError(
                f"this nvcc does not compile for {arch} (CUDA 13 begins at sm_75); choose another device or toolkit"
            )
        if done.returncode:
            raise ToolError(f"nvcc rejects the text for {arch} (status {done.returncode}):\n{done.stderr[:2000]}")
        return Compiled(cubin.read_bytes(), done.stderr)
