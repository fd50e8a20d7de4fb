"""Regions of a prepared module get kernels and plans; `launch` puts them back into the module as code."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import tvm
from tvm import tirx

from .. import debug, relay_passes, rkernel_gen, wavefront
from .. import persistent_codegen as codegen
from ..errors import CodegenError, DataLoopError, LoopError, ScheduleError, last_line
from ..ir import RProgram
from ..kernel import ScheduledKernel
from ..tuning.log.reader import TuningLog
from .finished import finished, resources_of
from .record import Compilation
from .splitting import split_long_sums

MOST_SHARING = 4
"""VEUs on a unit of a GPU, at most."""


@dataclass(frozen=True, slots=True)
class KernelizedModule:
    """A prepared module, cut into regions that have rKernels: what plans are made for, one or several.

    Parameters
    ----------
    mod : tvm.IRModule
        Prepared; is not changed.
    partition : relay_passes.Partition
    kernels : mapping of str to tuple of ScheduledKernel
        For each function of the regions at least one.
    library : codegen.RTaskLibrary
    """

    mod: tvm.IRModule
    partition: relay_passes.Partition
    kernels: Mapping[str, tuple[ScheduledKernel, ...]]
    library: codegen.RTaskLibrary


def find_regions(
    mod: tvm.IRModule, record: Compilation, tuning_logs: str | os.PathLike[str] | None = None
) -> KernelizedModule:
    """Split long sums of a prepared module, cut it into regions of operators that all have rKernels, and make these."""
    mod = split_long_sums(mod, record.device)
    partition = relay_passes.partition(mod)
    functions = {gv.name_hint: f for gv, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    graphs = [region.graph for region in partition.regions]
    log = TuningLog(tuning_logs) if tuning_logs is not None else None
    made = rkernel_gen.make_kernels(graphs, functions, record.device, log)
    record.kernels |= {name: tuple(k.spec for k in kernels) for name, kernels in made.kernels.items()}
    record.dropped += Counter(made.dropped)
    record.copies = rkernel_gen.find_copies(graphs, functions) if record.views else {}
    module = KernelizedModule(mod, partition, made.kernels, codegen.rtask_library(record.device))
    without = [name for name, kernels in made.kernels.items() if not kernels]
    return _leave(module, record, dict.fromkeys(without, "no rule makes a single kernel of it on this device"))


def _leave(module: KernelizedModule, record: Compilation, reasons: Mapping[str, str]) -> KernelizedModule:
    """Leave functions to stock TVM, each for a reason, and tell the record what there is to plan now."""
    if reasons:
        mod = module.mod.clone()
        for name, reason in reasons.items():
            mod.update_func(mod.get_global_var(name), mod[name].with_attr(relay_passes.LEAVE, reason))
        module = replace(module, mod=mod, partition=relay_passes.partition(mod))
    record.stock_calls = list(module.partition.stock_calls)
    record.graphs = [region.graph for region in module.partition.regions]
    return module


class _NoneLowersError(CodegenError):
    """No kernel of a function can become an rTask function."""

    def __init__(self, function: str, error: Exception) -> None:
        super().__init__(f"no kernel of it can become an rTask function: {last_line(error)}")
        self.function = function


def plan_regions(module: KernelizedModule, record: Compilation) -> KernelizedModule:
    """Plan every region; add the programs to the record, and what must do without a kernel, too.

    Returns
    -------
    KernelizedModule
        The same, or one in which functions that no kernel of theirs can be lowered for are stock calls.
    """
    while True:
        try:
            planned = [_plan(region, module, record) for region in module.partition.regions]
            if len(planned) == 1:
                planned = [_share_units(module.partition.regions[0], planned[0], module, record)]
            break
        except _NoneLowersError as error:
            debug.say(1, f"{error.function} is left to stock TVM: {error}")
            module = _leave(module, record, {error.function: str(error)})
    for programs in planned:
        record.programs += programs
        record.programs_per_region.append(len(programs))
        for program in programs:
            debug.say(1, f"{program.name}: {len(program.graph.operators)} rOperators, {program.waits()} waits")
    return module


def _plan(region: relay_passes.Region, module: KernelizedModule, record: Compilation) -> tuple[RProgram, ...]:
    """Plan a region, and plan again without a kernel that the code generator refuses.

    Raises
    ------
    LoopError
        It is a loop that cannot be planned.
    """
    graphs = [region.graph]
    if record.shares:
        owned = relay_passes.models_of(module.mod, region, record.num_params)
        graphs = [region.graph.subgraph(operators, region.graph.name) for operators in owned]
    while True:
        if region.body:
            programs = _plan_loop(region, record)
        else:
            programs = wavefront.schedule_together(
                graphs, record.kernels, record.device, name=region.graph.name, veus=record.device.units,
                shares=record.shares, policy=record.policy, sync=record.sync, options=record.options,
                copies=record.copies,
            )  # fmt: skip
        by_name = {k.spec.name: k for name in record.kernels for k in module.kernels[name]}
        for spec in dict.fromkeys(k for program in programs for k in program.kernels):
            try:
                module.library.function(by_name[spec.name])
            except (CodegenError, RuntimeError) as error:  # ours, or TVM's InternalError
                others = tuple(k for k in record.kernels[spec.function] if k != spec)
                if not others:
                    raise _NoneLowersError(spec.function, error) from error
                debug.say(1, f"planning again without {spec.name}: {error}")
                record.dropped["refused by the code generator"] += 1
                record.kernels[spec.function] = others
                break
        else:
            return programs


def _share_units(
    region: relay_passes.Region, programs: tuple[RProgram, ...], module: KernelizedModule, record: Compilation
) -> tuple[RProgram, ...]:
    """The same region with several vEUs on each unit of a GPU: one more as long as that is predicted to be faster, and
    ptxas agrees.
    """
    if record.device.kind != "cuda" or region.body or record.shares:
        return programs
    for blocks in range(2, MOST_SHARING + 1):
        sharing = wavefront.schedule_sharing(
            region.graph, record.kernels, record.device, programs, blocks=blocks, policy=record.policy,
            sync=record.sync, options=record.options, copies=record.copies,
        )  # fmt: skip
        if sharing is None or not _has_registers(sharing, region, module, record):
            break
        programs = sharing
    return programs


def _has_registers(
    programs: Sequence[RProgram], region: relay_passes.Region, module: KernelizedModule, record: Compilation
) -> bool:
    """Whether ptxas leaves no thread's values to memory, with as many registers as the blocks of a unit leave it."""
    by_name = {k.spec.name: k for made in module.kernels.values() for k in made}
    try:
        needs = [
            resources_of(program, finished(program, region, by_name, record.device, module.library), record.device)
            for program in programs
        ]
    except (CodegenError, RuntimeError) as error:  # ours, or TVM's InternalError
        debug.say(1, f"units have fewer vEUs: {last_line(error)}")
        return False
    if any(need.get("spill_bytes") != 0 for need in needs):
        debug.say(1, "units have fewer vEUs: with one more ptxas spills registers, or nobody can ask it")
        return False
    return True


def _plan_loop(region: relay_passes.Region, record: Compilation) -> tuple[RProgram, ...]:
    try:
        return wavefront.schedule_loop(
            region.graph, record.kernels, record.device, veus=record.device.units, options=record.options,
            copies=record.copies,
        )  # fmt: skip
    except ScheduleError as error:
        kind = LoopError if region.graph.condition is None else DataLoopError
        raise kind(f"{region.body} cannot be planned: {error}") from error
