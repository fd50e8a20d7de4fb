"""Loops that end when a step says so: each lane waits, at the end of a step, for what decides whether there is another.

No lane begins a step before it is known that there is one. So a run is the beginning of the longest one, and what is
proven of that holds for it. The condition of each step has a slot of its own: a lane that is late still finds it.
"""

from collections.abc import Sequence
from dataclasses import replace

from ....ir import Lane, RGraph, RProgram, Run, Signal, Wait


def wait_for_condition(graph: RGraph, lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """Add to the plan of a step that all other lanes wait, at their end, for the one that computes the condition.

    Parameters
    ----------
    graph : RGraph
        With a condition.
    lanes : sequence of Lane
        The plan of one step.
    """
    decides, at = _decider(graph, lanes)
    event = 1 + max((i.event for lane in lanes for i in lane if not isinstance(i, Run)), default=-1)
    return tuple(
        (*lane[: at + 1], Signal(event), *lane[at + 1 :]) if v == decides else (*lane, Wait(event, 1)) if lane else lane
        for v, lane in enumerate(lanes)
    )


def with_exit(program: RProgram) -> RProgram:
    """Say which event each lane waits for at its end; the lane that signals it waits for it, too.

    Parameters
    ----------
    program : RProgram
        Of a graph with a condition, whose other lanes wait for it (`wait_for_condition`).
    """
    decides, at = _decider(program.graph, program.lanes)
    others = [lane for v, lane in enumerate(program.lanes) if v != decides]
    awaited = {i.event for lane in others for i in lane[-1:] if isinstance(i, Wait)}
    lanes, num_events = list(program.lanes), program.num_events
    if awaited:
        (event,) = awaited
    else:
        event, num_events = num_events, num_events + 1
        lanes[decides] = (*lanes[decides][: at + 1], Signal(event), *lanes[decides][at + 1 :])
    lanes[decides] = (*lanes[decides], Wait(event, 1))
    return replace(program, lanes=tuple(lanes), num_events=num_events, exit=event)


def _decider(graph: RGraph, lanes: Sequence[Lane]) -> tuple[int, int]:
    """The lane that computes the condition, and where in it."""
    (operator,) = graph.deciders()
    instructions = ((v, n, i) for v, lane in enumerate(lanes) for n, i in enumerate(lane))
    return next((v, n) for v, n, i in instructions if isinstance(i, Run) and i.operator == operator)
