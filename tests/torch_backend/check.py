"""How tests compile a function, and how they compare what it gives with PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

import tvm_rammer.torch_backend as backend


def compiled(function: Callable[..., Any], dynamic: bool | None = None, **options: Any) -> Callable[..., Any]:
    """A function behind this backend."""
    made: Callable[..., Any] = torch.compile(
        function, backend="rammer", dynamic=dynamic, options={"cache": False} | options
    )
    return made


def graphs_of(call: Callable[[], Any]) -> list[backend.CompiledGraph]:
    """The graphs that come into being during a call."""
    before = set(backend.compiled_graphs())
    call()
    return [graph for graph in backend.compiled_graphs() if graph not in before]


def agree(result: Any, expected: Any) -> None:
    """Compare two structures of tensors and other values; tensors to 1e-4 of the largest value."""
    if isinstance(expected, torch.Tensor):
        assert (result.dtype, result.shape, result.stride()) == (expected.dtype, expected.shape, expected.stride())
        scale = float(expected.detach().abs().max()) if expected.is_floating_point() and expected.numel() else 0.0
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4 * scale, equal_nan=True)
    elif isinstance(expected, Sequence) and not isinstance(expected, str):
        assert type(result) is type(expected) and len(result) == len(expected)
        for one, right in zip(result, expected, strict=True):
            agree(one, right)
    else:
        assert result == expected
