"""Which part of each buffer an rTask of a kernel accesses, so that it can wait for rTasks instead of operators.

The walk bounds every index of every load and store, for all rTasks at once. The result holds for every execution. An
index may exceed its dimension, as in CPU windows that read an image as one long row: then it continues in the next row.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from tvm import tirx

from ...ir import Footprint
from ..analysis.variables import address
from .boxes import Boxes
from .fit import fit, volume
from .walk import UnknownCodeError, Walk

MAX_RTASKS = 1 << 20
"""rTasks of a kernel whose boxes are computed, at most: the arrays of bounds have an element for each."""


def footprints_of(func: tirx.PrimFunc, num_rtasks: int, skip: Collection[int] = ()) -> tuple[Footprint | None, ...]:
    """Compute the box of each buffer that an rTask reads or writes.

    Parameters
    ----------
    func : tirx.PrimFunc
        A scheduled kernel, as in `kernel.ScheduledKernel`.
    num_rtasks : int
    skip : collection of int
        Parameters whose footprint is not needed and is None, such as constants, which no rTask waits for.

    Returns
    -------
    tuple of (Footprint or None)
        For each parameter; None where an rTask may access all of it. A box contains all elements that are
        accessed, and perhaps more.
    """
    if num_rtasks > MAX_RTASKS:
        return (None,) * len(func.params)
    wanted = [p for i, p in enumerate(func.params) if i not in skip]
    walk = Walk(func, num_rtasks, wanted)
    try:
        walk.statement(func.body)
    except UnknownCodeError:
        return (None,) * len(func.params)
    known = {address(p) for p in wanted} - walk.opaque
    return tuple(_tightest(walk.touched[p], walk.shapes[p]) if address(p) in known else None for p in func.params)


def covers(footprint: Footprint | None, num_rtasks: int, shape: tuple[int, ...]) -> bool:
    """Whether rTasks may access all elements of a buffer; False proves that they do not access some.

    Parameters
    ----------
    footprint : Footprint or None
        A result of `footprints_of`.
    num_rtasks : int
    shape : tuple of int
        Shape of the buffer.
    """
    if footprint is None:
        return True
    shape = footprint.view or shape
    touched = 0
    for rtask in range(num_rtasks):
        box = zip(footprint.box(rtask), shape, strict=True)
        touched += math.prod(max(0, min(end, size) - max(start, 0)) for (start, end), size in box)
    return touched >= math.prod(shape)


def reads_slices(func: tirx.PrimFunc, num_rtasks: int, parameter: int) -> bool:
    """Whether each rTask reads nothing of a parameter but its own slice: as long as all, in the order of rTasks."""
    others = [i for i in range(len(func.params)) if i != parameter]
    footprint = footprints_of(func, num_rtasks, skip=others)[parameter]
    if footprint is None:
        return False
    shape = footprint.view or tuple(int(n) for n in func.params[parameter].shape)
    size, rest = divmod(math.prod(shape), num_rtasks)
    ends = (tuple(zip(*footprint.box(rtask), strict=True)) for rtask in range(num_rtasks))
    return not rest and all(
        rtask * size <= _flat(first, shape) and _flat([n - 1 for n in past], shape) < (rtask + 1) * size
        for rtask, (first, past) in enumerate(ends)
    )


def _flat(index: Sequence[int], shape: Sequence[int]) -> int:
    flat = 0
    for n, extent in zip(index, shape, strict=True):
        flat = flat * extent + n
    return flat


def _tightest(views: Sequence[Boxes], shape: tuple[int, ...]) -> Footprint:
    """The tightest of the footprints in all views of a buffer; of equal ones that with most dimensions."""
    best, best_volume = Footprint((), (), (), ()), math.inf
    shapes = [_view(shape, merged) for merged in range(1, len(views) + 1)]
    # No footprint is tighter than its boxes, so that most views need no fit.
    for boxes, view in sorted(zip(views, shapes, strict=True), key=lambda v: v[0].mean_volume()):
        if boxes.mean_volume() < best_volume:
            footprint = fit(boxes, view)
            if volume(footprint, view) < best_volume:
                best, best_volume = replace(footprint, view=view if view != shape else ()), volume(footprint, view)
    return best


def _view(shape: tuple[int, ...], merged: int) -> tuple[int, ...]:
    """A shape whose last `merged` dimensions are merged into one."""
    kept = len(shape) - merged
    return (*shape[:kept], math.prod(shape[kept:])) if merged > 1 else shape
