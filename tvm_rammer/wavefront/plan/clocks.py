"""What a lane knows to be done in the other lanes: vector clocks, each a single integer.

A plan of hundreds of lanes takes a merge of clocks for each of its waits. So a clock holds one field for each
lane in one long int, and merges and compares all fields by a few operations on it (SIMD within a register).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WIDTH = 32
"""Bits of a field. The highest is a guard, always 0 in a clock, which tells where a subtraction borrows."""

Clock = int
"""For each lane, how many of its instructions are known to be complete.

A lane's entry for itself may lag behind: a lane always knows what it has done itself.
"""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Arithmetic on the clocks of so many lanes.

    Parameters
    ----------
    guards : int
        The guard bit of each lane.
    """

    guards: int

    @classmethod
    def of(cls, lanes: int) -> "Clocks":
        """The arithmetic for a number of lanes."""
        return cls(sum(1 << (WIDTH * v + WIDTH - 1) for v in range(lanes)))

    def merge(self, a: Clock, b: Clock) -> Clock:
        """Know what either knows."""
        return b ^ ((a ^ b) & self._where_not_less(a, b))

    def common(self, a: Clock, b: Clock) -> Clock:
        """Know what both know."""
        return a ^ ((a ^ b) & self._where_not_less(a, b))

    def merge_all(self, clocks: Iterable[Clock]) -> Clock:
        """Know what any knows."""
        merged = 0
        for clock in set(clocks):
            merged = self.merge(merged, clock)
        return merged

    def covers(self, clock: Clock, wanted: Clock) -> bool:
        """Whether a clock knows all of another."""
        return ((clock | self.guards) - wanted) & self.guards == self.guards

    def behind(self, clock: Clock, wanted: Clock) -> int:
        """The lanes, as bits of their guards, of which a clock knows less than is wanted."""
        return self.guards & ~((clock | self.guards) - wanted)

    def _where_not_less(self, a: Clock, b: Clock) -> int:
        """All bits below the guard, in the fields where `a` is not less than `b`."""
        kept = ((a | self.guards) - b) & self.guards
        return kept - (kept >> (WIDTH - 1))


def pack(entries: Mapping[int, int]) -> Clock:
    """The clock with some entries, and 0 for all other lanes."""
    clock = 0
    for lane, count in entries.items():
        clock |= count << (WIDTH * lane)
    return clock


def lanes_of(guards: int) -> tuple[int, ...]:
    """The lanes of some guard bits, in order."""
    lanes = []
    while guards:
        lanes.append((guards & -guards).bit_length() // WIDTH - 1)
        guards &= guards - 1
    return tuple(lanes)


def without(clock: Clock, lane: int) -> Clock:
    """The clock with nothing known of one lane."""
    return clock & ~(((1 << WIDTH) - 1) << (WIDTH * lane))
