"""A compiled model: call it, ask it what it does, draw it, save it."""

import os
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.support import cc

from ..compilation.record import Compilation
from ..device import why_not_here
from ..errors import ModelError, RammerError, TargetError, ToolError, last_line
from ..files import check_writable, replacing
from ..ir import RProgram
from ..relay_passes.passes.check_indices import MARK
from ..wavefront import CostModel, schedule_svg, trace_json
from .contexts import Context, ContextPool
from .explore import Alternative, Exploration
from .pool import use_workers
from .report import explain, report
from .tensors import TensorSpec, to_numpy, to_tensor

CONCURRENCY = 8
"""Calls of one module that run at the same time, unless the user says how many: each has a workspace of its own."""


class RammerModule:
    """What `tvm_rammer.compile` returns.

    Call it with NumPy arrays or scalars, tvm tensors or anything that speaks DLPack, by position or by name. If all
    arguments are NumPy arrays so are the results; otherwise they are tvm tensors. The results have the
    model's structure: one tensor, or a tuple.

    Parameters
    ----------
    exploration : Exploration
        The plans to run it by; most modules have one.
    inputs : sequence of TensorSpec
    concurrency : int
        How many threads' calls may run at the same time on a CPU; others wait.
    """

    def __init__(self, exploration: Exploration, inputs: Sequence[TensorSpec], concurrency: int = CONCURRENCY) -> None:
        self.exploration = exploration
        self.inputs = tuple(inputs)
        on_cpu = self.compilation.device.kind == "cpu"
        # The counters of a program on a GPU live in the module: one call at a time.
        self._contexts = ContextPool(self.inputs, concurrency if on_cpu else 1)
        self._foreign = why_not_here(self.compilation.device) if on_cpu else ""
        self._stageable = on_cpu and all(hasattr(np, s.dtype) for s in self.inputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model; any number of threads may call at the same time.

        Raises
        ------
        ModelError
            An argument is missing, unknown, or of another shape or type than the model's input; or an index in the data
            is outside of what it indexes.
        ToolError
            The module was compiled for a GPU, and this machine has none; or the process was forked in the middle of
            other threads' calls.
        """
        given = [np.asarray(v) if isinstance(v, np.generic) else v for v in self._bind(args, kwargs)]
        with self._contexts.hold() as context:
            return self._contexts.run(lambda: self._call(context, given))

    def _call(self, context: Context, given: Sequence[Any]) -> Any:
        device = self.runtime_device()
        if self.compilation.stock_calls:
            use_workers()
        by_numpy = all(isinstance(value, np.ndarray) for value in given)
        if by_numpy and self._stageable:
            tensors = context.stage(given)
        else:
            tensors = [to_tensor(value, spec, device) for value, spec in zip(given, self.inputs, strict=True)]

        def run(alternative: Alternative) -> tuple[Any, float]:
            """The result, and its time in microseconds; a GPU is waited for only while plans are compared."""
            main = context.main(alternative, device)
            started = time.perf_counter()
            result = main(*tensors)
            if self.exploration.calls_left:
                device.sync()
            return result, (time.perf_counter() - started) * 1e6

        try:
            result = self.exploration.call(run)
        except AssertionError as error:
            if not str(error).startswith(MARK):
                raise
            raise ModelError(str(error).removeprefix(MARK)) from None
        return to_numpy(result) if by_numpy else result

    @property
    def executable(self) -> relax.VMExecutable:
        """TVM's executable of the best plan so far."""
        return self.exploration.best.executable

    @property
    def compilation(self) -> Compilation:
        """The record of the best plan so far."""
        return self.exploration.best.compilation

    @property
    def rprograms(self) -> tuple[RProgram, ...]:
        """The plans, in launch order."""
        return tuple(self.compilation.programs)

    def report(self) -> dict[str, Any]:
        """Return the figures of the compilation: operators, rKernels, waves, launches, waits, makespan."""
        return report(self.compilation)

    def explain(self) -> str:
        """Tell what each operator became and why, and what was left to stock TVM and why."""
        return explain(self.compilation)

    def schedule_svg(self) -> str:
        """Draw the plan: one lane a vEU, rTasks coloured by rOperator, waits hatched."""
        return schedule_svg(self.rprograms, CostModel.of(self.compilation.device))

    def trace(self) -> str:
        """The simulated plan as a trace in JSON, for Perfetto (ui.perfetto.dev) or chrome://tracing."""
        return trace_json(self.rprograms, CostModel.of(self.compilation.device))

    def cuda_source(self) -> str:
        """Return the generated CUDA text.

        Raises
        ------
        TargetError
            The module was compiled for a CPU.
        """
        if self.compilation.device.kind != "cuda":
            raise TargetError(
                f"the module was compiled for {self.compilation.device.name}, which has no CUDA source; "
                'compile with target="cuda:h200" or the like'
            )
        return "\n".join(m.inspect_source("cuda") for m in _imports(self.executable.mod) if m.kind == "cuda")

    def export_library(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """Save a library that plain TVM loads with `tvm.runtime.load_module`, without this package.

        Parameters
        ----------
        path : path
            Ends in `.so`. Linking it needs a C compiler on this machine.

        Raises
        ------
        ToolError
            The library could not be linked or written.
        """
        target = pathlib.Path(path)
        if cc.get_cc() is None:
            raise ToolError("no C compiler to link a library with; install g++, or name one in the variable CXX")
        if target.suffix != ".so":
            raise ToolError(
                f"cannot write the library {str(target)!r}: its name does not end in .so; give one that does"
            )
        try:
            check_writable(target)
            with replacing(target) as new:
                self.executable.export_library(str(new))
        except (RuntimeError, ValueError) as error:
            reason = next((line for line in str(error).splitlines() if "ld: " in line), last_line(error))
            raise ToolError(f"cannot link the library {str(target)!r}: {reason.strip()}") from error
        except RammerError as error:
            raise ToolError(str(error)) from error
        return target

    def runtime_device(self) -> tvm.runtime.Device:
        """The device that this module runs on.

        Raises
        ------
        ToolError
            There is none on this machine.
        """
        if self.compilation.device.kind == "cpu":
            if self._foreign:
                raise ToolError(
                    f"compiled for {self.compilation.device.arch}, which cannot run here: {self._foreign}; "
                    "export_library() and run that where the processor is, or compile for target='cpu'"
                )
            return tvm.cpu()
        device = tvm.cuda()
        if not device.exist:
            raise ToolError(
                f"compiled for {self.compilation.device.name}, but there is no CUDA device here; "
                "read cuda_source(), or export_library() and run that where the device is"
            )
        return device

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        names = [spec.name for spec in self.inputs]
        if len(args) > len(names):
            raise ModelError(f"{len(args)} inputs given, but the model has {len(names)}: {', '.join(names)}")
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                raise ModelError(f"the model has no input {name!r}; its inputs are {', '.join(names)}")
            if name in given:
                raise ModelError(f"input {name!r} was given twice: by position and by name")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise ModelError(f"no value for the inputs {', '.join(missing)}; pass them by position or by name")
        return [given[name] for name in names]


def _imports(module: Any) -> list[Any]:
    return [module, *(m for child in module.imports for m in _imports(child))]
