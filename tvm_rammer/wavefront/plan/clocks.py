"""Vector clocks, each a single integer: which instructions of the other vEUs a vEU knows to be complete.

A plan for hundreds of vEUs merges clocks at each of its waits. So a clock holds one field for each vEU in one long
int, and a few operations on it merge or compare all fields (SIMD within a register).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WIDTH = 32
"""Bits of a field. The highest is a guard, always 0 in a clock, which tells where a subtraction borrows."""

Clock = int
"""For each vEU, how many instructions of its lane are known to be complete.

A vEU's entry for itself may lag behind, since program order implies it.
"""


@dataclass(frozen=True, slots=True)
class ClockArithmetic:
    """Operations on the clocks of a number of vEUs.

    Parameters
    ----------
    guards : int
        The guard bit of each vEU's field.
    """

    guards: int

    @classmethod
    def of(cls, veus: int) -> "ClockArithmetic":
        """The arithmetic for a number of vEUs."""
        return cls(sum(1 << (WIDTH * v + WIDTH - 1) for v in range(veus)))

    def merge(self, a: Clock, b: Clock) -> Clock:
        """The maximum of two clocks: what either knows."""
        return b ^ ((a ^ b) & self._where_not_less(a, b))

    def common(self, a: Clock, b: Clock) -> Clock:
        """The minimum of two clocks: what both know."""
        return a ^ ((a ^ b) & self._where_not_less(a, b))

    def merge_all(self, clocks: Iterable[Clock]) -> Clock:
        """The maximum of any number of clocks."""
        merged = 0
        for clock in set(clocks):
            merged = self.merge(merged, clock)
        return merged

    def covers(self, clock: Clock, wanted: Clock) -> bool:
        """Whether a clock is nowhere less than another."""
        return ((clock | self.guards) - wanted) & self.guards == self.guards

    def behind(self, clock: Clock, wanted: Clock) -> int:
        """The vEUs, as guard bits, whose entry in a clock is less than in another."""
        return self.guards & ~((clock | self.guards) - wanted)

    def _where_not_less(self, a: Clock, b: Clock) -> int:
        """All bits below the guard, in the fields where `a` is not less than `b`."""
        kept = ((a | self.guards) - b) & self.guards
        return kept - (kept >> (WIDTH - 1))


def pack(entries: Mapping[int, int]) -> Clock:
    """The clock with some entries, and 0 for all other vEUs."""
    clock = 0
    for veu, count in entries.items():
        clock |= count << (WIDTH * veu)
    return clock


def veus_of(guards: int) -> tuple[int, ...]:
    """The vEUs of some guard bits, in order."""
    veus = []
    while guards:
        veus.append((guards & -guards).bit_length() // WIDTH - 1)
        guards &= guards - 1
    return tuple(veus)


def without(clock: Clock, veu: int) -> Clock:
    """The clock with nothing known of one vEU."""
    return clock & ~(((1 << WIDTH) - 1) << (WIDTH * veu))
