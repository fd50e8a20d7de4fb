"""Events while a plan is built, and the last step of building: signals where there are waits, events renumbered."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir import Instruction, Lane, Run, Signal, Wait


@dataclass(frozen=True, slots=True)
class Event:
    """What vEUs wait for.

    Parameters
    ----------
    operator : int or None
        Whose rTasks; None for a barrier, whose signals are in the lanes already.
    part : tuple of int or None
        The vEUs that signal once they have run their rTasks of it; None for all vEUs that run any.
    """

    operator: int | None = None
    part: tuple[int, ...] | None = None


def finish_events(
    lanes: Sequence[Sequence[Instruction]], events: Sequence[Event], operators: Sequence[int]
) -> tuple[tuple[Lane, ...], int]:
    """Add the signals of operators, and renumber.

    Parameters
    ----------
    lanes : sequence of sequence of Instruction
        Their events are positions in `events`.
    events : sequence of Event
    operators : sequence of int
        The operators of this program in the order of appending.

    Returns
    -------
    lanes : tuple of Lane
        A lane signals an event once, after the last of its rTasks of the event's operator. An event without a wait is
        not signalled.
    num_events : int
        Numbered by operators in the order of appending, then barriers.
    """
    number_of = {o: n for n, o in enumerate(operators)}
    awaited = {i.event for lane in lanes for i in lane if isinstance(i, Wait)}
    after_operators = len(number_of)

    def sort_key(e: int) -> tuple[int, int]:
        operator = events[e].operator
        return (after_operators if operator is None else number_of[operator]), e

    order = sorted(awaited, key=sort_key)
    number = {e: n for n, e in enumerate(order)}
    of_operator: dict[int, list[int]] = {}
    for e in order:
        if (operator := events[e].operator) is not None:
            of_operator.setdefault(operator, []).append(e)
    position = {o: n for n, o in enumerate(sorted(operators))}
    finished = []
    for v, lane in enumerate(lanes):
        signals = {
            o: [number[e] for e in of_operator[o] if (part := events[e].part) is None or v in part]
            for o in dict.fromkeys(i.operator for i in lane if isinstance(i, Run))
            if o in of_operator
        }
        finished.append(_finish_lane(lane, position, number, signals))
    return tuple(finished), len(number)


def _finish_lane(
    lane: Sequence[Instruction], position: dict[int, int], number: dict[int, int], signals: dict[int, list[int]]
) -> Lane:
    last = {i.operator: n for n, i in enumerate(lane) if isinstance(i, Run)}
    finished: list[Instruction] = []
    for n, instruction in enumerate(lane):
        if isinstance(instruction, Run):
            operator = instruction.operator
            finished.append(Run(position[operator], instruction.start, instruction.count, instruction.step))
            if last[operator] == n:
                finished += [Signal(event) for event in signals.get(operator, ())]
        elif isinstance(instruction, Signal):
            finished.append(Signal(number[instruction.event]))
        else:
            finished.append(Wait(number[instruction.event], instruction.arrivals))
    return tuple(finished)
