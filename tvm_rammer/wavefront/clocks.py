"""What a lane knows to be done in the other lanes: vector clocks that lanes share.

In a plan of hundreds of lanes most lanes know the same. So a clock is an immutable value that many lanes
point to, work is remembered by the clock's identity, and a step that all lanes take costs one merge.
"""

from collections.abc import Iterable


class Clock:
    """An immutable vector clock, compared by identity.

    Parameters
    ----------
    seen : tuple of int
        For each lane, how many of its instructions are known to be complete. A lane's entry for itself
        may lag behind: a lane always knows what it has done itself.
    """

    __slots__ = ("seen",)

    def __init__(self, seen: tuple[int, ...]) -> None:
        self.seen = seen


def merge(mine: Clock, other: Clock) -> Clock:
    """Know what both know; returns one of the two where it already does."""
    seen = tuple(map(max, mine.seen, other.seen))
    if seen == other.seen:
        return other
    return mine if seen == mine.seen else Clock(seen)


def merge_all(clocks: Iterable[Clock]) -> Clock:
    """Know what all of at least one clock know."""
    distinct = list(dict.fromkeys(clocks))
    if len(distinct) == 1:
        return distinct[0]
    return Clock(tuple(map(max, *(c.seen for c in distinct))))
