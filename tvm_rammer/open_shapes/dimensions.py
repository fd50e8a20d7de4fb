"""Symbolic dimensions of a model's inputs: their names, their ranges, and whether shapes that come fit them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ModelError, ShapeError
from .given import MOST, shape_of, size_of

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
        known = known_names(self, given)
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
                f"input {name!r} has the shape {show(axes)}, of rank {len(axes)}, but {shape} is given; "
                f"give {len(axes)} sizes"
            )
        for axis, size in zip(axes, shape, strict=True):
            if axis.size not in (None, size):
                raise ShapeError(
                    f"input {name!r} has the shape {show(axes)}, but {shape} is given; its dimension {axis.size} "
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
                f"the shape of input {name!r} is {'not known' if axes is None else show(axes)}; give it a shape, or a "
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


def known_names(shapes: OpenShapes, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is given, if all of its names are known; a name that is both is the input's.

    Raises
    ------
    ModelError, ShapeError
        It is no mapping; or one of its names is no input and no dimension.
    """
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


def show(axes: Sequence[Axis]) -> str:
    """A shape, as messages have it."""
    return f"({', '.join(map(str, axes))})"
