"""Where a Resize reads, by the numbers of one axis: of NumPy when it is compiled, of TIR when it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

BEFORE_11 = "before opset 11"
"""The nearest_mode of a Resize of that time, which had none. ONNX Runtime takes the element before a place where an
axis grows, and the one behind it where it shrinks; places are of single precision."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What happens to one axis.

    Parameters
    ----------
    axis : int
    size, out : int or tirx.Expr
        Its elements before and after.
    scale : float or tirx.Expr
        As it was given, or `out / size`.
    begin, end : float
        The part that is read, for "tf_crop_and_resize".
    """

    axis: int
    size: Any
    out: Any
    scale: Any
    begin: float = 0.0
    end: float = 1.0


Choose = Callable[[Any, Any, Any], Any]
"""The second or the third, by the first one: `numpy.where`, or of TIR."""

Round = Callable[[Any], Any]
"""To a whole number."""


def read_at(axis: Axis, coordinates: str, x: Any, choose: Choose) -> Any:
    """Where a result lies on the input's axis.

    Parameters
    ----------
    axis : Axis
    coordinates : str
        The coordinate_transformation_mode.
    x : numpy.ndarray or tirx.Expr
        The place of the result, in double precision.
    choose : callable

    Returns
    -------
    numpy.ndarray or tirx.Expr or None
        None for a transformation that is not known.
    """
    last, exact, several = axis.size - 1, axis.size * axis.scale, axis.out > 1
    half = (x + 0.5) / axis.scale - 0.5
    middle = 0.5 * (axis.begin + axis.end) * last
    along = x * (axis.end - axis.begin) * last / choose(several, axis.out - 1, 1)  # the ends are exact
    return {
        "half_pixel": half,
        "pytorch_half_pixel": choose(several, half, 0.0),
        "half_pixel_symmetric": axis.size / 2 * (1 - axis.out / exact) + half,
        "asymmetric": x / axis.scale,
        "tf_half_pixel_for_nn": (x + 0.5) / axis.scale,
        "align_corners": choose(several, x * last / choose(several, exact - 1, 1.0), 0.0),
        "tf_crop_and_resize": choose(several, axis.begin * last + along, middle),
    }.get(coordinates)


def rounded(x: Any, mode: str, floor: Round, ceil: Round) -> Any:
    """The element that is nearest to a place.

    Parameters
    ----------
    x : numpy.ndarray or tirx.Expr
    mode : str
        The nearest_mode.
    floor, ceil : callable
        Of NumPy or of TIR.

    Returns
    -------
    numpy.ndarray or tirx.Expr or None
        None for a mode that is not known.
    """
    return {
        "round_prefer_floor": ceil(x - 0.5),
        "round_prefer_ceil": floor(x + 0.5),
        "floor": floor(x),
        "ceil": ceil(x),
    }.get(mode)


def cubic(away: Any, a: float, choose: Choose) -> Any:
    """The weight of an element at a distance (Keys, 1981)."""
    near = ((a + 2) * away - (a + 3)) * away * away + 1
    far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
    return choose(away <= 1, near, choose(away < 2, far, 0.0))
