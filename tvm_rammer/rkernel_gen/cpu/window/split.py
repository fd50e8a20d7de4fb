"""How the work of a window is split into rTasks: by images, groups, blocks of filters, and rows."""

from collections.abc import Callable, Sequence
from typing import Protocol

from tvm import tirx
from tvm.ir import Expr

from ..loops import loop
from .problem import Window

ROW_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of rTasks that rows are split into."""


class Split(Protocol):
    """Numbers of rTasks that groups, blocks of filters of a group, and rows are split into."""

    @property
    def group_parts(self) -> int:
        """Of the groups."""

    @property
    def filter_parts(self) -> int:
        """Of the blocks of filters of a group."""

    @property
    def row_parts(self) -> int:
        """Of the rows, or of the pixels of a flat image."""


def row_parts_of(rows: int) -> list[int]:
    """Numbers of rTasks that so many rows, or steps along a row, are split into: none is empty."""
    return [parts for parts in ROW_PARTS if parts <= rows and -(-rows // -(-rows // parts)) == parts]


def num_rtasks(window: Window, split: Split) -> int:
    """All rTasks."""
    return window.batch * split.group_parts * split.filter_parts * split.row_parts


def rtask_loop(
    window: Window,
    split: Split,
    blocks: int,
    scratch: Sequence[tirx.Buffer],
    group: Callable[[Expr, Expr, Expr, Expr], tirx.Stmt],
) -> tirx.Stmt:
    """The parallel loop over rTasks.

    Parameters
    ----------
    window : Window
    split : Split
    blocks : int
        Blocks of filters of a group.
    scratch : sequence of Buffer
        What each rTask has for itself.
    group : callable
        `group(n, g, first_block, row_part)`: what an rTask does for a group of an image.
    """

    def rtask(t: Expr) -> tirx.Stmt:
        row_part, t = t % split.row_parts, t // split.row_parts
        filter_part, t = t % split.filter_parts, t // split.filter_parts
        group_part, n = t % split.group_parts, t // split.group_parts
        first_block = filter_part * (blocks // split.filter_parts)
        groups = window.groups // split.group_parts
        work = loop(groups, lambda i: group(n, group_part * groups + i, first_block, row_part))
        return tirx.SeqStmt([*(tirx.AllocBuffer(buffer) for buffer in scratch), work])

    return loop(num_rtasks(window, split), rtask, "PARALLEL")
