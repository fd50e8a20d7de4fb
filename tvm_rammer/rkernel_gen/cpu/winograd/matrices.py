"""The transformations of F(2x2, 3x3) and F(4x4, 3x3) (Lavin and Gray, CVPR 2016, section 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Transformations:
    """With `size + 2` points for each axis: `size` results of three taps are `result @ ((weight @ g) * (image @ d))`.

    Parameters
    ----------
    size : int
        Results of a tile along each axis.
    image, weight, result, taps : Matrix
        Of [points, points], [points, 3], [size, points] and [3, points]: for the pixels of a tile, the taps, the
        products, and from transformed taps back to taps.
    """

    size: int
    image: Matrix
    weight: Matrix
    result: Matrix
    taps: Matrix

    @property
    def points(self) -> int:
        """Products of a tile along each axis, and the pixels that it reads."""
        return self.size + 2

    @property
    def products(self) -> int:
        """Products of a tile."""
        return self.points**2


def _matrix(rows: Sequence[Sequence[str | int]]) -> Matrix:
    return tuple(tuple(float(Fraction(element)) for element in row) for row in rows)


TRANSFORMATIONS: Mapping[int, Transformations] = MappingProxyType(
    {
        2: Transformations(
            2,
            _matrix([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]]),
            _matrix([[1, 0, 0], ["1/2", "1/2", "1/2"], ["1/2", "-1/2", "1/2"], [0, 0, 1]]),
            _matrix([[1, 1, 1, 0], [0, 1, -1, -1]]),
            _matrix([[1, 0, 0, 0], [0, 1, -1, 0], [0, 0, 0, 1]]),
        ),
    }
)  # fmt: skip
"""By the size of a tile."""


def terms(matrix: Matrix) -> int:
    """Additions and multiplications of a product of the matrix with a vector, each term as one."""
    return sum(sum(element != 0 for element in row) for row in matrix)
