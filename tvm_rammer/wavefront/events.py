"""The last step of building: signals where someone waits, events and operators numbered densely."""

from collections.abc import Sequence

from ..ir import Instruction, Lane, Run, Signal, Wait


def finish_events(lanes: Sequence[Sequence[Instruction]], operators: Sequence[int]) -> tuple[tuple[Lane, ...], int]:
    """Add the signals of operators, and renumber.

    Parameters
    ----------
    lanes : sequence of sequence of Instruction
        A `Wait` names the operator it waits for as its event; other events (of barriers) have their own
        numbers and their signals.
    operators : sequence of int
        The operators of this program in the order of appending.

    Returns
    -------
    lanes : tuple of Lane
        Each lane that runs rTasks of an awaited operator signals once, after the last of them.
    num_events : int
    """
    awaited = {i.event for lane in lanes for i in lane if isinstance(i, Wait)}
    own = [o for o in operators if o in awaited]
    event = {e: n for n, e in enumerate([*own, *sorted(awaited.difference(own))])}
    position = {o: n for n, o in enumerate(sorted(operators))}
    return tuple(_finish_lane(lane, position, event) for lane in lanes), len(event)


def _finish_lane(lane: Sequence[Instruction], position: dict[int, int], event: dict[int, int]) -> Lane:
    last = {i.operator: n for n, i in enumerate(lane) if isinstance(i, Run)}
    done: list[Instruction] = []
    for n, instruction in enumerate(lane):
        if isinstance(instruction, Run):
            operator = instruction.operator
            done.append(Run(position[operator], instruction.start, instruction.count, instruction.step))
            if last[operator] == n and operator in event:
                done.append(Signal(event[operator]))
        elif isinstance(instruction, Signal):
            done.append(Signal(event[instruction.event]))
        else:
            done.append(Wait(event[instruction.event], instruction.arrivals))
    return tuple(done)
