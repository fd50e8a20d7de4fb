"""The stages of a compilation in their order: what compiles in another way than the driver, puts these together."""

import os

import tvm
from tvm import relax

from .. import persistent_codegen as codegen
from .. import relay_passes
from ..serial import serial
from .launch import launch_regions
from .record import Compilation
from .regions import KernelizedModule, find_regions
from .target import tvm_target


@serial
def find_kernels(
    loaded: tvm.IRModule, record: Compilation, tuning_logs: str | os.PathLike[str] | None = None
) -> KernelizedModule:
    """Prepare a loaded module, cut it into regions, and make their rKernels.

    Parameters
    ----------
    loaded : tvm.IRModule
        After `relay_passes.load_model`.
    record : Compilation
        Says for which device; what was found is added to it.
    tuning_logs : path, optional
    """
    prepared = relay_passes.prepare(tvm_target(record.device))(loaded)
    record.grows = relay_passes.has_growing_loops(prepared)
    return find_regions(prepared, record, tuning_logs)


@serial
def lower(
    module: KernelizedModule,
    record: Compilation,
    *,
    single_calls: bool = False,
    stamped: bool = False,
    watchdog_s: float | None = None,
) -> tvm.IRModule:
    """Generate the code of a planned module, and lower what is around it to what TVM's code generator takes.

    Parameters
    ----------
    module : KernelizedModule
    record : Compilation
        With the plans (`regions.plan_regions`).
    single_calls, stamped, watchdog_s
        As in `launch.launch_regions`.
    """
    launched = launch_regions(module, record, single_calls=single_calls, stamped=stamped, watchdog_s=watchdog_s)
    return relay_passes.finish(tvm_target(record.device))(launched)


@serial
def build(
    module: KernelizedModule, record: Compilation, *, single_calls: bool = False, stamped: bool = False
) -> relax.VMExecutable:
    """Compile a planned module: `lower`, and then TVM's code generator; parameters as there."""
    target = tvm_target(record.device)
    pipeline = codegen.CUDA_PIPELINE if target.kind.name == "cuda" else codegen.CPU_PIPELINE
    lowered = lower(module, record, single_calls=single_calls, stamped=stamped)
    if target.kind.name == "llvm":
        lowered = codegen.spread_loops(lowered, record.device)
    return tvm.compile(lowered, target, relax_pipeline=tvm.transform.Sequential([]), tir_pipeline=pipeline)
