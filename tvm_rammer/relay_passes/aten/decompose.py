"""Which of ATen's operators are taken apart into simpler ones before the import."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .attention import native_multi_head_attention, transformer_encoder_layer
from .recurrent import whole_layers

_SIMPLER = (
    "_native_batch_norm_legit_functional.default", "addmv.default", "clamp.Tensor", "copysign.Tensor",
    "diagonal_scatter.default", "dist.default", "elu.default", "fmax.default", "fmin.default", "ldexp.Tensor",
    "narrow_copy.default", "permute_copy.default", "view_copy.default",
)  # fmt: skip
"""Operators of Core ATen, and others, that TVM's frontend lacks or whose arguments it passes over."""


def decompositions() -> Any:
    """PyTorch's table down to Core ATen, by operator, and the layers that PyTorch joins for inference."""
    import torch
    from torch._decomp import decomposition_table

    table = torch.export.default_decompositions()
    for name in _SIMPLER:
        packet, overload = name.split(".")
        op = getattr(getattr(torch.ops.aten, packet), overload)
        table[op] = decomposition_table[op]
    table[torch.ops.aten.adaptive_max_pool2d.default] = _adaptive_max_pool
    table[torch.ops.aten.var_mean.correction] = _var_mean
    nearest, bilinear = (getattr(torch.ops.aten, f"upsample_{kind}2d").vec for kind in ("nearest", "bilinear"))
    table[nearest] = _nearest(decomposition_table[nearest])
    table[bilinear] = _bilinear(decomposition_table[bilinear])
    table[torch.ops.aten._native_multi_head_attention.default] = native_multi_head_attention
    table[torch.ops.aten._transformer_encoder_layer_fwd.default] = transformer_encoder_layer
    return table


@contextmanager
def simple_tracing() -> Iterator[None]:
    """While a graph is traced, PyTorch chooses forms that become few operators here.

    Recurrent layers stay whole; those that cannot are unrolled, of which an LSTM would otherwise be one call of oneDNN.
    Pixels are repeated without indices.
    """
    import torch

    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    op = torch.ops.aten.upsample_nearest2d.vec
    kernels = dict(op.py_kernels)
    op.py_kernels.update({key: _nearest(kernel) for key, kernel in kernels.items()})
    op._dispatch_cache.clear()
    try:
        with whole_layers():
            yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)
        op.py_kernels.update(kernels)
        op._dispatch_cache.clear()


def _nearest(general: Any) -> Any:
    """`aten.upsample_nearest2d.vec` where both sizes grow by whole numbers; other sizes as PyTorch takes it apart."""

    def upsample(x: Any, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None) -> Any:
        batch, channels, height, width = x.shape
        factors = [new / old for new, old in zip(output_size or (), (height, width), strict=False)] or scale_factors
        if not factors or any(factor != int(factor) or factor < 1 for factor in factors):
            return general(x, output_size, scale_factors)
        rows, columns = map(int, factors)
        wide = x[:, :, :, None, :, None].expand(batch, channels, height, rows, width, columns)
        return wide.reshape(batch, channels, height * rows, width * columns)

    return upsample


def _bilinear(general: Any) -> Any:
    """`aten.upsample_bilinear2d.vec` as one operator where the sizes are in the ratio of the factors that are given."""

    def upsample(
        x: Any, output_size: Sequence[int] | None, align_corners: bool, scale_factors: Sequence[float] | None
    ) -> Any:
        if scale_factors and any(int(n * f) != n * f for n, f in zip(x.shape[2:], scale_factors, strict=True)):
            return general(x, output_size, align_corners, scale_factors)
        return NotImplemented

    return upsample


def _adaptive_max_pool(x: Any, output_size: Sequence[int]) -> Any:
    """`aten.adaptive_max_pool2d` where all windows are alike."""
    from torch.nn.functional import max_pool2d

    if any(old % new for old, new in zip(x.shape[-2:], output_size, strict=True)):
        return NotImplemented
    size = [old // new for old, new in zip(x.shape[-2:], output_size, strict=True)]
    return max_pool2d(x, size, return_indices=True)


def _var_mean(
    x: Any, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Any, Any]:
    """`aten.var_mean` as two operators."""
    import torch

    dims = dim or list(range(x.dim()))
    return torch.var(x, dims, correction=correction, keepdim=keepdim), torch.mean(x, dims, keepdim)
