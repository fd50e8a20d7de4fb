"""The compiler as a backend of ONNX's own kind (`onnx.backend.base`), on the CPU vDevice.

    import tvm_rammer.onnx_backend as backend
    outputs = backend.run_model(model, inputs)

Inputs that are really attributes (axes, sizes, scales, a loop's trip count: `relay_passes.onnx.compile_time`) become
constants at the first call with their values; each set of values is compiled once.
"""

from .backend import Prepared, RammerBackend

is_compatible = RammerBackend.is_compatible
prepare = RammerBackend.prepare
run_model = RammerBackend.run_model
run_node = RammerBackend.run_node
supports_device = RammerBackend.supports_device

__all__ = [
    "Prepared",
    "RammerBackend",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]
