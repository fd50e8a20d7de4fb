"""The compilers that a bundle needs: nvcc for cubins, a C compiler for the launcher."""

import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

from ..errors import ToolError

ARCHITECTURES = ("sm_90", "sm_80")
"""H100 and H200; A100. Cubins of sm_80 also run on sm_86 and sm_89."""

TIME_LIMIT_S = 900.0

# What `tvm.support.nvcc` gives to nvcc in TVM 0.27, so that ours and stock TVM's kernels become what they become there.
NVCC_FLAGS = (
    "-cubin", "-O3",
    "-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__",
    "-U__CUDA_NO_BFLOAT16_OPERATORS__", "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-U__CUDA_NO_BFLOAT162_OPERATORS__", "-U__CUDA_NO_BFLOAT162_CONVERSIONS__",
    "--expt-relaxed-constexpr", "--expt-extended-lambda", "--use_fast_math",
    "--ptxas-options=--register-usage-level=10", "-diag-suppress", "177",
)  # fmt: skip

LAUNCHER = pathlib.Path(__file__).parent / "launcher.c"


def compile_cubin(source: str, architecture: str) -> bytes:
    """Compile CUDA text with nvcc. No GPU is needed.

    Raises
    ------
    ToolError
        nvcc is missing, takes too long, or rejects the text.
    """
    nvcc = _find(("nvcc",), "install the CUDA toolkit 12.8 or newer")
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = pathlib.Path(folder, "kernels.cu"), pathlib.Path(folder, "kernels.cubin")
        text.write_text(source, encoding="utf-8")
        _run([nvcc, *NVCC_FLAGS, f"-arch={architecture}", str(text), "-o", str(cubin)])
        return cubin.read_bytes()


def build_launcher(target: pathlib.Path) -> pathlib.Path:
    """Compile the native launcher; it needs the C library and nothing else.

    Raises
    ------
    ToolError
        There is no C compiler, or it fails.
    """
    compiler = _find(("cc", "gcc", "clang"), "install a C compiler")
    _run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-s", str(LAUNCHER), "-o", str(target)])
    return target


def _find(names: Sequence[str], remedy: str) -> str:
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    raise ToolError(f"{' or '.join(names)} is not on the PATH; a bundle holds compiled kernels: {remedy}")


def _run(command: Sequence[str]) -> None:
    name = pathlib.Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{name} took more than {TIME_LIMIT_S:g} s; leave the model out of the bundle") from error
    if done.returncode:
        raise ToolError(f"{name} failed with status {done.returncode}:\n{done.stderr[:2000]}")
