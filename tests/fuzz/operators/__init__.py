"""Operator -> a function that appends such a node with valid attributes to a `Builder`; a family a file."""

from collections.abc import Callable

from ..generate.builder import Builder
from . import (
    classical,
    control,
    dependent,
    elementwise,
    images,
    indexing,
    linear,
    movement,
    norms,
    quantised,
    recurrent,
    reductions,
    shapes,
    windows,
)

FAMILIES = {
    "elementwise": elementwise.TABLE,
    "reductions": reductions.TABLE,
    "linear": linear.TABLE,
    "windows": windows.TABLE,
    "images": images.TABLE,
    "movement": movement.TABLE,
    "shapes": shapes.TABLE,
    "indexing": indexing.TABLE,
    "norms": norms.TABLE,
    "recurrent": recurrent.TABLE,
    "control": control.TABLE,
    "dependent": dependent.TABLE,
    "quantised": quantised.TABLE,
    "classical": classical.TABLE,
}

TABLE: dict[str, Callable[[Builder], list[str]]] = {
    op: make for family in FAMILIES.values() for op, make in family.items()
}
