"""Which of ATen's operators are taken apart into simpler ones before the import."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .attention import native_multi_head_attention, transformer_encoder_layer
from .recurrent import whole_layers


def decompositions() -> Any:
    """PyTorch's table down to Core ATen, by operator, and the layers that PyTorch joins for inference."""
    import torch

    table = torch.export.default_decompositions()
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
