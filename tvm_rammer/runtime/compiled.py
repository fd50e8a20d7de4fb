"""What can be asked of a compiled model: what it became, its plan as a picture, its code, a file of it."""

import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..arguments import path_of
from ..errors import RammerError, TargetError, ToolError
from ..ir import RProgram
from ..saving.file import Facts, copy_library, copy_saved, write_saved
from ..saving.link import link_library
from .explore import Exploration
from .tensors import TensorSpec

if TYPE_CHECKING:
    from tvm import relax

    from ..compilation.record import Compilation


class CompiledModel:
    """A compiled model, without what calling it takes.

    Parameters
    ----------
    exploration : Exploration
        The plans to run it by; most modules have one.
    inputs, outputs : sequence of TensorSpec
        Name, shape and element type of each, in the model's order; the results of joined models one after another.
    """

    def __init__(self, exploration: Exploration, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> None:
        self._exploration = exploration
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)

    def __getstate__(self) -> NoReturn:
        """Neither pickled nor copied: another process opens a file.

        Raises
        ------
        RammerError
            Always; says what to do instead.
        """
        raise RammerError(
            "a compiled model cannot be pickled or copied; save() it and tvm_rammer.load() the file in the other "
            "process, or compile there: the cache has it"
        )

    @property
    def exploration(self) -> Exploration:
        """The plans that it runs by."""
        return self._exploration

    @property
    def executable(self) -> "relax.VMExecutable":
        """TVM's executable of the best plan so far."""
        return self.exploration.best.executable

    @property
    def compilation(self) -> "Compilation":
        """The record of the best plan so far."""
        return self.exploration.best.compilation

    @property
    def rprograms(self) -> tuple[RProgram, ...]:
        """The plans, in launch order."""
        return tuple(self.compilation.programs)

    def report(self) -> dict[str, Any]:
        """Return the figures of the compilation: operators, rKernels, waves, launches, waits, makespan."""
        from .report import report

        return report(self.compilation)

    def explain(self) -> str:
        """Tell what each operator became and why, and what was left to stock TVM and why."""
        from .report import explain

        return explain(self.compilation)

    def schedule_svg(self) -> str:
        """Draw the plan: one lane a vEU, rTasks coloured by rOperator, waits hatched."""
        from ..wavefront import schedule_svg

        return schedule_svg(self.rprograms, self.compilation.cost)

    def trace(self) -> str:
        """The simulated plan as a trace in JSON, for Perfetto (ui.perfetto.dev) or chrome://tracing."""
        from ..wavefront import trace_json

        return trace_json(self.rprograms, self.compilation.cost)

    def cuda_source(self) -> str:
        """Return the generated CUDA text.

        Raises
        ------
        TargetError
            The module was compiled for a CPU.
        """
        plan = self.exploration.best
        if plan.device.kind != "cuda":
            raise TargetError(
                f"the module was compiled for {plan.device.name}, which has no CUDA source; "
                'compile with target="cuda:h200" or the like'
            )
        return plan.cuda_source()

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
        target = path_of(path, ToolError)
        if target.suffix != ".so":
            raise ToolError(
                f"cannot write the library {str(target)!r}: its name does not end in .so; give one that does"
            )
        plan = self.exploration.best
        if plan.file is not None:
            copy_library(plan.file, target)
        else:
            link_library(plan.executable, target)
        return target

    def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """Save the module as one file, which `tvm_rammer.load` reads without compiling.

        The file is a library like that of `export_library`, followed by what this package knows of the model: plain TVM
        loads it, too, under a name that ends in `.so`.

        Parameters
        ----------
        path : path
            Of any name, such as `model.rammer`. It is there as a whole or not at all.

        Raises
        ------
        ToolError
            There is no C compiler on this machine, with which the library is linked, or it fails.
        RammerError
            The file cannot be written.
        """
        target, plan = path_of(path, RammerError), self.exploration.best
        if plan.file is not None:
            copy_saved(plan.file, target)
        else:
            write_saved(target, plan, self.facts())
        return target

    def facts(self) -> Facts:
        """What running it from a file needs to know."""
        return Facts.of(self.exploration.best, self.inputs, self.outputs)
