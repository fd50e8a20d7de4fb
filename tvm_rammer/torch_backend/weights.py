"""Weights that are built into a module, and whether they are still the user's."""

from collections.abc import Sequence
from typing import Any

import torch

SAMPLES = 64
"""Bytes of each weight that are looked at in each call."""


class FrozenWeights:
    """What a module was compiled with, to be compared with what a call brings.

    Replaced weights have other addresses, and PyTorch counts what it writes. Writes that it does not count, through
    `.data` or a NumPy array, are found by samples: `SAMPLES` bytes spread over each weight, all of them where there are
    no more.

    Parameters
    ----------
    positions : sequence of int
        Which arguments are frozen.
    args : sequence
        The arguments of a call, with the weights that are built in.
    """

    def __init__(self, positions: Sequence[int], args: Sequence[Any]) -> None:
        self._known = [(i, args[i].data_ptr(), version(args[i])) for i in positions]
        self._views = [_sample(args[i]) for i in positions]
        self._sampled = torch.cat(self._views) if self._views else None

    def changed(self, args: Sequence[Any]) -> list[int]:
        """Which of the weights are not those that were built in."""
        found = [i for i, address, count in self._known if args[i].data_ptr() != address or version(args[i]) != count]
        if found or self._sampled is None or torch.equal(torch.cat(self._views), self._sampled):
            return found
        kept = self._sampled.split([len(view) for view in self._views])
        return [
            known[0]
            for known, view, old in zip(self._known, self._views, kept, strict=True)
            if not torch.equal(view, old)
        ]


def version(tensor: torch.Tensor) -> int:
    """How often PyTorch has written a tensor; -1 where it does not count."""
    return -1 if tensor.is_inference() else int(tensor._version)


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Bytes of a tensor's memory, at odd distances so that each byte of an element is met."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    if tensor.numel() == 0:
        return torch.empty(0, dtype=torch.uint8)
    raw = tensor.detach().as_strided((span,), (1,)).view(torch.uint8)
    step = len(raw) // SAMPLES
    return raw[:: step + 1 - step % 2] if step > 1 else raw
