"""The function that `torch.compile(..., backend="rammer")` calls for each graph."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..errors import ModelError
from .graph import CompiledGraph
from .settings import read_options


def rammer(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> CompiledGraph:
    """Compile a graph of Dynamo: a backend of `torch.compile`.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
    example_inputs : sequence
        A tensor or number for each input of the graph.
    options : mapping, optional
        `policy`, `sync`, `options`, `tuning_logs`, `explore`, `concurrency`, `threads` and `cache` are those of
        `tvm_rammer.compile`. `freeze=False` makes inputs of the weights, `check=False` leaves out the comparison of
        the first call with PyTorch.
    mode : str, optional
        None has a meaning here.

    Raises
    ------
    ModelError, ScheduleError, TargetError
        An option is unknown or has no sense. What is wrong with a graph is no error: it runs in PyTorch.
    """
    if mode is not None:
        raise ModelError(f"mode is {mode!r}, which has no meaning for rammer; leave it out, or give options={{...}}")
    return CompiledGraph(graph_module, example_inputs, read_options(options or {}))
