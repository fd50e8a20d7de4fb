"""ONNX Runtime's interface in front of the compiler: existing code moves by one line, with or without ONNX Runtime.

import tvm_rammer.onnxruntime as ort  # instead of: import onnxruntime as ort

    session    InferenceSession
    providers  what sessions run on
    options    SessionOptions, RunOptions and their enumerations
    node_arg   NodeArg
    values     OrtValue
    io_binding IOBinding
    metadata   ModelMetadata
"""

from typing import NoReturn

from ..version import VERSION
from .io_binding import IOBinding
from .metadata import ModelMetadata
from .node_arg import NodeArg
from .options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .providers import CPU_PROVIDER
from .session import InferenceSession
from .values import OrtValue

__version__ = VERSION
__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]


def get_available_providers() -> list[str]:
    """What ONNX Runtime calls the device that sessions run on."""
    return [CPU_PROVIDER]


def get_all_providers() -> list[str]:
    """The same."""
    return [CPU_PROVIDER]


def get_device() -> str:
    """Always "CPU"."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Has no meaning here: messages go to Python's logger "tvm_rammer"."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Has no meaning here: messages go to Python's logger "tvm_rammer"."""


def set_seed(seed: int) -> None:
    """Has no meaning here: models with random numbers are refused."""


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"tvm_rammer.onnxruntime has no {name!r} of ONNX Runtime's interface; it has {', '.join(__all__)}"
    )
