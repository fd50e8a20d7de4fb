"""What a model declares of the shapes of its inputs, and what a user gives, put together."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from ..errors import ShapeError
from .dimensions import Axis, OpenShapes, known_names, show
from .given import MOST, is_pair, is_size, items, shape_of, size_of
from .signature import Declared


def open_shapes(declared: Sequence[Declared], shapes: Mapping[str, Any] | None) -> OpenShapes:
    """Bring together what a model and a user say of the shapes of its inputs.

    Parameters
    ----------
    declared : sequence of Declared
        The inputs.
    shapes : mapping, optional
        By the name of an input its shape: of integers, names such as `"width"`, and names with bounds such as
        `("width", 32, 1024)`. By the name of a symbolic dimension its size, or its bounds: `(32, 1024)`.

    Raises
    ------
    ShapeError
        A name is unknown, a shape does not fit its input, or bounds have no sense.
    ModelError
        `shapes` is no mapping.
    """
    model = OpenShapes({d.name: None if d.shape is None else tuple(map(_axis, d.shape)) for d in declared}, {})
    known = known_names(model, {} if shapes is None else shapes)
    ranges: dict[str, tuple[int, int]] = {}
    for name, given in known.items():
        if given is None:
            raise ShapeError(f"the shape given for {name!r} is None; give one, or leave it out")
        if name not in model.axes:
            _narrow(ranges, name, given if is_pair(given) else (size_of(name, given),) * 2)
    wrong = _contradicted(model, known)
    axes = {name: _joined(name, own, known.get(name), ranges, wrong) for name, own in model.axes.items()}
    for name, joined in axes.items():
        for symbol in {s for axis in joined or () for s in axis.symbols} & wrong.keys():
            raise ShapeError(
                f"the dimension {symbol!r} is given the sizes {' and '.join(map(str, sorted(wrong[symbol])))}, but "
                f"input {name!r} leaves it open; give that input a size there, too"
            )
    return OpenShapes(axes, ranges)


def _contradicted(model: OpenShapes, known: Mapping[str, Any]) -> dict[str, set[int]]:
    """The model's names of dimensions for which the shapes of inputs give several sizes, with these.

    Exporters name the axes of all inputs alike, height and width say, whether they are the same or not. Where the user
    says that they are not, the name means nothing.
    """
    sizes: dict[str, set[int]] = {}
    for name, axes in model.axes.items():
        for axis, extent in zip(axes or (), items(known.get(name, ())), strict=False):
            for symbol in axis.symbols if is_size(extent) else ():
                sizes.setdefault(symbol, set()).add(extent.__index__())
    return {symbol: given for symbol, given in sizes.items() if len(given) > 1}


def _axis(extent: int | str | None) -> Axis:
    return Axis(extent) if isinstance(extent, int) else Axis(None, (extent,) if extent else ())


def _joined(
    name: str,
    own: tuple[Axis, ...] | None,
    given: Any,
    ranges: dict[str, tuple[int, int]],
    wrong: Container[str],
) -> tuple[Axis, ...] | None:
    """The axes of an input, with the sizes, names and bounds that the user gives them; without `wrong` names."""
    if given is None:
        return own
    extents = [_extent(name, extent, ranges) for extent in items(given)]
    if own is None:
        return tuple(extents)
    if len(own) != len(extents):
        raise ShapeError(
            f"input {name!r} has the shape {show(own)}, of rank {len(own)}, but {show(extents)} is given; "
            f"give {len(own)} sizes"
        )
    found = []
    for axis, extent in zip(own, extents, strict=True):
        if axis.size is not None and extent.size not in (None, axis.size):
            raise ShapeError(
                f"input {name!r} has the shape {show(own)}, but {show(extents)} is given; "
                f"its dimension {axis.size} cannot become {extent.size}"
            )
        names = axis.symbols
        if extent.size is not None:
            names = tuple(symbol for symbol in names if symbol not in wrong)
            for symbol in names:
                _narrow(ranges, symbol, (extent.size, extent.size))
        static = axis.size if axis.size is not None else extent.size
        found.append(Axis(static, tuple(dict.fromkeys((*names, *extent.symbols)))))
    return tuple(found)


def _extent(name: str, extent: Any, ranges: dict[str, tuple[int, int]]) -> Axis:
    """One entry of a shape that the user gives."""
    if is_size(extent):
        return Axis(shape_of(name, (extent,))[0])
    if isinstance(extent, str) and extent:
        return Axis(None, (extent,))
    if isinstance(extent, Sequence) and len(extent) == 3 and isinstance(extent[0], str) and is_pair(extent[1:]):
        _narrow(ranges, extent[0], extent[1:])
        return Axis(None, (extent[0],))
    raise ShapeError(
        f"the shape given for input {name!r} holds {extent!r}; give integers, a name such as 'width', or a name with "
        f"bounds such as ('width', 32, 1024)"
    )


def _narrow(ranges: dict[str, tuple[int, int]], symbol: str, bounds: Any) -> None:
    low, high = (int(bound) for bound in bounds)
    if not 0 <= low <= high <= MOST:
        raise ShapeError(f"the bounds of dimension {symbol!r} are {low} and {high}; sizes are from 0 to {MOST}")
    before = ranges.get(symbol, (low, high))
    if before != (low, high):
        raise ShapeError(
            f"the dimension {symbol!r} is from {before[0]} to {before[1]} in one place and from {low} to {high} in "
            f"another; give one range to all that share it"
        )
    ranges[symbol] = low, high
