"""Rammer (OSDI 2020) on today's Apache TVM: a model runs as a few persistent kernels, planned at compile time.

    import tvm_rammer
    module = tvm_rammer.compile("model.onnx")
    outputs = module(x)

Importing this package is quick: TVM is imported when it is first needed. Once TVM's Relax is there,
`relax.get_pipeline("rammer")` is too.
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import startup
from .version import VERSION

if TYPE_CHECKING:  # `__getattr__` imports these when they are first used; type checkers need to see them
    from .device import DeviceSpec
    from .driver import compile, compile_together
    from .errors import (
        CodegenError,
        MissingToolError,
        ModelError,
        RammerError,
        ResidencyError,
        SavedModelError,
        ScheduleError,
        ShapeError,
        TargetError,
        ToolError,
        TuningLogError,
        UnsupportedOperatorError,
        VerificationError,
    )
    from .ir import RProgram
    from .onnxruntime import InferenceSession
    from .open_shapes.module import SymbolicModule
    from .relay_passes.onnx.fix_inputs import fix_inputs
    from .rkernel_gen.registered import CudaSource, TirKernel, register_rkernel, unregister_rkernel
    from .runtime.module import RammerModule
    from .runtime.profiler import Profile, profile
    from .saving.load import load
    from .wavefront.options import PolicyOptions
    from .wavefront.policies import POLICIES

startup.register_pipeline_with_tvm()

_MODULE_OF = {
    "compile": "driver",
    "compile_together": "driver",
    "RammerModule": "runtime.module",
    "SymbolicModule": "open_shapes.module",
    "fix_inputs": "relay_passes.onnx.fix_inputs",
    "profile": "runtime.profiler",
    "Profile": "runtime.profiler",
    "load": "saving.load",
    "InferenceSession": "onnxruntime",
    "DeviceSpec": "device",
    "RProgram": "ir",
    "POLICIES": "wavefront.policies",
    "PolicyOptions": "wavefront.options",
    "CudaSource": "rkernel_gen.registered",
    "TirKernel": "rkernel_gen.registered",
    "register_rkernel": "rkernel_gen.registered",
    "unregister_rkernel": "rkernel_gen.registered",
    "RammerError": "errors",
    "ModelError": "errors",
    "ShapeError": "errors",
    "UnsupportedOperatorError": "errors",
    "TargetError": "errors",
    "ScheduleError": "errors",
    "VerificationError": "errors",
    "CodegenError": "errors",
    "ResidencyError": "errors",
    "TuningLogError": "errors",
    "SavedModelError": "errors",
    "ToolError": "errors",
    "MissingToolError": "errors",
}

__version__ = VERSION
__all__ = [
    "POLICIES",
    "CodegenError",
    "CudaSource",
    "DeviceSpec",
    "InferenceSession",
    "MissingToolError",
    "ModelError",
    "PolicyOptions",
    "Profile",
    "RProgram",
    "RammerError",
    "RammerModule",
    "ResidencyError",
    "SavedModelError",
    "ScheduleError",
    "ShapeError",
    "SymbolicModule",
    "TargetError",
    "TirKernel",
    "ToolError",
    "TuningLogError",
    "UnsupportedOperatorError",
    "VerificationError",
    "compile",
    "compile_together",
    "fix_inputs",
    "load",
    "profile",
    "register_rkernel",
    "unregister_rkernel",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
