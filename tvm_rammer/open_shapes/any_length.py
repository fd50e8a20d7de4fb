"""Whether one module may serve all sizes of the only open dimension: what it is to be compiled for."""

from ..ir import Length
from .dimensions import OpenShapes, Shapes
from .specialisations import Key

LEAST_BOUND = 64
"""Without a bound of the user's the first one; a longer sequence asks for the next power of two."""


class AnyLength:
    """The only open dimension of a model, if that is the length of its sequences.

    Parameters
    ----------
    name : str
    axes : tuple of (int or None)
        For each input, which of its axes it is.
    least : int
        The least size.
    most : int or None
        The greatest size, where the user says one.
    """

    def __init__(self, name: str, axes: tuple[int | None, ...], least: int, most: int | None) -> None:
        self._name, self._axes, self._least, self._most = name, axes, least, most
        self._found = LEAST_BOUND

    @classmethod
    def of(cls, shapes: OpenShapes) -> "AnyLength | str":
        """The dimension; or the reason why there is none."""
        extents = shapes.extents()
        names = {size for sizes in extents.values() for size in sizes if isinstance(size, str)}
        if len(names) != 1 or None in shapes.axes.values():
            return "more than one dimension is open"
        (name,) = names
        places = [[axis for axis, size in enumerate(sizes) if size == name] for sizes in extents.values()]
        if max(map(len, places)) > 1:
            return f"an input has the dimension {name!r} twice"
        axes = tuple(place[0] if place else None for place in places)
        symbols = {
            s for sizes in shapes.axes.values() for axis in sizes or () if axis.size is None for s in axis.symbols
        }
        bounds = [shapes.ranges[symbol] for symbol in symbols if symbol in shapes.ranges]
        least = max((low for low, _ in bounds), default=1)
        return cls(name, axes, max(1, least), min((b[1] for b in bounds), default=None))

    def key(self, key: Key) -> Key | None:
        """The key of the module for a call of some shapes, if what is compiled so far may serve it."""
        of_one = tuple(
            shape if axis is None else (*shape[:axis], 1, *shape[axis + 1 :])
            for shape, axis in zip(key, self._axes, strict=True)
        )
        sizes = {
            shape[axis] for shape, axis in zip(key, self._axes, strict=True) if axis is not None and axis < len(shape)
        }
        most = self._most or self._found
        if not all(self._least <= size <= most for size in sizes):
            return None
        return (*of_one, (-1, most))

    def of_call(self, shapes: Shapes) -> tuple[Key, Shapes, Length]:
        """The module for some shapes: its key among all, a shape for each input, and the length that it learns."""
        sizes = [shape[axis] for shape, axis in zip(shapes.values(), self._axes, strict=True) if axis is not None]
        if self._most is None:
            self._found = max(self._found, 1 << (max(sizes) - 1).bit_length())
        length = Length(self._name, self._most or self._found, 0, self._axes)
        of_one = {
            name: tuple(1 if n == axis else size for n, size in enumerate(shape))
            for (name, shape), axis in zip(shapes.items(), self._axes, strict=True)
        }
        return (*of_one.values(), (-1, length.most)), of_one, length
