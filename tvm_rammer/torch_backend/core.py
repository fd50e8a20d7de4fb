"""What the tracing leaves of a graph: a pure function of ATen operators, compiled when it is first called."""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..driver import compile
from ..errors import ModelError, RammerError, last_line
from ..relay_passes.aten.importer import DTYPES, import_graph, is_read
from ..runtime.module import RammerModule
from .refusals import RefusedError
from .settings import Settings
from .tensors import difference, to_torch, to_tvm
from .weights import FrozenWeights

FREEZES = 2
"""How often parameters are built in anew after they changed, before they become inputs."""

MOST_OPERATORS = 20_000
"""Of a graph: compiling takes some ten milliseconds for each, and a step of an LSTM that is unrolled has 18."""

TOLERANCE = 1e-3
"""Of the comparison of the first call with PyTorch, as a share of a result's largest value."""


@dataclass(frozen=True, slots=True)
class Built:
    """A compiled graph, and how it is called.

    Parameters
    ----------
    module : RammerModule
    inputs : tuple of int
        The arguments that it takes.
    weights : FrozenWeights
        The arguments that are built in.
    fixed : frozenset of int
        The results that depend on these alone: memory of the module.
    """

    module: RammerModule
    inputs: tuple[int, ...]
    weights: FrozenWeights
    fixed: frozenset[int]


class Core:
    """A functional graph of ATen operators as a function of real tensors.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        Of static shapes; what each node is, is in its `meta["val"]`.
    weights : sequence of torch.Tensor
        Arguments that may be built in.
    mutated : collection of int
        Arguments that the graph's caller writes after each call.
    settings : Settings
    """

    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        weights: Sequence[torch.Tensor],
        mutated: Collection[int],
        settings: Settings,
    ) -> None:
        self._graph_module, self._settings = graph_module, settings
        self._placeholders = graph_module.graph.find_nodes(op="placeholder")
        self._operators = [node for node in graph_module.graph.nodes if node.op == "call_function"]
        self._computes = any(not getattr(node.target, "is_view", False) for node in self._operators)
        self._outputs = list(graph_module.graph.output_node().args[0])
        self._examples = [node.meta.get("val") if hasattr(node, "meta") else node for node in self._outputs]
        self._weights: Sequence[torch.Tensor] | None = weights
        self._freezable: set[int] = set()
        self._mutated, self._freezes = mutated, 0
        self._lock = threading.Lock()
        self._built: Built | None = None

    @property
    def module(self) -> RammerModule | None:
        """The compiled module; None before the first call."""
        return self._built.module if self._built else None

    def __call__(self, *args: Any) -> Sequence[Any]:
        """Run the graph.

        Raises
        ------
        RefusedError
            It cannot be compiled, or its first results are not PyTorch's.
        """
        if not self._computes:
            return self._graph_module(*args)  # type: ignore[no-any-return]
        built = self._built
        if built is None or built.weights.changed(args):
            with self._lock:
                built = self._built
                if built is None or (changed := built.weights.changed(args)):
                    self._thaw(changed if built else [], args)
                    self._built, results = self._build(args)
                    return results
        return self._run(built, args)

    def _thaw(self, changed: Collection[int], args: Sequence[Any]) -> None:
        """Decide which weights are built in: neither buffers that change, nor parameters that change often."""
        if self._weights is not None:
            known = {id(weight) for weight in self._weights}
            self._freezable = {i for i, arg in enumerate(args) if id(arg) in known and i not in self._mutated}
            self._weights = None
        elif changed:
            self._freezes += 1
            parameters = {i for i in changed if isinstance(args[i], torch.nn.Parameter)}
            self._freezable -= set(changed) - (parameters if self._freezes <= FREEZES else set())

    def _build(self, args: Sequence[Any]) -> tuple[Built, Sequence[Any]]:
        """The compiled graph, and what it gives for these arguments."""
        if (operators := len(self._operators)) > MOST_OPERATORS:
            raise RefusedError(
                f"it has {operators} operators, of which {MOST_OPERATORS} are compiled; shorten its sequences"
            )
        read = [i for i, node in enumerate(self._placeholders) if is_read(node)]
        for dtype in {str(args[i].dtype).removeprefix("torch.") for i in read} - DTYPES:
            raise RefusedError(
                f"a tensor is {dtype}, in which is not computed here; use one of {', '.join(sorted(DTYPES))}"
            )
        frozen = [i for i in read if i in self._freezable]
        weights = FrozenWeights(frozen, args)
        constants = {self._placeholders[i].name: args[i].detach().contiguous().numpy() for i in frozen}
        try:
            mod = import_graph(self._graph_module, constants)
            module = compile(mod, **self._settings.compiling)
        except RammerError as error:
            raise RefusedError(str(error)) from error
        except Exception as error:  # a user who asked for speed is to have a result
            raise RefusedError(f"a defect of tvm_rammer: {type(error).__name__}: {last_line(error)}") from error
        inputs = tuple(i for i in read if i not in self._freezable)
        built = Built(module, inputs, weights, self._fixed(inputs))
        results = self._run(built, args)
        if self._settings.check and (wrong := difference(results, self._graph_module(*args), TOLERANCE)):
            raise RefusedError(f"what was compiled is not what PyTorch computes: {wrong}; please report the model")
        return built, results

    def _run(self, built: Built, args: Sequence[Any]) -> Sequence[Any]:
        given = [to_tvm(args[i]) for i in built.inputs]
        try:
            computed = iter(built.module.leaves(*given))
        except ModelError:  # an index that is outside: PyTorch has an error of its own
            return self._graph_module(*args)  # type: ignore[no-any-return]
        held = {args[i].data_ptr() for i in built.inputs}
        results = []
        for number, (node, like) in enumerate(zip(self._outputs, self._examples, strict=True)):
            if not isinstance(like, torch.Tensor):
                results.append(node)
                continue
            tensor = to_torch(next(computed), like, held)
            results.append(tensor.clone() if number in built.fixed else tensor)
        return results

    def _fixed(self, inputs: Collection[int]) -> frozenset[int]:
        varying = {self._placeholders[i] for i in inputs}
        for node in self._graph_module.graph.nodes:
            if any(source in varying for source in node.all_input_nodes):
                varying.add(node)
        return frozenset(i for i, node in enumerate(self._outputs) if node not in varying)
