"""Which launches of a plan must come before which: the edges of its CUDA graph."""

from collections.abc import Iterator

from .plan import Plan, PlanLaunch, View


def dependences(plan: Plan) -> list[list[int]]:
    """For each launch the earlier ones that it depends on, but those that others of them depend on anyway.

    Two launches depend on each other where one writes what the other reads or writes, as where memory is used again.

    Parameters
    ----------
    plan : Plan
        Of launches in an order that is right.
    """
    found: list[list[int]] = []
    before: list[int] = []  # of each launch: all that come before it, as bits
    for number, launch in enumerate(plan.launches):
        direct: list[int] = []
        implied = 0
        for earlier in reversed(range(number)):
            if not implied >> earlier & 1 and _conflict(plan.launches[earlier], launch):
                direct.append(earlier)
                implied |= before[earlier] | 1 << earlier
        found.append(sorted(direct))
        before.append(implied)
    return found


def _conflict(one: PlanLaunch, other: PlanLaunch) -> bool:
    return any(
        (a_written or b_written) and _overlap(a, b)
        for a, a_written in _accesses(one)
        for b, b_written in _accesses(other)
    )


def _accesses(launch: PlanLaunch) -> Iterator[tuple[View, bool]]:
    """Each argument of a launch, and whether it may be written; where that is not known it may."""
    return zip(launch.arguments, launch.writes or [True] * len(launch.arguments), strict=True)


def _overlap(a: View, b: View) -> bool:
    return a.buffer == b.buffer and a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes
