"""Fits an affine footprint to the boxes of all rTasks: digits of the rTask's index times coefficients."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir import Footprint
from .boxes import Boxes

MAX_DIGITS = 4
"""Digits that an rTask's index is split into, at most."""


def fit(boxes: Boxes, shape: tuple[int, ...]) -> Footprint:
    """A tight footprint that covers the boxes, found by a greedy search over the radices.

    Parameters
    ----------
    boxes : Boxes
        Boxes within the shape.
    shape : tuple of int
        Shape of the buffer.
    """
    dimensions, num_rtasks = boxes.low.shape
    if not boxes.touched.any():
        return Footprint((num_rtasks,), (0,) * dimensions, ((0,),) * dimensions, (0,) * dimensions)
    least = boxes.mean_volume()
    best = _fit_digits(boxes, (num_rtasks,), shape, least)
    while volume(best, shape) > least and len(best.radices) < MAX_DIGITS:
        found = best
        for radices in _split(best.radices):
            finer = _fit_digits(boxes, radices, shape, least)
            if volume(finer, shape) < volume(found, shape):
                found = finer
            if volume(found, shape) <= least:
                break
        if found is best:
            break
        best = found
    return best


def volume(footprint: Footprint, shape: tuple[int, ...]) -> int:
    """Elements of a footprint's box, clipped to the shape."""
    return math.prod(min(extent, size) for extent, size in zip(footprint.extents, shape, strict=True))


def _split(radices: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All radices with one more digit."""
    return [
        (*radices[:i], radix // d, d, *radices[i + 1 :])
        for i, radix in enumerate(radices)
        for d in range(2, radix // 2 + 1)
        if radix % d == 0
    ]


def _fit_digits(boxes: Boxes, radices: tuple[int, ...], shape: tuple[int, ...], least: float) -> Footprint:
    """Use a typical step of each digit as its coefficient; then move and widen the box until it covers all boxes."""
    # The median is exact where only the first or the last box is clipped; the mean suits uneven steps.
    exact = _cover(boxes, radices, _steps(boxes, radices, boxes.low * 2, _median))
    if volume(exact, shape) <= least:
        return exact
    even = _cover(boxes, radices, _steps(boxes, radices, boxes.low + boxes.high, _mean))
    return min(exact, even, key=lambda footprint: volume(footprint, shape))


def _steps(
    boxes: Boxes, radices: tuple[int, ...], doubled: NDArray[Any], typical: Callable[..., NDArray[Any]]
) -> NDArray[Any]:
    """Steps of the boxes with each digit, of shape (dimensions, digits); `doubled` is twice their position."""
    dimensions = len(doubled)
    places, touched = doubled.reshape(dimensions, *radices), boxes.touched.reshape(radices)
    steps = np.zeros((dimensions, len(radices)), np.int64)
    for i, radix in enumerate(radices):
        first, second = (_slices(i, slice(a, b)) for a, b in ((0, radix - 1), (1, radix)))
        pairs = touched[first] & touched[second]
        if radix > 1 and pairs.any():
            moved = places[:, *second] - places[:, *first]
            steps[:, i] = np.rint(typical(moved[:, pairs]) / 2)
    return steps


def _median(rows: NDArray[Any]) -> NDArray[Any]:
    """Of each row; NumPy's takes eight times as long for few values."""
    ordered, last = np.sort(rows, axis=1), rows.shape[1] - 1
    found: NDArray[Any] = (ordered[:, last // 2] + ordered[:, (last + 1) // 2]) / 2
    return found


def _mean(rows: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = rows.mean(axis=1)
    return found


def _slices(axis: int, part: slice) -> tuple[slice, ...]:
    """An index with a slice of one axis, and all elements of the axes before it."""
    return (*(slice(None) for _ in range(axis)), part)


def _cover(boxes: Boxes, radices: tuple[int, ...], coefficients: NDArray[Any]) -> Footprint:
    digits = np.stack(np.unravel_index(np.arange(boxes.low.shape[1]), radices))
    start = coefficients @ digits
    offsets = (boxes.low - start)[:, boxes.touched].min(axis=1)
    ends = (boxes.high - start)[:, boxes.touched].max(axis=1)
    return Footprint(
        radices,
        tuple(int(o) for o in offsets),
        tuple(tuple(int(c) for c in row) for row in coefficients),
        tuple(int(e) for e in ends - offsets),
    )
