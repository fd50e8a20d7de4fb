"""What is not compiled but left to PyTorch, and how the user hears of it."""

import warnings
from collections.abc import Iterable
from typing import Any

import torch


class RefusedError(Exception):
    """A graph is to run in PyTorch; the text says why."""


def refuse_here(args: Iterable[Any]) -> None:
    """Refuse what is no inference on a CPU.

    Parameters
    ----------
    args : iterable
        The arguments of a call.

    Raises
    ------
    RefusedError
    """
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise RefusedError("gradients are recorded, as in training; call it under torch.no_grad()")
    if torch.is_autocast_enabled("cpu"):
        raise RefusedError("autocast is on, which changes the types of operators; call it without torch.autocast")
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise RefusedError(f"a tensor is on {tensor.device}; move model and inputs to the CPU")
        if tensor.layout != torch.strided or type(tensor) not in _PLAIN:
            raise RefusedError(f"a tensor is a {type(tensor).__name__} of layout {tensor.layout}; give plain tensors")


_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def refuse_graph(graph_module: torch.fx.GraphModule) -> None:
    """Refuse what a graph says itself.

    Raises
    ------
    RefusedError
    """
    for node in graph_module.graph.nodes:
        if getattr(node.target, "__name__", "") == "_enter_autocast":
            raise RefusedError("the model turns autocast on, which changes the types of operators; leave it out")


def warn_of(reason: str) -> None:
    """Tell that a graph runs in PyTorch."""
    warnings.warn(f"rammer leaves a graph to PyTorch: {reason}", stacklevel=2)
