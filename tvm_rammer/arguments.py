"""Arguments of the interface: what is no number, list or path is refused by name before anything is done with it."""

import operator
import os
import pathlib
from collections.abc import Iterable
from numbers import Real
from typing import Any

from .errors import ModelError, RammerError


def whole(name: str, value: Any, least: int, most: int | None = None, error: type[RammerError] = ModelError) -> int:
    """A whole number; NumPy's are taken, too, truth values are not.

    Raises
    ------
    RammerError
        It is none, or outside of the range: an error of the given class.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        raise error(f"{name} is {value!r}; give an integer, {limits}")
    return number


def magnitude(name: str, value: Any) -> float:
    """A real number that is not negative; infinity is one, NaN is not.

    Raises
    ------
    ModelError
        It is none.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:
        raise ModelError(f"{name} is {value!r}; give a number from 0 on")
    return float(value)


def names_of(name: str, value: Any) -> list[Any]:
    """The elements of a list of names; a single text is none, though Python would take it letter by letter.

    Raises
    ------
    ModelError
        It is no list.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ModelError(f"{name} is {value!r}; give a list, as in [{value!r}]")
    return list(value)


def path_of(path: Any, error: type[RammerError]) -> pathlib.Path:
    """A path; raises an error of the given class where there is none."""
    try:
        return pathlib.Path(os.fsdecode(path))
    except TypeError as reason:
        raise error(f"{path!r} is no path; give a str or an os.PathLike") from reason
