"""How many steps a run of a loop has: all, as many as an input says, or until a step says that it is the last.

Both code generators ask here, each with the tensors of its own code.
"""

from collections.abc import Callable

from tvm import ir, tirx

from ..ir import RProgram
from .layout import FIRST_EXTERNAL, Layout


def count_at(program: RProgram, layout: Layout) -> int | None:
    """The segment that holds the number of steps, or of rows; None where that is no input."""
    count = program.graph.trip_count
    return None if count is None else FIRST_EXTERNAL + layout.inputs.index(count.buffer)


def steps_of_run(program: RProgram, layout: Layout, first_of: Callable[[int], ir.Expr]) -> ir.Expr:
    """How many steps a run has at most; what an input says is kept to those that the program has memory for.

    Parameters
    ----------
    program : RProgram
        Of several steps.
    layout : Layout
    first_of : callable
        The first element of a segment.
    """
    count, segment = program.graph.trip_count, count_at(program, layout)
    if count is None or segment is None:
        return tirx.IntImm("int32", program.steps)
    number = tirx.max(1, tirx.min(first_of(segment), program.steps * count.rows))
    return tirx.truncdiv(number + (count.rows - 1), count.rows)


def conditions_at(program: RProgram, layout: Layout) -> int | None:
    """The segment that holds the condition of each step, in slots; None where a program has no condition."""
    condition = program.graph.condition
    place = None if condition is None else program.graph.buffers[condition].place
    return None if place is None else FIRST_EXTERNAL + len(layout.inputs) + layout.outputs.index(place.base)
