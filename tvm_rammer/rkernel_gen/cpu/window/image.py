"""The image that a window slides over, from the blocks before it: padding, and zeros between the elements."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm import s_tir, tirx
from tvm.ir import Call, Expr, TensorLoad

from ...analysis.affine import are, linear
from ...analysis.work import shape_of

LOWEST = -3.4028234663852886e38
"""The least float32: what is beyond an image that is not padded, and never used."""
MAX_UPSAMPLING = 8
"""Stride of a transposed convolution, at most."""


@dataclass(frozen=True, slots=True)
class Image:
    """The input of a window: an image, upsampled with zeros between its elements, then padded.

    Parameters
    ----------
    data : tirx.Buffer
    upsampled : tuple of int
        Of each dimension, the distance of the image's elements.
    padding : tuple of int
        Elements before the upsampled image.
    fill : float
        What is around it, on all sides.
    """

    data: tirx.Buffer
    upsampled: tuple[int, ...]
    padding: tuple[int, ...]
    fill: float


def read_image(before: Sequence[s_tir.SBlock], read: tirx.Buffer, rank: int) -> Image | None:
    """Read the blocks before the window, which reads `read`; the first of them reads the image.

    Returns
    -------
    Image or None
        None where a block does not make exactly such an image.
    """
    plain = Image(read, (1,) * rank, (0,) * rank, LOWEST)
    if not before:
        return plain
    *first, last = before
    if not last.writes[0].source.same_as(read):
        return None
    upsampled = _upsampled(last, rank)
    if upsampled is not None:
        return replace(plain, data=upsampled[0], upsampled=upsampled[1], fill=0.0) if not first else None
    image = _padded(last, rank)
    if image is None or not first:
        return image
    upsampled = _upsampled(first[0], rank)
    if upsampled is None or image.fill != 0 or not first[0].writes[0].source.same_as(image.data):
        return None
    return replace(image, data=upsampled[0], upsampled=upsampled[1])


def _selection(block: s_tir.SBlock, rank: int) -> tuple[list[Expr], TensorLoad, float] | None:
    """The conditions, the element and the constant of a block that writes a whole buffer by a selection of the two."""
    axes = [axis.var for axis in block.iter_vars]
    value = block.body.value if isinstance(block.body, tirx.BufferStore) else None
    if not (isinstance(value, Call) and value.op.name.endswith("if_then_else")):
        return None
    condition, inside, fill = value.args
    if not isinstance(inside, TensorLoad) or not isinstance(fill, tirx.FloatImm) or len(inside.indices) != 2 + rank:
        return None
    whole = are(block.body.indices, axes) and shape_of(block.body.buffer) == tuple(_extents(block))
    if not whole or not are(inside.indices[:2], axes[:2]):
        return None
    return _conjuncts(condition), inside, float(fill.value)


def _extents(block: s_tir.SBlock) -> list[int]:
    return [int(axis.dom.extent) for axis in block.iter_vars]


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, tirx.And):
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    return [condition]


def _padded(pad: s_tir.SBlock, rank: int) -> Image | None:
    """The image that a block pads: it reads all elements that are within the image's extents, and no others."""
    selection = _selection(pad, rank)
    if selection is None:
        return None
    conditions, inside, fill = selection
    axes, extents = [axis.var for axis in pad.iter_vars], _extents(pad)
    box = _box(conditions, axes, extents)
    shifts = [_shift(index, axis) for index, axis in zip(inside.indices, axes, strict=True)]
    padding = [-shift for shift in shifts if shift is not None]
    if box is None or len(padding) < len(shifts):
        return None
    image = zip(padding, shape_of(inside.source), extents, strict=True)
    if box != [(max(0, first), min(extent, first + size)) for first, size, extent in image]:
        return None
    return Image(inside.source, (1,) * rank, tuple(padding[2:]), fill)


def _shift(index: Expr, axis: tirx.Var) -> int | None:
    """The constant of `axis + constant`."""
    found = linear(index, [axis])
    return found[1] if found is not None and found[0] == 1 else None


def _box(conditions: Sequence[Expr], axes: Sequence[tirx.Var], extents: Sequence[int]) -> list[tuple[int, int]] | None:
    """Where conditions hold: for each axis the first value and the one past the last; None where that is no box."""
    low, high = [0] * len(axes), list(extents)
    for condition in conditions:
        most = _at_most(condition, axes)
        if most is None:
            return None
        *factors, limit = most
        (axis,) = [a for a, factor in enumerate(factors) if factor] or [-1]
        if axis < 0 or abs(factors[axis]) != 1:
            return None
        if factors[axis] == 1:
            high[axis] = min(high[axis], limit + 1)
        else:
            low[axis] = max(low[axis], -limit)
    return list(zip(low, high, strict=True))


def _at_most(condition: Expr, axes: Sequence[tirx.Var]) -> tuple[int, ...] | None:
    """A comparison as coefficients of axes, and the limit that their sum does not exceed."""
    match condition:
        case tirx.LT() | tirx.LE():
            a, b = condition.a, condition.b
        case tirx.GT() | tirx.GE():
            a, b = condition.b, condition.a
        case _:
            return None
    found = linear(a - b, axes)
    if found is None or sum(factor != 0 for factor in found[:-1]) != 1:
        return None
    strict = isinstance(condition, tirx.LT | tirx.GT)
    return (*found[:-1], -found[-1] - strict)


def _upsampled(block: s_tir.SBlock, rank: int) -> tuple[tirx.Buffer, tuple[int, ...]] | None:
    """The image that a block upsamples with zeros between its elements, and the factors."""
    selection = _selection(block, rank)
    if selection is None or selection[2] != 0:
        return None
    conditions, inside, _ = selection
    axes, extents, shape = [axis.var for axis in block.iter_vars], _extents(block), shape_of(inside.source)
    factors = [_quotient(index, axis) for index, axis in zip(inside.indices[2:], axes[2:], strict=True)]
    found = tuple(factor for factor in factors if factor is not None)
    if len(found) < rank or tuple(extents[:2]) != shape[:2]:
        return None
    wanted = [(axis, factor) for axis, factor in zip(axes[2:], found, strict=True) if factor > 1]
    if len(wanted) != len(conditions) or not all(any(_is_multiple(c, *w) for c in conditions) for w in wanted):
        return None
    last = [(extent - 1) // factor for extent, factor in zip(extents[2:], found, strict=True)]
    return (inside.source, found) if last == [size - 1 for size in shape[2:]] else None


def _quotient(index: Expr, axis: tirx.Var) -> int | None:
    """The divisor of `axis // divisor`; 1 for the axis itself."""
    if index.same_as(axis):
        return 1
    if not isinstance(index, tirx.FloorDiv) or not index.a.same_as(axis) or not isinstance(index.b, tirx.IntImm):
        return None
    return int(index.b) if 1 < int(index.b) <= MAX_UPSAMPLING else None


def _is_multiple(condition: Expr, axis: tirx.Var, factor: int) -> bool:
    """Whether a condition is `axis % factor == 0`."""
    if not isinstance(condition, tirx.EQ) or not isinstance(condition.a, tirx.FloorMod):
        return False
    remainder, zero = condition.a, condition.b
    numbers = isinstance(remainder.b, tirx.IntImm) and isinstance(zero, tirx.IntImm)
    return numbers and remainder.a.same_as(axis) and int(remainder.b) == factor and int(zero) == 0
