"""What users give for shapes: sizes, names and bounds."""

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

from ..errors import ShapeError

MOST = 2**31 - 1
"""The largest size of a dimension: indices are int32."""


def shape_of(name: str, shape: Any) -> tuple[int, ...]:
    """Static sizes that somebody gives to an input; raises `ShapeError` where they are none."""
    try:
        sizes = tuple(size.__index__() for size in shape)
    except (AttributeError, TypeError):
        raise ShapeError(f"the shape given for input {name!r} is {shape!r}; give integers") from None
    if any(not 0 <= size <= MOST for size in sizes):
        raise ShapeError(f"the shape given for input {name!r} is {sizes}; sizes are from 0 to {MOST}")
    return sizes


def size_of(name: str, size: Any) -> int:
    """The size that somebody gives to a symbolic dimension; raises `ShapeError` where it is none."""
    given = items(size)
    if len(given) != 1 or not is_size(given[0]):
        raise ShapeError(
            f"the size given for the dimension {name!r} is {size!r}; give one integer, or two for the bounds of a range"
        )
    found: int = given[0].__index__()
    if not 0 <= found <= MOST:
        raise ShapeError(f"the size given for the dimension {name!r} is {found}; sizes are from 0 to {MOST}")
    return found


def items(shape: Any) -> tuple[Any, ...]:
    """The entries of a shape; a size or a name is one by itself."""
    return tuple(shape) if isinstance(shape, Sequence) and not isinstance(shape, str) else (shape,)


def is_size(extent: Any) -> bool:
    """Whether an entry is a static size."""
    return isinstance(extent, SupportsIndex)


def is_pair(bounds: Any) -> bool:
    """Whether something is the bounds of a range: two sizes."""
    return isinstance(bounds, Sequence) and len(bounds) == 2 and all(map(is_size, bounds))


def is_bounded(shape: Any) -> bool:
    """Whether a shape has an entry with bounds."""
    return isinstance(shape, Sequence) and any(isinstance(e, Sequence) for e in shape)


def has_symbols(shapes: Mapping[str, Any] | None) -> bool:
    """Whether `shapes` names or bounds a dimension, so that what is compiled must take several sizes."""
    if not isinstance(shapes, Mapping):
        return False
    return any(is_bounded(shape) or any(not is_size(e) for e in items(shape)) for shape in shapes.values())
