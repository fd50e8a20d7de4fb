"""A model's one region with its plan, kernels and constants: what the reference interpreter needs."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import tvm

from tvm_rammer import relay_passes
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.regions import KernelizedModule, find_regions
from tvm_rammer.device import DeviceSpec, host_cpu
from tvm_rammer.ir import RProgram
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.wavefront import CostModel, schedule, schedule_loop


@dataclass(frozen=True)
class PlannedRegion:
    """`kernels` has one for each operator of the program, `constants` a value for each constant buffer by name."""

    program: RProgram
    kernels: list[ScheduledKernel]
    constants: dict[str, np.ndarray]
    device: DeviceSpec


def planned_loop(model: onnx.ModelProto, units: int, **loaded: Any) -> PlannedRegion:
    """Plan the one loop of a model for a CPU of so many cores; `loaded` is for `load_model`."""
    record = Compilation(replace(host_cpu(), units=units))
    target = tvm.target.Target(record.device.target_config())
    regions = find_regions(relay_passes.prepare(target)(relay_passes.load_model(model, loops=True, **loaded)), record)
    (region,) = [region for region in regions.partition.regions if region.body]
    (program,) = schedule_loop(region.graph, record.kernels, record.device, veus=units, copies=record.copies)
    return _planned(regions, region, program, record.device)


def planned_region(model: onnx.ModelProto, units: int) -> PlannedRegion:
    """Plan a model for a CPU of so many cores, in one program."""
    record = Compilation(replace(host_cpu(), units=units))
    target = tvm.target.Target(record.device.target_config())
    regions = find_regions(relay_passes.prepare(target)(relay_passes.load_model(model)), record)
    (region,) = regions.partition.regions
    cost = replace(CostModel.of(record.device), launch_us=1e6)
    (program,) = schedule(region.graph, record.kernels, record.device, veus=units, cost=cost, copies=record.copies)
    return _planned(regions, region, program, record.device)


def _planned(
    regions: KernelizedModule, region: relay_passes.Region, program: RProgram, device: DeviceSpec
) -> PlannedRegion:
    by_name = {k.spec.name: k for made in regions.kernels.values() for k in made}
    constants = {
        b.name: e.value.numpy()
        for b, e in zip(region.graph.buffers, region.buffer_exprs, strict=True)
        if b.kind == "constant"
    }
    return PlannedRegion(program, [by_name[k.name] for k in program.kernels], constants, device)
