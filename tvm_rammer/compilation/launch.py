"""Planned regions become code, and the launches of it take their place in the Relax module."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

import tvm

from .. import debug, relay_passes, wavefront
from .. import persistent_codegen as codegen
from ..ir import RProgram
from ..kernel import ScheduledKernel
from .finished import RegionIndex, finished, resources_of
from .record import Compilation
from .regions import KernelizedModule, find_regions, plan_regions


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
        Whether to launch the chosen kernels one by one instead: what rPrograms are compared with. Copies are kernels
        then, too.
    """
    record.views = record.views and not single_calls
    module = plan_regions(find_regions(mod, record, tuning_logs), record)
    return launch_regions(module, record, single_calls=single_calls)


def launch_regions(
    module: KernelizedModule,
    record: Compilation,
    *,
    single_calls: bool = False,
    stamped: bool = False,
    watchdog_s: float | None = None,
) -> tvm.IRModule:
    """Generate the code of the planned programs, and put the launches into the module.

    Parameters
    ----------
    module : KernelizedModule
    record : Compilation
        With the plans.
    single_calls : bool
        Whether to launch each operator by itself, with the kernel that its program chose; planned without views.
    stamped : bool
        Whether programs report when their instructions ended (`persistent_codegen.collect_stamps`).
    watchdog_s : float, optional
        On a GPU: after how many seconds a wait that does not come true ends its kernel (`persistent_codegen.assemble`).
    """
    by_name = {k.spec.name: k for made in module.kernels.values() for k in made}
    mod, programs = module.mod, iter(record.programs)
    for region, count in zip(module.partition.regions, record.programs_per_region, strict=True):
        planned = list(islice(programs, count))
        if single_calls:
            launches = [launch for program in planned for launch in _single_launches(program, region, by_name)]
        else:
            launches = [
                _launch(program, region, by_name, record, module.library, stamped, watchdog_s) for program in planned
            ]
            launches = _with_absent(launches, region)
        mod = relay_passes.replace_region(mod, region, launches)
    return codegen.with_imports(mod, record.device) if record.programs else mod


def _with_absent(launches: Sequence[relay_passes.Launch], region: relay_passes.Region) -> list[relay_passes.Launch]:
    """Let launches replace the operators that are in no program, too: the one that writes the result, or the first."""
    operators = region.graph.operators
    absent = set(range(len(operators))).difference(*(launch.operators for launch in launches))
    added: list[list[int]] = [[] for _ in launches]
    for o in sorted(absent):
        results = set(operators[o].outputs)
        added[next((n for n, launch in enumerate(launches) if results & set(launch.outputs)), 0)].append(o)
    return [replace(launch, operators=(*launch.operators, *more)) for launch, more in zip(launches, added, strict=True)]


def _launch(
    program: RProgram,
    region: relay_passes.Region,
    by_name: Mapping[str, ScheduledKernel],
    record: Compilation,
    library: codegen.RTaskLibrary,
    stamped: bool,
    watchdog_s: float | None,
) -> relay_passes.Launch:
    """Generate the function of a program, and say how the Relax module calls it."""
    index = RegionIndex(program, region)
    built = finished(program, region, by_name, record.device, library, stamped=stamped, watchdog_s=watchdog_s)
    debug.dump(f"{program.name}.svg", lambda: wavefront.schedule_svg([program], record.cost))
    debug.dump(f"{program.name}.py", lambda: tvm.IRModule({program.name: built.func, **built.helpers}).script())
    if record.device.kind == "cuda":
        record.resources[program.name] = resources_of(program, built, record.device)
    return relay_passes.Launch(
        function=built.func,
        symbol=built.name,
        operators=tuple(index.operator[op.name] for op in program.graph.operators),
        inputs=(*(index.buffer[i] for i in built.inputs), *built.constants),
        outputs=tuple(index.buffer[i] for i in built.outputs),
        workspace=(((built.workspace_bytes,), "uint8"),),
        helpers=built.helpers,
    )


def _single_launches(
    program: RProgram, region: relay_passes.Region, by_name: Mapping[str, ScheduledKernel]
) -> list[relay_passes.Launch]:
    """Launch each operator of a program by itself, with the kernel that the program chose."""
    index = RegionIndex(program, region)
    launches = []
    for op, spec in zip(program.graph.operators, program.kernels, strict=True):
        kernel = by_name[spec.name]
        inputs = [
            kernel.packs[i].apply(index.value(b)) if i in kernel.packs else index.buffer[b]
            for i, b in enumerate(op.inputs)
        ]
        launches.append(
            relay_passes.Launch(
                function=kernel.func.with_attr("tirx.is_scheduled", True),
                symbol=spec.name,
                operators=(index.operator[op.name],),
                inputs=tuple(inputs),
                outputs=tuple(index.buffer[b] for b in op.outputs),
            )
        )
    return launches
