"""When two results are the same."""

from collections.abc import Sequence

import numpy as np

UNITS = {"float64": 1e-9, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""Relative error that is let through, for the coarsest type in a graph."""


def unit_of(arrays: Sequence[np.ndarray]) -> float:
    """The relative error for a graph that holds these values."""
    return max((UNITS.get(str(a.dtype), 0.0) for a in arrays), default=0.0)


def largest_of(arrays: Sequence[np.ndarray]) -> float:
    """The largest finite magnitude among floats."""
    found = 0.0
    for a in arrays:
        if str(a.dtype) in UNITS and a.size:
            wide = np.abs(a.astype("float64"))
            wide = wide[np.isfinite(wide)]
            found = max(found, float(wide.max())) if wide.size else found
    return found


def difference(
    got: Sequence[np.ndarray],
    want: Sequence[np.ndarray],
    unit: float,
    largest: float,
    slack: Sequence[np.ndarray] | None = None,
) -> str | None:
    """Say what is different, or None.

    Parameters
    ----------
    got, want : sequence of arrays
    unit : float
        Error relative to each value, and to `largest`, that is let through.
    largest : float
        Magnitude of the largest intermediate.
    slack : sequence of arrays, optional
        Error of each element that is let through besides; infinity where anything is right.
    """
    if len(got) != len(want):
        return f"count: {len(got)} results instead of {len(want)}"
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return f"shape: result {i} is {a.shape} instead of {b.shape}"
        if a.dtype != b.dtype:
            return f"dtype: result {i} is {a.dtype} instead of {b.dtype}"
        bad = _bad(a, b, unit, largest, slack[i] if slack is not None else np.zeros(b.shape))
        if bad.any():
            place = tuple(int(p) for p in np.argwhere(bad)[0])
            return f"{_kind(a[place], b[place])}: result {i} at {place} is {a[place]} instead of {b[place]}"
    return None


def _bad(a: np.ndarray, b: np.ndarray, unit: float, largest: float, slack: np.ndarray) -> np.ndarray:
    if str(b.dtype) not in UNITS:
        return (a != b) & (slack == 0)
    x, y = a.astype("float64"), b.astype("float64")
    # A type whose results are denormal, or just over its end, may be flushed or rounded either way.
    tiny = float(np.finfo(b.dtype).tiny) if str(b.dtype) != "bfloat16" else 1e-38
    with np.errstate(all="ignore"):
        near = np.abs(x - y) <= unit * (np.abs(y) + largest) + tiny + slack
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    odd = ~np.isfinite(x) | ~np.isfinite(y)
    return np.asarray(~np.where(odd, same | np.isinf(slack), same | near))


def _kind(got: np.generic, want: np.generic) -> str:
    with np.errstate(all="ignore"):
        if np.isnan(got) != np.isnan(want):
            return "NaN"
        return "inf" if np.isinf(got) or np.isinf(want) else "value"
