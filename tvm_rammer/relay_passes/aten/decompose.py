"""Which of ATen's operators are taken apart into simpler ones before the import."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def decompositions() -> Any:
    """PyTorch's table down to Core ATen, by operator; recurrent layers are unrolled, for the length is known."""
    import torch

    return torch.export.default_decompositions()


@contextmanager
def unrolled_layers() -> Iterator[None]:
    """While graphs are traced, an LSTM is taken apart as a GRU is; otherwise it becomes one call of oneDNN."""
    import torch

    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)
