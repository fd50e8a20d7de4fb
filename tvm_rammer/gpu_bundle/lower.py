"""The variants of a model, each lowered to the module from which `tvm.compile` makes an executable."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import onnx
import tvm

from .. import relay_passes
from ..compilation.compiler import load_request
from ..compilation.record import Compilation
from ..compilation.regions import plan_regions
from ..compilation.request import Request
from ..compilation.stages import find_kernels, lower
from ..compilation.target import tvm_target
from ..compilation.unrolling import with_loops
from ..device import DeviceSpec
from ..relay_passes.finish import pipeline_of


def lower_stock(model: onnx.ModelProto, device: DeviceSpec) -> tvm.IRModule:
    """Lower with TVM's default pipeline for the target."""
    target = tvm_target(device)
    return pipeline_of(target).get_default_pipeline(target)(relay_passes.load_model(model))


def lower_rammer(
    model: onnx.ModelProto,
    device: DeviceSpec,
    *,
    sync: str = "auto",
    single_calls: bool = False,
    watchdog_s: float | None = None,
) -> tvm.IRModule:
    """Lower with our pipeline; loops stay loops where `compile` would keep them.

    Parameters
    ----------
    model : onnx.ModelProto
    device : DeviceSpec
    sync : {"auto", "global"}
    single_calls : bool
        Whether the chosen kernels are launched one by one.
    watchdog_s : float, optional
        Seconds after which a wait ends the kernel.
    """

    def lower_with(loops: bool) -> tvm.IRModule:
        loaded = load_request(Request([model], [None], device, sync=sync, loops=loops))
        record = Compilation(device, sync=sync, views=not single_calls)
        module = plan_regions(find_kernels(loaded.mod, record), record)
        return lower(module, record, single_calls=single_calls, watchdog_s=watchdog_s)

    return with_loops(lower_with, possible=sync == "auto" and not single_calls)


VARIANTS: Mapping[str, Callable[[Any, DeviceSpec], tvm.IRModule]] = MappingProxyType(
    {
        "rammer": lower_rammer,
        "rammer-global": lambda model, device: lower_rammer(model, device, sync="global"),
        "same-kernels": lambda model, device: lower_rammer(model, device, single_calls=True),
        "stock": lower_stock,
    }
)
"""One persistent kernel a region; the same with a barrier between waves; our kernels one by one; stock TVM."""

SINGLE_LAUNCHES = ("same-kernels", "stock")
"""Variants whose launches could run side by side."""

WATCHDOG_S = 2.0
"""A wait takes microseconds where all is well, and milliseconds where others use the GPU."""

WATCHED: Mapping[str, Callable[[Any, DeviceSpec], tvm.IRModule]] = MappingProxyType(
    {
        "rammer": lambda model, device: lower_rammer(model, device, watchdog_s=WATCHDOG_S),
        "rammer-global": lambda model, device: lower_rammer(model, device, sync="global", watchdog_s=WATCHDOG_S),
    }
)
"""Variants that could wait for ever, with a watchdog: they run first, and are not timed."""
