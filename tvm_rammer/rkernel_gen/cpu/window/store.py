"""Storing the results of a window: rows of the output, out of rows that are as wide as the scratch image's.

The results between two rows of the output are left out. In a row of a transposed convolution phases are interleaved.
"""

from collections.abc import Callable

from tvm import tirx
from tvm.ir import Expr

from ..loops import loop, number, sequence, vectors
from .layout import Layout, WindowTile
from .problem import Window


def store_rows(
    window: Window,
    tile: WindowTile,
    layout: Layout,
    result: tirx.Buffer,
    n: Expr,
    first: Expr,
    first_row: Expr,
    py: int,
) -> tirx.Stmt:
    """Store the results of an rTask's rows, for a block of filters that begins with the filter `first`.

    Parameters
    ----------
    result : tirx.Buffer
        Of shape (phases of columns, filters, pixels).
    n, first, first_row : expression
        The image, filter and row, or row of a phase, that are the first element of `result`.
    py : int
        The phase of the rows.
    """
    row_phases = window.phases.stride[0] if window.phases else 1
    rows = window.phases.rows if window.phases else window.rows

    def row(f: Expr, y: Expr) -> tirx.Stmt:
        at = (n, first + f, (first_row + y) * row_phases + py)
        stored = _row(window, tile.simd, at, lambda px, x: result[px, f, y * layout.width + x])
        guards = []
        if layout.rows * tile.row_parts * row_phases != rows:
            guards.append(at[2] < rows)
        if window.filters % tile.filters:
            guards.append(first + f < window.filters * window.groups)
        return tirx.IfThenElse(tirx.all(*guards), sequence(stored), None) if guards else sequence(stored)

    return loop(tile.filters, lambda f: loop(layout.rows, lambda y: row(f, y)))


def _row(window: Window, simd: int, at: tuple[Expr, Expr, Expr], value: Callable[[int, Expr], Expr]) -> list[tirx.Stmt]:
    """Store a row of the output, in which phases are interleaved."""
    if window.phases is None:
        return vectors(window.columns, simd, lambda x: window.store((*at, x), value(0, x)))
    phases, columns = window.phases.stride[1], window.phases.columns

    def interleaved(x: Expr, count: int) -> tirx.Stmt:
        return sequence([window.store((*at, x * phases + px), value(px, x)) for px in range(count)])

    full, rest = divmod(columns, phases)
    stored = [loop(full, lambda x: interleaved(x, phases))] if full else []
    return [*stored, interleaved(number(full), rest)] if rest else stored
