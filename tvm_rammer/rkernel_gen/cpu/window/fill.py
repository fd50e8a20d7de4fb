"""The image of an rTask as its inner loops want it: rows copied to scratch, with padding, in phases for a stride."""

from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr

from ...analysis.work import shape_of
from ..loops import loop, sequence, vectors
from .problem import Window


@dataclass(frozen=True, slots=True)
class Planes:
    """The scratch image of a channel: one plane for each phase of rows and columns.

    Parameters
    ----------
    phases : pair of int
        Numbers of phases of the image's rows and columns.
    height, width : int
        Extents of a phase.
    size : int
        Distance in elements from one phase to the next.
    between : int
        Elements between the end of a row and the next row of the phase, which are other channels' rows.
    """

    phases: tuple[int, int]
    height: int
    width: int
    size: int
    between: int = 0


def fill_rows(
    window: Window, planes: Planes, simd: int, image: tirx.Buffer, n: Expr, g: Expr, first_row: Expr
) -> tirx.Stmt:
    """Copy the rows of a group that an rTask needs to scratch, in phases."""
    shape = shape_of(window.data)
    height, width = shape[2] if window.rank == 2 else 1, shape[-1]
    (sy, sx), (top, left), (py_count, px_count) = window.stride, window.padding, planes.phases
    padding = tirx.FloatImm("float32", window.fill)

    def row(c: Expr, py: int, px: int, h: Expr) -> tirx.Stmt:
        y = (first_row + h) * sy + (py - top)
        at = ((c * py_count + py) * px_count + px) * planes.size + h * (planes.width + planes.between)
        low = min(planes.width, max(0, -(-(left - px) // sx)))
        high = max(low, min(planes.width, (width - 1 + left - px) // sx + 1))

        def copy(w: Expr) -> tirx.Stmt:
            value = pixel_of(window, n, g * window.channels + c, y, (w + low) * sx + (px - left))
            return tirx.BufferStore(image, value, [at + low + w])

        def clear(start: int, end: int) -> list[tirx.Stmt]:
            return vectors(end - start, simd, lambda w: tirx.BufferStore(image, padding, [at + start + w]))

        copied = vectors(high - low, simd, copy) if sx == 1 else [loop(high - low, copy)]
        if high == low:
            copied = []
        inside = sequence([*clear(0, low), *copied, *clear(high, planes.width)])
        return tirx.IfThenElse(tirx.all(y >= 0, y < height), inside, sequence(clear(0, planes.width)))

    def rows(c: Expr, py: int, px: int) -> tirx.Stmt:
        return loop(planes.height, lambda h: row(c, py, px, h))

    def channel(c: Expr) -> tirx.Stmt:
        phases = [(py, px) for py in range(py_count) for px in range(px_count)]
        return sequence([rows(c, *p) for p in phases])

    return loop(window.channels, channel)


def pixel_of(window: Window, n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
    """An element of the image."""
    return window.data[n, c, y, x] if window.rank == 2 else window.data[n, c, x]
