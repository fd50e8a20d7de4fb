"""Loops that end when a step says so: the condition, and that each lane knows it before it begins another step."""

import math

from ...errors import VerificationError
from ...ir import RProgram, Run, Signal, Wait


def check_exit(program: RProgram) -> None:
    """Prove that all lanes end with the same step, by the condition of that step.

    Parameters
    ----------
    program : RProgram
        Of several steps, with well-formed instructions, each of whose waits is for all arrivals of a step.

    Raises
    ------
    VerificationError
        The condition is no truth value with a slot for each step; its event is not signalled, or once more than once,
        or before the condition is computed; or a lane does not end with a wait for it, in the same step.

    Notes
    -----
    One signal after the only rTask that writes the condition, by the same lane, and one wait at the end of each lane:
    whoever begins step k + 1 has seen the condition of step k. Lanes without instructions do nothing in any step.
    """
    graph = program.graph
    if graph.condition is None and program.exit is None:
        return
    if graph.trip_count is not None:
        raise _error(program, "an input says how many steps there are, and so does a condition")
    operator = _writer(program)
    runs = [(v, n) for v, n, i in program.instructions() if isinstance(i, Run) and i.operator == operator]
    signals = [(v, n) for v, n, i in program.instructions() if isinstance(i, Signal) and i.event == program.exit]
    if len(signals) != 1 or any(v != signals[0][0] or n > signals[0][1] for v, n in runs):
        raise _error(
            program,
            f"event {program.exit} says that the condition is known: it needs one signal, by the lane that computes "
            f"it, after that; there are signals at {signals}, and it is computed at {runs}",
        )
    for v, lane in enumerate(program.lanes):
        waits = [(n, i.back) for n, i in enumerate(lane) if isinstance(i, Wait) and i.event == program.exit]
        if lane and waits != [(len(lane) - 1, 0)]:
            raise _error(program, f"lane {v} must end with its only wait for event {program.exit}, in the same step")


def _writer(program: RProgram) -> int:
    """The operator that computes the condition."""
    graph = program.graph
    at = graph.condition if graph.condition is not None and 0 <= graph.condition < len(graph.buffers) else None
    buffer = None if at is None else graph.buffers[at]
    place = None if buffer is None else buffer.place
    if (
        buffer is None
        or (buffer.dtype, math.prod(buffer.shape)) != ("bool", 1)
        or place is None
        or (place.offset, place.stride, place.ahead, place.phases) != (0, buffer.nbytes, 0, 0)
        or graph.buffers[place.base].kind != "output"
    ):
        raise _error(program, f"the condition is {buffer}; it must be one truth value, in slots of an output, in order")
    writers = graph.deciders()
    if len(writers) != 1 or program.kernels[writers[0]].num_rtasks != 1:
        raise _error(program, f"the condition is written by operators {writers}; it must be one rTask of one of them")
    return writers[0]


def _error(program: RProgram, message: str) -> VerificationError:
    return VerificationError(f"program {program.name!r}: {message}")
