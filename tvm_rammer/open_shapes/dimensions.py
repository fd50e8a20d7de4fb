"""Symbolic dimensions of a model's inputs: their names, their ranges, and whether shapes that come fit them."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ModelError, ShapeError
from .given import MOST, is_bounded, is_pair, is_size, items, shape_of, size_of
from .signature import Declared

Shapes = Mapping[str, tuple[int, ...]]
"""The static shape of each input, by its name."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of an input.

    Parameters
    ----------
    size : int or None
        Where it is static.
    symbols : tuple of str
        Its names, the model's and the user's; axes that share one have the same size.
    """

    size: int | None
    symbols: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.size) if self.size is not None else self.symbols[-1] if self.symbols else "?"


@dataclass(frozen=True, slots=True)
class OpenShapes:
    """What is known of the shapes of a model's inputs before they come.

    Parameters
    ----------
    axes : mapping of str to (tuple of Axis or None)
        By the inputs' names, in the model's order; None for an input of unknown rank.
    ranges : mapping of str to (int, int)
        The least and the greatest size of symbolic dimensions, where they are bounded.
    """

    axes: Mapping[str, tuple[Axis, ...] | None]
    ranges: Mapping[str, tuple[int, int]]

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the symbolic dimensions, each once."""
        return tuple(dict.fromkeys(s for axes in self.axes.values() for axis in axes or () for s in axis.symbols))

    @property
    def is_open(self) -> bool:
        """Whether any size is not known."""
        return any(axes is None or any(self._size(axis) is None for axis in axes) for axes in self.axes.values())

    def bind(self, given: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """The static shape of every input.

        Parameters
        ----------
        given : mapping of str to (int or sequence of int)
            Shapes of inputs by their names, and sizes of symbolic dimensions by theirs.

        Raises
        ------
        ShapeError
            A shape has another rank or other static sizes than the input, a size is outside of its range, two axes
            that share a name differ, or a dimension remains open.
        """
        known = _names_of(self, given)
        sizes = {name: size_of(name, size) for name, size in known.items() if name not in self.axes}
        for name, size in sizes.items():
            self._check_range(name, size, "")
        shapes = {name: shape_of(name, known[name]) for name in self.axes if name in known}
        for name, shape in shapes.items():
            self._match(name, shape, sizes)
        return {name: shapes[name] if name in shapes else self._complete(name, sizes) for name in self.axes}

    def extents(self) -> dict[str, tuple[int | str, ...]]:
        """The size of each axis of each input, or a name for it: the same name for those that are the same."""
        first = _first_names(axis.symbols for axes in self.axes.values() for axis in axes or ())
        found = {}
        for name, axes in self.axes.items():
            sizes = ((axis, self._size(axis)) for axis in axes or ())
            found[name] = tuple(
                size if size is not None else first[axis.symbols[0]] if axis.symbols else f"{name}_{number}"
                for number, (axis, size) in enumerate(sizes)
            )
        return found

    def _match(self, name: str, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
        axes = self.axes[name]
        if axes is None:
            return
        if len(axes) != len(shape):
            raise ShapeError(
                f"input {name!r} has the shape {_show(axes)}, of rank {len(axes)}, but {shape} is given; "
                f"give {len(axes)} sizes"
            )
        for axis, size in zip(axes, shape, strict=True):
            if axis.size not in (None, size):
                raise ShapeError(
                    f"input {name!r} has the shape {_show(axes)}, but {shape} is given; its dimension {axis.size} "
                    f"cannot become {size}"
                )
            for symbol in axis.symbols:
                self._check_range(symbol, size, f" of input {name!r}")
                if sizes.setdefault(symbol, size) != size:
                    raise ShapeError(
                        f"the dimension {symbol!r} is {size} in input {name!r} and {sizes[symbol]} elsewhere; "
                        "give one size to all that share it, or compile it with `shapes` that differ there"
                    )

    def _check_range(self, symbol: str, size: int, where: str) -> None:
        low, high = self.ranges.get(symbol, (0, MOST))
        if not low <= size <= high:
            wanted = f"not {low}" if low == high else f"outside of its range, {low} to {high}"
            raise ShapeError(
                f"the dimension {symbol!r}{where} is {size}, {wanted}; give a size within, or widen the range that "
                f"`shapes` gives"
            )

    def _complete(self, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
        axes = self.axes[name]
        found = [self._size(axis, sizes) for axis in axes or ()]
        if axes is None or None in found:
            raise ShapeError(
                f"the shape of input {name!r} is {'not known' if axes is None else _show(axes)}; give it a shape, or a "
                f"size to each symbolic dimension{_listed(self.symbols)}"
            )
        return tuple(size for size in found if size is not None)

    def _size(self, axis: Axis, sizes: Mapping[str, int] | None = None) -> int | None:
        """The size of an axis, where it is static, given, or the only one of its range."""
        if axis.size is not None:
            return axis.size
        for symbol in axis.symbols:
            if symbol in (sizes or {}):
                return (sizes or {})[symbol]
        fixed = (self.ranges[symbol] for symbol in axis.symbols if symbol in self.ranges)
        return next((low for low, high in fixed if low == high), None)


def _first_names(every: Iterable[Sequence[str]]) -> dict[str, str]:
    """Of each name of an axis the one that stands for it and for all names of the same axes."""
    first: dict[str, str] = {}
    for symbols in every:
        known = {first.setdefault(symbol, symbol) for symbol in symbols}
        earliest = next((name for name in first.values() if name in known), "")
        first = {symbol: earliest if name in known else name for symbol, name in first.items()}
    return first


def has_symbols(shapes: Mapping[str, Any] | None) -> bool:
    """Whether `shapes` names or bounds a dimension, so that what is compiled must take several sizes."""
    if not isinstance(shapes, Mapping):
        return False
    return any(is_bounded(shape) or any(not is_size(e) for e in items(shape)) for shape in shapes.values())


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
    known = _names_of(model, {} if shapes is None else shapes)
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
            f"input {name!r} has the shape {_show(own)}, of rank {len(own)}, but {_show(extents)} is given; "
            f"give {len(own)} sizes"
        )
    found = []
    for axis, extent in zip(own, extents, strict=True):
        if axis.size is not None and extent.size not in (None, axis.size):
            raise ShapeError(
                f"input {name!r} has the shape {_show(own)}, but {_show(extents)} is given; "
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


def _names_of(shapes: OpenShapes, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is given, if all of its names are known; a name that is both is the input's."""
    if not isinstance(given, Mapping):
        raise ModelError(
            f"shapes is {given!r}; give a mapping of names to sizes, as in {{'x': (1, 3, 224, 224)}} or {{'batch': 1}}"
        )
    for name in given:
        if name not in shapes.axes and name not in shapes.symbols:
            raise ShapeError(
                f"a shape is given for {name!r}, which is no input; the inputs are {', '.join(shapes.axes)}"
                f"{_listed(shapes.symbols)}"
            )
    return given


def _listed(symbols: Sequence[str]) -> str:
    return f"; its symbolic dimensions are {', '.join(sorted(symbols))}" if symbols else ""


def _show(axes: Sequence[Axis]) -> str:
    return f"({', '.join(map(str, axes))})"
