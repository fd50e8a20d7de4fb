"""A graph of Dynamo, compiled for each set of shapes with which it is called."""

import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._functorch.aot_autograd import aot_module_simplified
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode

from ..errors import first_line
from ..relay_passes.aten.decompose import decompositions, simple_tracing
from ..runtime.module import RammerModule
from .core import Core
from .floats import float_inputs, with_numbers
from .refusals import RefusedError, refuse_graph, refuse_here, warn_of
from .settings import Settings

MOST_SHAPES = 8
"""Sets of shapes for which a graph of open shapes is compiled: those that come first."""

_TRACING = threading.RLock()
"""Tracing changes settings of the whole process."""

_GRAPHS: "weakref.WeakSet[CompiledGraph]" = weakref.WeakSet()


class CompiledGraph:
    """A graph of Dynamo as a function; what cannot be compiled runs in PyTorch, after one warning.

    Nothing is compiled before the first call. A graph of open shapes is compiled for each set of shapes that comes.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
    example_inputs : sequence
    settings : Settings
    """

    def __init__(self, graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any], settings: Settings) -> None:
        self._graph_module, self._settings = graph_module, settings
        self._as_it_is: Callable[..., Any] = graph_module
        self._weights = _static_inputs(graph_module)
        self._floats = float_inputs(graph_module)
        self._open = bool(self._floats) or any(_is_symbolic(value) for value in example_inputs)
        self._traced: dict[tuple[object, ...], Callable[..., Any]] = {}
        self._cores: dict[tuple[object, ...], Core] = {}
        self._shared: dict[tuple[object, ...], object] = {}
        self.refusals: list[str] = []
        """Why sets of shapes run in PyTorch."""
        _GRAPHS.add(self)

    @property
    def modules(self) -> tuple[RammerModule, ...]:
        """What was compiled, one module for each set of shapes; none where the graph runs in PyTorch."""
        return tuple(core.module for core in list(self._cores.values()) if core.module is not None)

    def __call__(self, *args: Any) -> Any:
        key = (*_key(args), *(args[number].item() for number in self._floats)) if self._open else ()
        run = self._traced.get(key)
        if run is None:
            with _TRACING:
                run = self._traced.get(key) or self._trace(key, args)
        if key in self._shared and _sharing(args) != self._shared[key]:
            reason = "it writes inputs, and they share memory otherwise than in its first call"
            return self._refused(RefusedError(reason))(*args)
        try:
            return run(*args)
        except RefusedError as reason:  # nothing has been written yet
            return self._leave(key, reason)(*args)

    def _trace(self, key: tuple[object, ...], args: Sequence[Any]) -> Callable[..., Any]:
        """The graph without views, mutations and Python: that is done around what is compiled, by PyTorch."""
        if len(self._traced) == MOST_SHAPES:
            return self._refused(
                RefusedError(f"it is compiled for {MOST_SHAPES} sets of shapes and numbers, and there come others")
            )
        weights = [args[number] for number in self._weights] if self._settings.freeze else []
        if self._settings.freeze:
            weights += [*self._graph_module.parameters(), *self._graph_module.buffers()]

        def compile_core(graph_module: torch.fx.GraphModule, _: Sequence[Any]) -> Core:
            context = TracingContext.try_get()
            known = context.fw_metadata if context is not None else None
            mutated = frozenset(known.mutated_inp_runtime_indices) if known is not None else frozenset()
            if mutated:  # what is traced holds for inputs that share memory as these do
                self._shared[key] = _sharing(args)
            self._cores[key] = Core(graph_module, weights, mutated, self._settings)
            return self._cores[key]

        def refuse_training(*_: Any) -> Any:
            raise RefusedError("gradients are recorded, as in training; call it under torch.no_grad()")

        try:
            refuse_here(args)
            refuse_graph(self._graph_module)
            numbers = [args[number].item() for number in self._floats]
            with simple_tracing(), tracing(TracingContext(FakeTensorMode())), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch's own
                run: Callable[..., Any] = aot_module_simplified(
                    with_numbers(self._graph_module, self._floats, numbers), args, refuse_training,
                    inference_compiler=compile_core, decompositions=decompositions(),
                )  # fmt: skip
        except RefusedError as reason:
            return self._leave(key, reason)
        except Exception as error:
            told = f"{type(error).__name__}: {first_line(error)}"
            return self._leave(key, RefusedError(f"PyTorch cannot trace it with these inputs: {told}"))
        self._traced[key] = run
        return run

    def _leave(self, key: tuple[object, ...], reason: RefusedError) -> Callable[..., Any]:
        """Leave a set of shapes to PyTorch."""
        self._cores.pop(key, None)
        self._traced[key] = self._as_it_is
        return self._refused(reason)

    def _refused(self, reason: RefusedError) -> Callable[..., Any]:
        """The graph as PyTorch runs it; the first time the user hears of it."""
        if not self.refusals:
            warn_of(str(reason))
        if str(reason) not in self.refusals:
            self.refusals.append(str(reason))
        return self._as_it_is


def compiled_graphs() -> tuple[CompiledGraph, ...]:
    """The graphs that PyTorch holds now: their modules explain themselves, their refusals say what was not compiled."""
    return tuple(_GRAPHS)


def _static_inputs(graph_module: torch.fx.GraphModule) -> list[int]:
    """Which inputs are parameters and buffers: Dynamo marks them."""
    inputs = graph_module.graph.find_nodes(op="placeholder")
    return [
        number
        for number, node in enumerate(inputs)
        if "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {})
    ]


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(not isinstance(size, int) for size in (*value.shape, *value.stride()))
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def _sharing(args: Sequence[Any]) -> object:
    """Which tensors are in the same memory, and where in it."""
    places: dict[int, list[tuple[int, int]]] = {}
    for number, arg in enumerate(args):
        if isinstance(arg, torch.Tensor) and arg.numel():
            places.setdefault(arg.untyped_storage().data_ptr(), []).append((number, arg.storage_offset()))
    return [place for place in places.values() if len(place) > 1]


def _key(args: Sequence[Any]) -> tuple[object, ...]:
    return tuple((tuple(a.shape), a.stride(), a.dtype) if isinstance(a, torch.Tensor) else (type(a), a) for a in args)
