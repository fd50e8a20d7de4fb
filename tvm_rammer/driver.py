"""The whole compiler on one page: stage after stage."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import tvm
from tvm import tirx

from . import debug, relay_passes, rkernel_gen, wavefront
from . import persistent_codegen as codegen
from .compilation import Compilation
from .device import DeviceSpec, from_target_config, preset
from .errors import TargetError, ToolError
from .ir import RProgram
from .kernel import ScheduledKernel
from .module import RammerModule, TensorSpec


def compile(
    model: Any,
    *,
    target: Any = "cpu",
    shapes: Mapping[str, Sequence[int]] | None = None,
    policy: str = "wavefront",
    sync: str = "auto",
    tuning_logs: str | os.PathLike[str] | None = None,
) -> RammerModule:
    """Compile a model to persistent rPrograms inside a Relax VM executable.

    Parameters
    ----------
    model : path, onnx.ModelProto, tvm.IRModule or torch.export.ExportedProgram
    target : str, tvm.target.Target or DeviceSpec
        "cpu", "cuda:h200", "cuda:h100", "cuda:a100", "cuda:v100", or a device of your own.
    shapes : mapping of str to sequence of int, optional
        Static shapes of the inputs whose shapes the model leaves open.
    policy : str
        A scheduling policy (`tvm_rammer.wavefront.POLICIES`).
    sync : {"auto", "global"}
        Waits only where there are dependences, or a barrier between waves.
    tuning_logs : path, optional
        A MetaSchedule database (a folder of JSON files) whose records compete as rKernels.

    Returns
    -------
    RammerModule

    Raises
    ------
    ModelError, TargetError, ScheduleError, CodegenError, ToolError
        See `tvm_rammer.errors`.
    """
    device = resolve_device(target)
    tvm_target = tvm.target.Target(device.target_config())
    record = Compilation(device, policy, sync)
    mod = relay_passes.load_model(model, shapes)
    inputs = [_tensor_spec(p) for p in mod["main"].params]
    record.operators = _count_calls(mod)
    mod = relay_passes.prepare(tvm_target)(mod)
    mod = schedule_regions(mod, record, tuning_logs)
    mod = finish(tvm_target)(mod)
    return RammerModule(build(mod, tvm_target), record, inputs)


def build(mod: tvm.IRModule, target: tvm.target.Target) -> tvm.relax.VMExecutable:
    """Generate code for a module that `finish` has lowered."""
    pipeline = codegen.CUDA_PIPELINE if target.kind.name == "cuda" else "default"
    return tvm.compile(mod, target, relax_pipeline=tvm.transform.Sequential([]), tir_pipeline=pipeline)


def resolve_device(target: Any) -> DeviceSpec:
    """Turn what the user calls a target into a device.

    Raises
    ------
    TargetError
        It is no target, or one without a vDevice.
    """
    if isinstance(target, DeviceSpec):
        return target
    if isinstance(target, str):
        return preset(target)
    if isinstance(target, tvm.target.Target):
        return from_target_config(target.export())
    raise TargetError(f"{type(target).__name__} is no target; give a preset's name, a tvm Target or a DeviceSpec")


def _tensor_spec(param: tvm.ir.Var) -> TensorSpec:
    return TensorSpec(param.name, tuple(int(s) for s in param.ty.shape), str(param.ty.dtype))


def _count_calls(mod: tvm.IRModule) -> int:
    body = mod["main"].body
    return sum(isinstance(b.value, tvm.ir.Call) for block in getattr(body, "blocks", ()) for b in block.bindings)


def schedule_regions(
    mod: tvm.IRModule,
    record: Compilation,
    tuning_logs: str | os.PathLike[str] | None = None,
    *,
    single_calls: bool = False,
) -> tvm.IRModule:
    """Replace each region of a prepared module by the launches of its rPrograms.

    Parameters
    ----------
    mod : tvm.IRModule
        After `relay_passes.prepare`; is not changed.
    record : Compilation
        Says for which device and with which policy; what was decided is added to it.
    tuning_logs : path, optional
    single_calls : bool
        Whether to launch the chosen kernels one by one instead: what rPrograms are compared with.
    """
    mod, partition, kernels = _partition_with_kernels(mod, record.device, tuning_logs)
    record.left += partition.left
    record.graphs += [region.graph for region in partition.regions]
    record.kernels |= {name: tuple(k.spec for k in made) for name, made in kernels.items()}
    by_name = {k.spec.name: k for made in kernels.values() for k in made}
    library = codegen.rtask_library(record.device)
    for region in partition.regions:
        programs = wavefront.schedule(
            region.graph, record.kernels, record.device,
            veus=record.device.units, policy=record.policy, sync=record.sync,
        )  # fmt: skip
        record.programs += programs
        launches: list[relay_passes.Launch] = []
        for program in programs:
            debug.say(1, f"{program.name}: {len(program.graph.operators)} rOperators, {program.waits()} waits")
            if single_calls:
                launches += _single_launches(program, region, by_name)
            else:
                launches.append(_launch(program, region, by_name, record, library))
        mod = relay_passes.replace_region(mod, region, launches)
    return mod


def _partition_with_kernels(
    mod: tvm.IRModule, device: DeviceSpec, tuning_logs: str | os.PathLike[str] | None
) -> tuple[tvm.IRModule, relay_passes.Partition, dict[str, tuple[ScheduledKernel, ...]]]:
    """Partition a module into regions of operators that all have rKernels."""
    partition = relay_passes.partition(mod)
    functions = {gv.name_hint: f for gv, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    graphs = [region.graph for region in partition.regions]
    kernels = rkernel_gen.make_kernels(graphs, functions, device, tuning_logs)
    without = [name for name, made in kernels.items() if not made]
    if not without:
        return mod, partition, kernels
    mod = mod.clone()
    for name in without:
        mod.update_func(mod.get_global_var(name), functions[name].with_attr(relay_passes.LEAVE, _NO_KERNEL))
    return mod, relay_passes.partition(mod), kernels


_NO_KERNEL = "no rule makes a single kernel of it on this device"


def _resources(program: RProgram, built: codegen.AssembledProgram, device: DeviceSpec) -> dict[str, Any]:
    """Compile the kernel of a program with nvcc, where there is one, and make sure that all its vEUs fit."""
    found: dict[str, Any] = {"threads": built.threads, "dynamic_shared_bytes": built.shared_bytes}
    try:
        needs = codegen.measure_resources(codegen.source_of(built, device), device.arch)
    except ToolError as error:
        return found | {"unknown": str(error)}
    lanes = len(program.lanes)
    resident = codegen.check_residency(device, built.threads, needs, lanes, built.shared_bytes)
    return found | asdict(needs) | {"resident_blocks_per_unit": resident}


def _launch(
    program: RProgram,
    region: relay_passes.Region,
    by_name: Mapping[str, ScheduledKernel],
    record: Compilation,
    library: codegen.RTaskLibrary,
) -> relay_passes.Launch:
    """Generate the function of a program, and say how the Relax module calls it."""
    places = _Places(program, region)
    values = {i: places.value(i) for i, b in enumerate(program.graph.buffers) if b.kind == "constant"}
    built = codegen.assemble(program, values, [by_name[k.name] for k in program.kernels], record.device, library)
    if record.device.kind == "cuda":
        record.resources[program.name] = _resources(program, built, record.device)
    return relay_passes.Launch(
        function=built.func,
        symbol=built.name,
        operators=tuple(places.operator[op.name] for op in program.graph.operators),
        inputs=(*(places.buffer[i] for i in built.inputs), *built.embedded),
        outputs=tuple(places.buffer[i] for i in built.outputs),
        workspace=(((built.workspace_bytes,), "uint8"),),
        helpers=built.helpers,
    )


def _single_launches(
    program: RProgram, region: relay_passes.Region, by_name: Mapping[str, ScheduledKernel]
) -> list[relay_passes.Launch]:
    """Launch each operator of a program by itself, with the kernel that the program chose."""
    places = _Places(program, region)
    launches = []
    for op, spec in zip(program.graph.operators, program.kernels, strict=True):
        kernel = by_name[spec.name]
        inputs = [
            kernel.packs[i].apply(places.value(b)) if i in kernel.packs else places.buffer[b]
            for i, b in enumerate(op.inputs)
        ]
        launches.append(
            relay_passes.Launch(
                function=kernel.func.with_attr("tirx.is_scheduled", True),
                symbol=spec.name,
                operators=(places.operator[op.name],),
                inputs=tuple(inputs),
                outputs=tuple(places.buffer[b] for b in op.outputs),
            )
        )
    return launches


class _Places:
    """Where a program's buffers and operators are in the graph of its region."""

    def __init__(self, program: RProgram, region: relay_passes.Region) -> None:
        by_name = {b.name: i for i, b in enumerate(region.graph.buffers)}
        self.buffer = [by_name[b.name] for b in program.graph.buffers]
        self.operator = {op.name: i for i, op in enumerate(region.graph.operators)}
        self._exprs = region.buffer_exprs

    def value(self, buffer: int) -> np.ndarray:
        """The value of a constant buffer of the program."""
        return self._exprs[self.buffer[buffer]].value.numpy()


def finish(target: tvm.target.Target) -> tvm.transform.Pass:
    """The rest of TVM's pipeline; rTask functions stay private, or they would get an interface of their own."""
    stages = [relay_passes.finish(target), KeepRTasksPrivate()]
    if target.kind.name == "cuda":
        # What was left to stock TVM needs a schedule on a GPU: stock TVM's own.
        stages.insert(0, _stock_schedules(target))
    return tvm.transform.Sequential(stages)


def _stock_schedules(target: tvm.target.Target) -> tvm.transform.Pass:
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    rules = (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback())

    @tvm.transform.module_pass(opt_level=0, name="StockSchedules")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        with target:
            return dlight.ApplyDefaultSchedule(*rules)(mod.clone())

    return run


@tvm.transform.module_pass(opt_level=0, name="KeepRTasksPrivate")
def _keep_rtasks_private(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    for gv, func in mod.functions.items():
        if isinstance(func, tvm.tirx.PrimFunc) and "rammer.rtask" in func.attrs:
            mod.update_func(gv, func.without_attr("global_symbol"))
    return mod


def KeepRTasksPrivate() -> tvm.transform.Pass:
    """Take the global symbol from rTask functions: TVM gives one to every function it finds."""
    return _keep_rtasks_private


def rammer_pipeline(policy: str = "wavefront", sync: str = "auto") -> tvm.transform.Pass:
    """What `relax.get_pipeline("rammer")` returns: prepare, schedule, finish, for the current target."""

    @tvm.transform.module_pass(opt_level=0, name="Rammer")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        target = tvm.target.Target.current()
        if target is None:
            raise TargetError("the pipeline 'rammer' needs a target: `with target: pipeline(mod)`")
        mod = relay_passes.prepare(target)(relay_passes.load_model(mod))
        mod = schedule_regions(mod, Compilation(resolve_device(target), policy, sync))
        return finish(target)(mod)

    return run
