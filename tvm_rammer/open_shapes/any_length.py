"""Whether one module may serve all sizes of an open dimension: which it may be, and what it is to be compiled for."""

from collections.abc import Iterator

from ..errors import RammerError, first_line
from ..ir import Length
from .dimensions import OpenShapes, Shapes
from .specialisations import Key

LEAST_BOUND = 64
"""Without a bound of the user's the first one; a longer sequence asks for the next power of two."""

MOST_TRIED = 4
"""Of how many open dimensions it is found out whether they are the length of the model's sequences."""


class AnyLength:
    """A dimension that may be the length of a model's sequences; others that are open have the sizes of a call.

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
        self.name = name
        self.served = False
        """Whether a module of any length was made."""
        self._axes, self._least, self._most = axes, least, most
        self._found = LEAST_BOUND

    @classmethod
    def of(cls, shapes: OpenShapes, name: str) -> "AnyLength | str":
        """An open dimension by its name; or the reason why it is none."""
        places = [[axis for axis, size in enumerate(sizes) if size == name] for sizes in shapes.extents().values()]
        if max(map(len, places)) > 1:
            return f"an input has the dimension {name!r} twice"
        axes = tuple(place[0] if place else None for place in places)
        symbols = {
            symbol
            for axis, given in zip(axes, shapes.axes.values(), strict=True)
            if axis is not None and given is not None
            for symbol in given[axis].symbols
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
        return (*of_one, (-1, most, self._axes))

    def of_call(self, shapes: Shapes) -> tuple[Key, Shapes, Length]:
        """The module for some shapes: its key among all, a shape for each input, and the length that it learns."""
        sizes = [shape[axis] for shape, axis in zip(shapes.values(), self._axes, strict=True) if axis is not None]
        if self._most is None:
            self._found = max(self._found, 1 << (max(sizes) - 1).bit_length())
        length = Length(self.name, self._most or self._found, 0, self._axes)
        of_one = {
            name: tuple(1 if n == axis else size for n, size in enumerate(shape))
            for (name, shape), axis in zip(shapes.items(), self._axes, strict=True)
        }
        return (*of_one.values(), (-1, length.most, self._axes)), of_one, length


class AnyLengths:
    """The open dimensions of a model, each of which may be the length of its sequences until it is seen not to be.

    Parameters
    ----------
    shapes : OpenShapes
    why_none : str
        Why each set of shapes is to be compiled by itself; empty where one module may serve several.
    """

    def __init__(self, shapes: OpenShapes, why_none: str) -> None:
        self._lengths: tuple[AnyLength, ...] = ()
        self._reasons: dict[str, str] = {}
        self._failed: set[Key] = set()
        if not why_none and None in shapes.axes.values():
            why_none = "the rank of an input is open"
        if why_none:
            self._reasons[""] = why_none
            return
        names = dict.fromkeys(s for sizes in shapes.extents().values() for s in sizes if isinstance(s, str))
        if len(names) > MOST_TRIED:
            self._reasons[""] = f"more than {MOST_TRIED} dimensions are open"
            return
        for name in names:
            found = AnyLength.of(shapes, name)
            if isinstance(found, str):
                self._reasons[name] = found
            else:
                self._lengths += (found,)

    def __iter__(self) -> Iterator[AnyLength]:
        """Those that may be it, the one that served last at first."""
        return iter(self._lengths)

    def may_serve(self, key: Key) -> bool:
        """Whether nothing speaks against a module of any length with this key."""
        return key not in self._failed

    def serves(self, length: AnyLength) -> None:
        """Note that there is a module for any size of a dimension."""
        length.served = True
        self._lengths = (length, *(other for other in self._lengths if other is not length))

    def fails(self, length: AnyLength, key: Key, error: RammerError) -> None:
        """Note that there is none; a dimension that never had one is not tried again."""
        self._failed.add(key)
        if not length.served:
            self._lengths = tuple(other for other in self._lengths if other is not length)
            self._reasons[length.name] = first_line(error)

    def why_none(self) -> str:
        """Why each set of shapes is compiled by itself; empty where not each is."""
        if self._lengths or not self._reasons:
            return ""
        distinct = set(self._reasons.values())
        if len(distinct) == 1:
            return distinct.pop()
        return "; ".join(f"for any {name!r}: {reason}" for name, reason in self._reasons.items())
