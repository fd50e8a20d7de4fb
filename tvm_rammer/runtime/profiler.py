"""Rammer's profiler (OSDI 2020, 3.3): what each rTask of an rProgram takes, among the others, in real runs."""

import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tvm
from tvm import relax

from .. import persistent_codegen as codegen
from .. import relay_passes
from ..arguments import whole
from ..compilation.record import Compilation
from ..compilation.regions import plan_regions
from ..compilation.stages import build, find_kernels
from ..compilation.target import resolve_device, with_threads
from ..compilation.unrolling import with_loops
from ..device import DeviceSpec
from ..errors import LoopError, ModelError, TargetError, ToolError
from ..ir import RProgram, Run, unroll
from ..relay_passes.loops.body import is_rolled_up
from ..wavefront import (
    CostModel,
    PolicyOptions,
    Timeline,
    measured_timeline,
    schedule_svg,
    simulate,
    trace_json,
)
from .pool import use_workers
from .tensors import TensorSpec, random_inputs, tensor_specs, to_tensor

_MAX_RUNS = 50
"""Runs that are evaluated at most; of more, every n-th is."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What runs of a model's rPrograms took.

    Parameters
    ----------
    compilation : Compilation
        With the rPrograms that ran.
    timelines : tuple of Timeline
        Of each rProgram the run whose makespan is the median.
    rtask_us : mapping of str to float
        For each kernel that ran, by name, the median over the runs of the mean time of its rTasks.
    not_run : tuple of str
        The rPrograms of branches that these data did not take.

    Notes
    -----
    Only the faster half of the runs counts: other load on the machine only adds time. What a loop repeats is there
    once.
    """

    compilation: Compilation
    timelines: tuple[Timeline, ...]
    rtask_us: Mapping[str, float]
    not_run: tuple[str, ...] = ()

    def cost(self) -> CostModel:
        """The cost of the device, corrected by how far predictions are off."""
        return profiled_cost(self.compilation, self.rtask_us)

    def trace(self) -> str:
        """The measured runs as a trace in JSON, for Perfetto (ui.perfetto.dev) or chrome://tracing."""
        return trace_json(self.compilation.programs, CostModel.of(self.compilation.device), self.timelines)

    def schedule_svg(self) -> str:
        """Draw the measured runs: one lane a vEU, rTasks coloured by rOperator, waits hatched."""
        return schedule_svg(self.compilation.programs, CostModel.of(self.compilation.device), self.timelines)

    def text(self) -> str:
        """A table of the kernels, those first that take most time, with predicted times beside the measured ones."""
        if not self.timelines and not self.not_run:
            why = "all is left to stock TVM" if self.compilation.stock_calls else "its results are inputs or constants"
            return f"The model has no rProgram to profile: {why}."
        cost, lines = CostModel.of(self.compilation.device), []
        for program, timeline in zip(self.compilation.programs, self.timelines, strict=True):
            simulated = simulate(program, cost)
            lines += [
                f"{program.name}: measured {timeline.makespan_us:.1f} us, vEUs busy for {timeline.utilisation:.0%} of "
                f"it; predicted {simulated.makespan_us:.1f} us and {simulated.utilisation:.0%}",
                f"{'us in all':>10} {'predicted':>10} {'calls':>6} {'rTasks':>7} {'us each':>9}  kernel",
                *self._rows(program),
                "",
            ]
        lines += [f"{name} did not run: these data do not lead to it" for name in self.not_run]
        return "\n".join(lines)

    def _rows(self, program: RProgram) -> list[str]:
        calls = Counter(unroll(program).kernels)
        by_time = sorted(calls, key=lambda k: -self.rtask_us[k.name] * k.num_rtasks * calls[k])
        return [
            f"{self.rtask_us[k.name] * k.num_rtasks * calls[k]:>10.1f} {k.rtask_us * k.num_rtasks * calls[k]:>10.1f} "
            f"{calls[k]:>6} {k.num_rtasks:>7} {self.rtask_us[k.name]:>9.3f}  {k.name}"
            for k in by_time
        ]


def profile(
    model: Any,
    inputs: Sequence[np.ndarray] | None = None,
    *,
    target: Any = "cpu",
    shapes: Mapping[str, Sequence[int]] | None = None,
    policy: str = "auto",
    sync: str = "auto",
    options: PolicyOptions | None = None,
    tuning_logs: str | os.PathLike[str] | None = None,
    runs: int = 30,
    threads: int | None = None,
) -> Profile:
    """Compile a model for this machine's CPU so that it notes the time, and run it.

    Noting costs each instruction of an rProgram some 30 ns.

    Parameters
    ----------
    model, target, shapes, policy, sync, options, tuning_logs
        As in `tvm_rammer.compile`.
    inputs : sequence of numpy.ndarray, optional
        In the model's order; without them random ones.
    runs : int
        At least one.
    threads : int, optional
        As in `tvm_rammer.compile`.

    Returns
    -------
    Profile

    Raises
    ------
    ScheduleError, CodegenError
        As in `tvm_rammer.compile`.
    ModelError
        As there; or too few or too many inputs, or one of another shape or type than the model's.
    TargetError
        The target is no CPU.
    ToolError
        There are fewer cores than vEUs.
    """
    whole("runs", runs, 1)
    device = with_threads(resolve_device(target), threads)
    _check_device(device)

    def compiled(loops: bool, roll: bool = True) -> tuple[Compilation, tuple[TensorSpec, ...], relax.VMExecutable]:
        record = Compilation(device, policy, sync, options)
        loaded = relay_passes.load_model(model, shapes, loops=loops, roll=loops and roll)
        try:
            module = plan_regions(find_kernels(loaded, record, tuning_logs), record)
        except LoopError:
            if not is_rolled_up(loaded):
                raise
            return compiled(loops, roll=False)
        return record, tensor_specs(loaded), build(module, record, stamped=True)

    record, specs, executable = with_loops(compiled, sync == "auto")
    return _run(executable, record, specs, random_inputs(specs, 0) if inputs is None else inputs, runs)


def _check_device(device: DeviceSpec) -> None:
    if device.kind != "cpu":
        raise TargetError(
            f"{device.name} cannot be profiled: only rPrograms for a CPU note the time; give target='cpu'"
        )
    if codegen.num_workers() < device.units:
        raise ToolError(
            f"{codegen.num_workers()} workers for {device.units} vEUs would take turns, and the times of rTasks "
            "would hold those of others; set TVM_NUM_THREADS to no more than the cores that this process may use"
        )


def _run(
    executable: relax.VMExecutable,
    record: Compilation,
    specs: Sequence[TensorSpec],
    inputs: Sequence[np.ndarray],
    runs: int,
) -> Profile:
    """Run a model whose rPrograms were generated with `stamped=True`."""
    if len(inputs) != len(specs):
        raise ModelError(f"{len(inputs)} inputs given, but the model has {len(specs)}; give one array for each")
    use_workers()
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]
    tensors = [to_tensor(value, spec, tvm.cpu()) for value, spec in zip(inputs, specs, strict=True)]
    with codegen.collect_stamps() as found:
        main(*tensors)
        found.clear()
        for _ in range(runs):
            main(*tensors)
    return make_profile(record, found)


def make_profile(record: Compilation, found: Sequence[tuple[str, np.ndarray]]) -> Profile:
    """Put together what `persistent_codegen.collect_stamps` gathered of runs of a model."""
    runs: dict[str, list[np.ndarray]] = defaultdict(list)
    for name, raw in found:
        runs[name].append(raw)
    ran = [program for program in record.programs if program.name in runs]
    of = {program.name: _timelines(program, runs[program.name]) for program in ran}
    middle = tuple(of[program.name][len(of[program.name]) // 2] for program in ran)
    not_run = tuple(program.name for program in record.programs if program.name not in runs)
    return Profile(replace(record, programs=ran), middle, _rtask_us(ran, of), not_run)


def _timelines(program: RProgram, found: Sequence[np.ndarray]) -> list[Timeline]:
    """Some of the faster half of the runs, the fastest first."""
    runs = sorted((codegen.read_stamps(program, raw) for raw in found), key=lambda run: run.makespan_us)
    fast = runs[: -(-len(runs) // 2)]
    some = fast[:: -(-len(fast) // _MAX_RUNS)]
    return [measured_timeline(program, run.begin_us.tolist(), [lane.tolist() for lane in run.end_us]) for run in some]


def profiled_cost(record: Compilation, rtask_us: Mapping[str, float]) -> CostModel:
    """The cost of a device, corrected by how far the predicted times of kernels are off where these ran.

    A kernel that did not run is as far off as those of the same function that did.

    Parameters
    ----------
    record : Compilation
        With the plans that were run.
    rtask_us : mapping of str to float
        Measured times of rTasks, by the kernel's name.
    """
    cost = CostModel.of(record.device)
    predicted_us = _rtask_us(record.programs, {p.name: [simulate(p, cost)] for p in record.programs})
    factors = {name: time / predicted_us[name] for name, time in rtask_us.items() if predicted_us[name]}
    for made in record.kernels.values():
        if ran := [factors[k.name] for k in made if k.name in factors]:
            factors |= {k.name: statistics.mean(ran) for k in made if k.name not in factors}
    return replace(cost, factors=factors)


def _rtask_us(programs: Sequence[RProgram], of: Mapping[str, Sequence[Timeline]]) -> dict[str, float]:
    samples: dict[str, list[float]] = defaultdict(list)
    for program in map(unroll, programs):
        for timeline in of[program.name]:
            total_us: dict[str, float] = defaultdict(float)
            rtasks: Counter[str] = Counter()
            for span in timeline.spans:
                instruction = program.lanes[span.lane][span.instruction]
                if isinstance(instruction, Run):
                    kernel = program.kernels[instruction.operator].name
                    total_us[kernel] += span.end_us - span.start_us
                    rtasks[kernel] += instruction.count
            for kernel, count in rtasks.items():
                samples[kernel].append(total_us[kernel] / count)
    return {kernel: statistics.median(times) for kernel, times in samples.items()}
