"""NVRTC, by ctypes: compiles the CUDA text of a folder that has no cubins."""

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path

from ....errors import ToolError

LIBRARY_NAMES = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12")
HEADERS = ("/usr/local/cuda/include", "/usr/local/cuda/include/cccl")


def compile_with_nvrtc(source: str, architecture: str, library: str = "") -> bytes:
    """Compile CUDA text to a cubin.

    Parameters
    ----------
    source : str
    architecture : str
        Such as sm_90.
    library : str
        Path of NVRTC; empty to look for it.

    Raises
    ------
    ToolError
        NVRTC is missing, or rejects the text.
    """
    nvrtc = _load(library)
    program = c_void_p()
    status = nvrtc.nvrtcCreateProgram(byref(program), source.encode(), b"candidates.cu", c_int(0), None, None)
    if status:
        raise ToolError(f"nvrtcCreateProgram failed with status {status}")
    options = [f"--gpu-architecture={architecture}", "--use_fast_math", "--std=c++17", *_include()]
    given = (c_char_p * len(options))(*(o.encode() for o in options))
    if nvrtc.nvrtcCompileProgram(program, c_int(len(options)), given):
        raise ToolError(f"NVRTC rejects the text:\n{_get(nvrtc, program, 'ProgramLog').decode()[:2000]}")
    return _get(nvrtc, program, "CUBIN")


def _get(nvrtc: ctypes.CDLL, program: c_void_p, what: str) -> bytes:
    size = c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, byref(size))
    data = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, data)
    return data.raw


def _include() -> list[str]:
    """Where the toolkit's headers may be: TVM's text includes some of them."""
    return [f"-I{path}" for path in HEADERS if Path(path).is_dir()]


def _load(library: str) -> ctypes.CDLL:
    for name in (library,) if library else LIBRARY_NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reason = str(error)
    raise ToolError(
        f"the folder has no compiled kernels, and NVRTC is not here ({reason}); make the folder where nvcc is, "
        "or install the CUDA toolkit"
    )
