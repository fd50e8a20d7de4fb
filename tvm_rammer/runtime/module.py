"""A compiled model that can be called; what can be asked of it is in compiled.py."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import names_of
from ..device import why_not_here
from ..errors import DATA_MARK, ModelError, TargetError, ToolError, last_line
from .bound.binding import Binding, Port, arrays_of
from .bound.results import are_large, into_arrays
from .compiled import CompiledModel
from .contexts import Context, ContextPool
from .explore import Exploration, Plan
from .streams import StreamOrder
from .tensors import (
    TensorSpec,
    are_arrays,
    as_array,
    bind,
    check_input,
    is_on_cpu,
    leaves_of,
    to_numpy,
    to_tensor,
)
from .tvm_runtime import Machine, give_memory_back, tell_workers

if TYPE_CHECKING:
    import tvm

CONCURRENCY = 8
"""Calls of one module that run at the same time, unless the user says how many: each has a workspace of its own."""


class RammerModule(CompiledModel):
    """What `tvm_rammer.compile` returns.

    Call it with NumPy arrays, numbers and lists of numbers, tvm tensors or anything that speaks DLPack, by position or
    by name. Numbers and lists have no type of their own, and get the input's. If all arguments are or become NumPy
    arrays so are the results; otherwise they are tvm tensors. The results have the model's structure: one tensor, or a
    tuple.

    Parameters
    ----------
    exploration : Exploration
        The plans to run it by; most modules have one.
    inputs, outputs : sequence of TensorSpec
        Name, shape and element type of each, in the model's order; the results of joined models one after another.
    concurrency : int
        How many threads' calls may run at the same time on a CPU; others wait.
    """

    def __init__(
        self,
        exploration: Exploration,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        concurrency: int = CONCURRENCY,
    ) -> None:
        super().__init__(exploration, inputs, outputs)
        device = exploration.best.device
        self._on_cpu = on_cpu = device.kind == "cpu"
        # The counters of a program on a GPU live in the module: one call at a time, and one run.
        self._contexts = ContextPool(self.inputs, concurrency if on_cpu else 1)
        self._streams = StreamOrder()
        self._foreign = why_not_here(device) if on_cpu else ""
        self._workers_told = not on_cpu or exploration.best.file is None
        self._needs_pool = any(plan.stock_calls for plan in exploration.alternatives)
        self._stageable = on_cpu and all(hasattr(np, s.dtype) and -1 not in s.shape for s in self.inputs)
        self._writes_arrays = self._stageable and are_large(self.outputs)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
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
        given = bind(self.inputs, args, kwargs)
        by_numpy = are_arrays(given)
        if not by_numpy:
            given = [
                value if hasattr(value, "__dlpack__") else as_array(value, spec)
                for value, spec in zip(given, self.inputs, strict=True)
            ]
            by_numpy = are_arrays(given)
        return self._contexts.call(self._call, given, by_numpy)

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """Run the model as `onnxruntime.InferenceSession.run` does.

        Parameters
        ----------
        output_names : sequence of str, optional
            Which outputs, in which order; all of them where there are none.
        feeds : mapping of str to array
            A value for each input.

        Returns
        -------
        list
            The outputs, of the type that a call has: NumPy arrays, or tvm tensors.

        Raises
        ------
        ModelError
            There is no such output; or as for a call.
        ToolError
            As for a call.
        """
        if not isinstance(feeds, Mapping) or not all(isinstance(name, str) for name in feeds):
            given = type(feeds).__name__ if not isinstance(feeds, Mapping) else f"mapping of {list(feeds)}"
            raise ModelError(f"the inputs are a {given}; give a mapping of names to arrays")
        if output_names is None:
            return leaves_of(self(**feeds))
        names = [spec.name for spec in self.outputs]
        wanted = names_of("output_names", output_names)
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise ModelError(
                f"the model has no output {', '.join(map(repr, unknown))}; its outputs are {', '.join(names)}"
            )
        results = dict(zip(names, leaves_of(self(**feeds)), strict=True))
        return [results[name] for name in wanted or names]

    def leaves(self, /, *args: Any) -> list[Any]:
        """Run the model as a call does, and return its tensors as a list, whatever their structure.

        Raises
        ------
        ModelError, ToolError
            As for a call.
        """
        return leaves_of(self(*args))

    def bind(
        self,
        inputs: Mapping[str, np.ndarray[Any, Any]] | None = None,
        outputs: Mapping[str, np.ndarray[Any, Any]] | None = None,
        *,
        states: Mapping[str, str] | None = None,
    ) -> Binding:
        """Bind the module to arrays: it is called without arguments then, and makes no arrays.

        Parameters
        ----------
        inputs, outputs : mapping of str to numpy.ndarray, optional
            Arrays to read from and to write to, by name. For others zeros are made. An array is used where it is if it
            is contiguous, can be written, and its address is a multiple of 64, as is that of those made here; it is
            copied otherwise, and where an input shares memory with an output.
        states : mapping of str to str, optional
            Inputs of a recurrent model, and the outputs that are their next values: their arrays change places after
            each call.

        Returns
        -------
        Binding
            `binding()` runs the module; `binding.inputs` and `binding.outputs` have the arrays.

        Raises
        ------
        ModelError
            There is no such input or output; an array has another shape or type; outputs share memory; or NumPy lacks
            the type of an input or output, or its size is known in a run only.
        TargetError
            The module was compiled for a GPU.
        """
        if not self._on_cpu:
            raise TargetError(
                f"the module was compiled for {self.exploration.best.device.name}, and arrays are bound on a CPU only; "
                "call it with tensors of that device, or compile for target='cpu'"
            )
        for what, given in (("inputs", inputs), ("outputs", outputs), ("states", states)):
            if given is not None and not isinstance(given, Mapping):
                raise ModelError(f"the {what} to bind are a {type(given).__name__}; give a mapping of names")
        read, written, others = self._ports(inputs or {})
        return Binding(
            partial(self._contexts.call, self._step), arrays_of(read, inputs or {}, "input"),
            arrays_of(written, outputs or {}, "output"), states or {}, others,
        )  # fmt: skip

    def _ports(self, inputs: Mapping[str, Any]) -> tuple[list[Port], list[Port], list[Any]]:
        """Inputs, outputs, and what a launch takes besides, for a binding to these inputs."""
        return [Port(spec, spec) for spec in self.inputs], [Port(spec, spec) for spec in self.outputs], []

    def _step(self, context: Context, binding: Binding) -> None:
        """Run a binding once."""
        self._prepare()
        self._run(context, _into, binding)

    def _call(self, context: Context, given: Sequence[Any], by_numpy: bool) -> Any:
        self._prepare()
        tensors = self._tensors(context, given, by_numpy)
        if by_numpy and self._writes_arrays:
            return self._run(context, self._into_arrays, tensors)
        return self._returned(self._run(context, _main, tensors), given, by_numpy)

    def _into_arrays(self, machine: Machine, tensors: Sequence[Any]) -> Any:
        return into_arrays(machine, tensors, self.outputs)

    def _prepare(self) -> None:
        """Before a call: find out whether it can run, and let this thread have workers for what stock TVM does."""
        if self._foreign or not self._on_cpu:
            self._check_here()
        if self._needs_pool:
            from .pool import use_workers

            use_workers()

    def _tensors(self, context: Context, given: Sequence[Any], by_numpy: bool) -> Sequence[Any]:
        """The arguments of the compiled function, from those of a call."""
        if self._stageable and by_numpy:
            return context.stage(given, in_place=not self._needs_pool)
        if self._on_cpu and all(map(is_on_cpu, given)):
            for value, spec in zip(given, self.inputs, strict=True):
                check_input(value, spec)
            return given
        device = self.runtime_device()
        return [to_tensor(value, spec, device) for value, spec in zip(given, self.inputs, strict=True)]

    def _returned(self, result: Any, given: Sequence[Any], by_numpy: bool) -> Any:
        """The result of a call, from that of the compiled function."""
        return to_numpy(result) if by_numpy else result

    def _run(self, context: Context, launch: Callable[[Machine, Any], Any], given: Any) -> Any:
        """Launch the best plan, or one that is explored: `launch` takes its functions, and what is given."""
        exploration = self._exploration
        try:
            if exploration.calls_left:
                result = exploration.call(partial(self._timed, context, launch, given))
            else:
                result = launch(self._machine(context, exploration.best), given)
            if not self._workers_told:  # the first call of a library makes the workers
                tell_workers()
                self._workers_told = True
        except AssertionError as error:
            if not str(error).startswith(DATA_MARK):
                raise
            raise ModelError(str(error).removeprefix(DATA_MARK)) from None
        except (RuntimeError, ValueError, TypeError, MemoryError) as error:  # TVM's, or too little memory
            give_memory_back()  # kept memory may be what is missing
            told = f"the compiled model fails: {last_line(error)}"
            raise ModelError(f"{told}; sizes that the model or its data ask for may be impossible") from error
        return result

    def _machine(self, context: Context, plan: Plan) -> Machine:
        """The functions of a plan, which may be called now."""
        if not self._on_cpu:
            self._streams.enter(self.runtime_device())
        return context.machine(plan)

    def _timed(
        self, context: Context, launch: Callable[[Machine, Any], Any], given: Any, plan: Plan
    ) -> tuple[Any, float]:
        """The result of a launch, and its time in microseconds; a GPU is waited for only while plans are compared."""
        machine = self._machine(context, plan)
        started = time.perf_counter()
        result = launch(machine, given)
        self.runtime_device().sync()
        return result, (time.perf_counter() - started) * 1e6

    def runtime_device(self) -> "tvm.runtime.Device":
        """The device that this module runs on.

        Raises
        ------
        ToolError
            There is none on this machine.
        """
        import tvm

        self._check_here()
        return tvm.cpu() if self.exploration.best.device.kind == "cpu" else tvm.cuda()

    def _check_here(self) -> None:
        device = self.exploration.best.device
        if device.kind == "cpu":
            if self._foreign:
                raise ToolError(
                    f"compiled for {device.arch}, which cannot run here: {self._foreign}; "
                    "export_library() and run that where the processor is, or compile for target='cpu'"
                )
            return
        import tvm

        if not tvm.cuda().exist:
            raise ToolError(
                f"compiled for {device.name}, but there is no CUDA device here; "
                "read cuda_source(), or export_library() and run that where the device is"
            )


def _into(machine: Machine, binding: Binding) -> None:
    binding.step(machine)


def _main(machine: Machine, tensors: Sequence[Any]) -> Any:
    return machine.main(*tensors)
