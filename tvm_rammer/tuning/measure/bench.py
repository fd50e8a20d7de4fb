"""Builds trials and runs them, with MetaSchedule's builder and runners: in other processes, each with a time limit."""

import pathlib
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import tvm

from ...compilation.target import tvm_target
from ...device import DeviceSpec, host_cpu
from ...keep_indices import keep_indices
from ...rkernel_gen.tiling import Function
from ..tasks import Task
from ..trial import Outcome, Trial
from . import evaluate
from .evaluate import Case, poisoned_outputs, split_times, tuning_inputs

BUILD_S, RUN_S = 60.0, 30.0
"""Time limits of a build and of a run."""


class Bench(Protocol):
    """Measures trials."""

    def measure(self, trials: Sequence[Trial]) -> Iterator[tuple[Trial, Outcome]]:
        """Measure some trials; each outcome comes as soon as it is known, in any order."""


class KernelBench:
    """Builds here, and runs with a runner of MetaSchedule.

    Parameters
    ----------
    device : DeviceSpec
        A CPU.
    remote : Runners, optional
        Runs the kernels on other machines; without it they run here, in a process of their own.
    """

    def __init__(self, device: DeviceSpec, remote: "Runners | None" = None) -> None:
        from tvm.s_tir.meta_schedule.builder import LocalBuilder

        self._scratch = tempfile.TemporaryDirectory(prefix="tvm_rammer_tune_")
        self._folder = pathlib.Path(self._scratch.name)
        self._target = tvm_target(device)
        self._references: dict[str, pathlib.Path] = {}
        self._cases = 0
        self._runners = remote or LocalRunners()
        self._runner = self._runners.make_runner(self._folder)
        export = partial(_export, str(self._folder))
        self._builder = LocalBuilder(max_workers=host_cpu().units, timeout_sec=BUILD_S, f_build=_build, f_export=export)

    def __enter__(self) -> "KernelBench":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.cleanup()

    def measure(self, trials: Sequence[Trial]) -> Iterator[tuple[Trial, Outcome]]:
        """Build all, then run them: where they run here, nothing is built meanwhile."""
        from tvm.s_tir.meta_schedule.builder import BuilderInput
        from tvm.s_tir.meta_schedule.runner import RunnerInput

        inputs = [BuilderInput(_module(t), self._target) for t in trials]
        ready: list[tuple[Trial, Any]] = []
        for trial, built in zip(trials, self._builder.build(inputs), strict=True):
            if built.artifact_path is None:
                yield trial, Outcome(error=_last_line(built.error_msg))
            else:
                ready.append((trial, RunnerInput(built.artifact_path, "cpu", self._arguments(trial))))
        for together in self._runners.groups(ready):
            futures = self._runner.run([runner_input for _, runner_input in together])
            for (trial, runner_input), future in zip(together, futures, strict=True):
                yield trial, _outcome(future.result())
                pathlib.Path(runner_input.artifact_path).unlink(missing_ok=True)

    def _arguments(self, trial: Trial) -> list[Any]:
        """Write the case of a trial; describe its number as the runner passes it on."""
        from tvm.s_tir.meta_schedule.arg_info import TensorInfo

        self._cases += 1
        case_of(trial, self._reference(trial.task)).save(self._folder, self._cases)
        return [TensorInfo("int8", [self._cases])]

    def _reference(self, task: Task) -> pathlib.Path:
        key = task.function.key
        if key not in self._references:
            self._references[key] = self._folder / f"reference{len(self._references)}.npz"
            np.savez(self._references[key], *unscheduled_outputs(task))
        return self._references[key]


def case_of(trial: Trial, reference: pathlib.Path) -> Case:
    """The case of a trial."""
    shapes, dtypes = parameters(trial.task.function)
    spec = trial.kernel.spec
    units = trial.task.function.device.units
    return Case(shapes, dtypes, trial.task.num_inputs, trial.kernel.packs, spec.num_rtasks, units, str(reference))


def parameters(function: Function) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    """Shapes and types of a function's parameters."""
    params = function.func.params
    return tuple(tuple(int(n) for n in p.shape) for p in params), tuple(str(p.dtype) for p in params)


def unscheduled_outputs(task: Task) -> list[np.ndarray]:
    """What a function gives for `tuning_inputs`, by TVM's code of the function as it is: no schedule, one thread."""
    shapes, dtypes = parameters(task.function)
    count = task.num_inputs
    arrays = tuning_inputs(shapes[:count], dtypes) + poisoned_outputs(shapes[count:], dtypes[count:])
    host = tvm.target.Target({"kind": "llvm"})
    built = tvm.compile(
        tvm.IRModule({"main": keep_indices(task.function.func).with_attr("global_symbol", "main")}), host
    )
    tensors = [tvm.runtime.tensor(a) for a in arrays]
    built["main"](*tensors)
    return [t.numpy() for t in tensors[count:]]


def _module(trial: Trial) -> tvm.IRModule:
    return tvm.IRModule({"main": keep_indices(trial.kernel.func).with_attr("global_symbol", "main")})


def _build(mod: tvm.IRModule, target: tvm.target.Target, _params: Any) -> Any:
    return tvm.compile(mod, target)


def _export(folder: str, built: Any) -> str:
    handle, path = tempfile.mkstemp(suffix=".so", dir=folder)
    pathlib.Path(path).unlink()
    open(handle, "wb").close()
    built.export_library(path)
    return path


def _outcome(result: Any) -> Outcome:
    if result.run_secs is None:
        return Outcome(error=_last_line(result.error_msg))
    run_us, rtask_us = split_times([float(s) for s in result.run_secs])
    return Outcome(run_us, rtask_us)


def _last_line(message: Any) -> str:
    lines = [line.strip() for line in str(message).splitlines() if line.strip()]
    return lines[-1].removeprefix("ValueError: ") if lines else "failed without a word"


class Runners(Protocol):
    """A kind of runner, and how many trials it is given at once."""

    def make_runner(self, folder: pathlib.Path) -> Any:
        """Make the runner; cases are in `folder`."""

    def groups(self, ready: list[tuple[Trial, Any]]) -> list[list[tuple[Trial, Any]]]:
        """Cut what is to be run into groups that are handed over at once."""


class LocalRunners:
    """Kernels run on this machine, one by one: each outcome is known before the next starts."""

    def make_runner(self, folder: pathlib.Path) -> Any:
        """Start the process that runs them; it is started anew after a crash or a time-out."""
        from tvm.s_tir.meta_schedule.runner import LocalRunner

        allocate = partial(evaluate.allocate, folder)
        return LocalRunner(timeout_sec=RUN_S, f_alloc_argument=allocate, f_run_evaluator=evaluate.evaluate)

    def groups(self, ready: list[tuple[Trial, Any]]) -> list[list[tuple[Trial, Any]]]:
        """One each."""
        return [[item] for item in ready]
