"""PyTorch's tensors to TVM's and back, on the CPU, without copies where memory and types allow."""

from collections.abc import Sequence
from typing import Any

import torch
import tvm_ffi

from ..ir import ALIGNMENT


def to_tvm(tensor: torch.Tensor) -> Any:
    """A tensor for a compiled module: the same memory, or a copy of what is not contiguous or not aligned."""
    if not tensor.is_contiguous():
        tensor = tensor.contiguous()
    if tensor.data_ptr() % ALIGNMENT:
        tensor = tensor.clone()
    return tvm_ffi.from_dlpack(tensor.detach())


def to_torch(result: Any, like: torch.Tensor, held: set[int]) -> torch.Tensor:
    """A result as PyTorch would have made it.

    Parameters
    ----------
    result : tvm_ffi.Tensor
    like : torch.Tensor
        Without data; says which strides it is to have.
    held : set of int
        Addresses that the result must not share: of inputs, constants and other results. Its own is added.

    Returns
    -------
    torch.Tensor
        In memory that nothing else refers to.
    """
    tensor: torch.Tensor = torch.utils.dlpack.from_dlpack(result.__dlpack__())
    if tensor.stride() != like.stride() and tensor.numel() > 1:
        tensor = torch.empty_strided(like.shape, like.stride(), dtype=tensor.dtype).copy_(tensor)
    elif tensor.data_ptr() in held:
        tensor = tensor.clone()
    held.add(tensor.data_ptr())
    return tensor


def difference(results: Sequence[Any], expected: Sequence[Any], tolerance: float) -> str:
    """How results differ from PyTorch's; empty where they agree.

    Parameters
    ----------
    results, expected : sequence
        Tensors, and other values that are passed over.
    tolerance : float
        Of floating point, as a share of the largest expected value of a tensor.
    """
    for number, (result, right) in enumerate(zip(results, expected, strict=True)):
        if not isinstance(right, torch.Tensor):
            continue
        if result.shape != right.shape or result.dtype != right.dtype:
            return f"result {number} is {result.dtype}{list(result.shape)}, not {right.dtype}{list(right.shape)}"
        if not right.is_floating_point():
            if not torch.equal(result, right):
                return f"result {number} differs in {int((result != right).sum())} of {right.numel()} integers"
            continue
        finite = right[right.isfinite()]
        scale = float(finite.abs().max()) if finite.numel() else 0.0
        if not torch.allclose(result, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            worst = float((result - right).abs().max())
            return f"result {number} differs by {worst:.2g}, where {scale:.2g} is the largest"
    return ""
