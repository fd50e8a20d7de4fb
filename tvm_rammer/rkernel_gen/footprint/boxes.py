"""The bounding boxes of all rTasks in a buffer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .interval import Interval

LARGEST_INDEX = 1 << 40
"""Indices beyond it count as this one. A buffer of more elements is looked at dimension by dimension only."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """The bounding box of each rTask's accesses to a buffer.

    Parameters
    ----------
    low, high : numpy.ndarray
        First index and the one past the last, of shape (dimensions, rTasks).
    touched : numpy.ndarray
        Which rTasks access the buffer.
    """

    low: NDArray[Any]
    high: NDArray[Any]
    touched: NDArray[Any]

    @staticmethod
    def nothing(dimensions: int, num_rtasks: int) -> "Boxes":
        """Boxes of rTasks that do not access the buffer."""
        low = np.zeros((dimensions, num_rtasks), np.int64)
        return Boxes(low, low, np.zeros(num_rtasks, bool))

    @staticmethod
    def of(bounds: Sequence[Interval], shape: tuple[int, ...], touched: NDArray[Any]) -> "Boxes":
        """Boxes within a shape; an index past the end of a dimension is carried to the one before.

        Parameters
        ----------
        bounds : sequence of Interval
            Of each index, for all rTasks.
        shape : tuple of int
        touched : numpy.ndarray
            As in `Boxes`.
        """
        first, last = (np.empty((len(shape), len(touched))) for _ in range(2))
        for d, interval in enumerate(bounds):
            first[d], last[d] = interval.low, interval.high
        low, high = (_clipped(ends, -LARGEST_INDEX, LARGEST_INDEX).astype(np.int64) for ends in (first, last))
        inner = np.array(shape[1:])[:, np.newaxis]
        if (low[1:] < 0).any() or (high[1:] >= inner).any():
            _carry(low, high, shape)
        if shape:
            low[0], high[0] = (_clipped(ends, 0, shape[0] - 1) for ends in (low[0], high[0]))
        return Boxes(low, high + 1, touched)

    def joined(self, other: "Boxes") -> "Boxes":
        """For each rTask the smallest box around both."""
        if not self.touched.any():
            return other
        both, only_self = self.touched & other.touched, self.touched & ~other.touched
        low = np.where(both, np.minimum(self.low, other.low), np.where(only_self, self.low, other.low))
        high = np.where(both, np.maximum(self.high, other.high), np.where(only_self, self.high, other.high))
        return Boxes(low, high, self.touched | other.touched)

    def mean_volume(self) -> float:
        """Mean number of elements of a box, over the rTasks that access the buffer."""
        return (
            float(np.prod((self.high - self.low).astype(float), axis=0)[self.touched].mean())
            if self.touched.any()
            else 0.0
        )


def _clipped(values: NDArray[Any], least: int, greatest: int) -> NDArray[Any]:
    """As NumPy's `clip`, which takes three times as long for few values."""
    clipped: NDArray[Any] = np.minimum(np.maximum(values, least), greatest)
    return clipped


def _carry(low: NDArray[Any], high: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Carry what is past the end of a dimension to the one before, in place."""
    for d in range(len(shape) - 1, 0, -1):
        first, last = low[d] // shape[d], high[d] // shape[d]
        low[d] = np.where(first == last, low[d] - first * shape[d], 0)
        high[d] = np.where(first == last, high[d] - last * shape[d], shape[d] - 1)
        low[d - 1] += first
        high[d - 1] += last
