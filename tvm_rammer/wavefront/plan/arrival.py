"""When what an rTask reads is there, seen from each vEU."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .placement import Placement

NEVER = -math.inf
"""The time of something that need not be waited for."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """When what an rTask reads is there.

    Parameters
    ----------
    lane : int or None
        The lane that makes the last of it; None if several lanes do, or none.
    at_us : float
        When the last of it is made, in microseconds.
    rest_us : float
        When the other lanes have made the rest.
    near : int or None
        The lane that makes the middle of what it reads; None if it reads whole operators.
    """

    lane: int | None
    at_us: float
    rest_us: float
    near: int | None

    @property
    def home(self) -> int | None:
        """Where it starts earliest, or as early as anywhere else and next to what it reads; None if anywhere."""
        return self.lane if self.near is not None and self.lane is not None and self.at_us > self.rest_us else self.near

    def start_us(self, veu: int, ready_us: float, signal_us: float) -> float:
        """When the rTask can start on a vEU that is ready at `ready_us`: what a vEU made itself needs no signal."""
        return max(ready_us, (self.rest_us if veu == self.lane else self.at_us) + signal_us)


def arrival(reads: Iterable[tuple[Placement, int | None]]) -> Arrival:
    """Combine what an rTask reads of several operators.

    Parameters
    ----------
    reads : iterable of (Placement, int or None)
        The rTasks that it depends on, as bits; None for all.
    """
    made: dict[int | None, float] = {}
    near, latest = None, -1
    for placed, bits in reads:
        part = None if bits is None else placed.lanes_of(bits)
        if part is None:
            made[placed.home] = max(made.get(placed.home, NEVER), placed.finish_us)
        else:
            for lane in part:
                made[lane] = max(made.get(lane, NEVER), placed.ends_us[lane])
        if bits and placed.rank > latest:
            lowest = (bits & -bits).bit_length() - 1
            near, latest = placed.owner((lowest + bits.bit_length() - 1) // 2), placed.rank
    if not made:
        return Arrival(None, NEVER, NEVER, near)
    last = max(made, key=lambda lane: made[lane])
    at_us = made.pop(last)
    return Arrival(last, at_us, max(made.values(), default=NEVER) if last is not None else at_us, near)
