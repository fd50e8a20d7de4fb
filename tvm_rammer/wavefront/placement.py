"""One operator as placed in a plan: which lane runs which of its rTasks, and what their end proves."""

from collections.abc import Sequence

from .clocks import Clock, merge, merge_all

Part = tuple[int, ...] | None
"""A part of an operator, named by the lanes that run it, in order; None is all of it."""


class Placement:
    """The rTasks of one operator in a plan.

    Parameters
    ----------
    rank : int
        How many operators were appended before this one.

    Attributes
    ----------
    last : dict of int to int
        For each lane that runs rTasks of it, the position of the last of them.
    ends_us : dict of int to float
        When each lane has run its rTasks of it.
    finish_us : float
        When the last of its rTasks ends.
    events : dict of Part to int
        The events that somebody waits for, by the part that signals.
    """

    __slots__ = (
        "_clocks",
        "_known",
        "_lanes",
        "_merged",
        "_missing",
        "_owner",
        "ends_us",
        "events",
        "finish_us",
        "last",
        "rank",
    )

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.last: dict[int, int] = {}
        self.ends_us: dict[int, float] = {}
        self.finish_us = 0.0
        self.events: dict[Part, int] = {}
        self._owner: dict[int, int] = {}
        self._known: dict[int, Clock] = {}
        self._lanes: dict[int, Part] = {}
        self._clocks: dict[Part, Clock] = {}
        self._merged: dict[tuple[Clock, Part], Clock] = {}
        self._missing: dict[Clock, tuple[int, ...]] = {}

    @property
    def closed(self) -> bool:
        """Whether someone depends on it already, so that no more rTasks may be appended."""
        return bool(self._missing) or bool(self._lanes)

    @property
    def home(self) -> int | None:
        """The lane that runs all of its rTasks; None if there are several."""
        return next(iter(self.last)) if len(self.last) == 1 else None

    def add(self, veu: int, indices: range, position: int, known: Clock, end_us: float) -> None:
        """Record rTasks at `position` of lane `veu`, which knows `known` when it begins them."""
        self.last[veu] = position
        self.ends_us[veu] = end_us
        self.finish_us = max(self.finish_us, end_us)
        self._known[veu] = known
        self._owner.update(dict.fromkeys(indices, veu))

    def owner(self, rtask: int) -> int:
        """The lane that runs an rTask."""
        return self._owner[rtask]

    def lanes_of(self, rtasks: int) -> Part:
        """The lanes that run some rTasks (bits), in order; None if these are all of its lanes."""
        if rtasks not in self._lanes:
            lanes: set[int] = set()
            rest = rtasks
            while rest:
                low = rest & -rest
                lanes.add(self._owner[low.bit_length() - 1])
                rest ^= low
            self._lanes[rtasks] = tuple(sorted(lanes)) if len(lanes) < len(self.last) else None
        return self._lanes[rtasks]

    def room(self, part: tuple[int, ...], most: int) -> bool:
        """Whether each lane of a part signals fewer than `most` events of parts."""
        return all(sum(p is not None and u in p for p in self.events) < most for u in part)

    def unknown_to(self, veu: int, clock: Clock, part: Part) -> Sequence[int]:
        """The lanes of a part that may not be done with it, as far as lane `veu`, knowing `clock`, can tell."""
        seen = clock.seen
        if part is not None:
            return [u for u in part if u != veu and seen[u] <= self.last[u]]
        missing = self._missing.get(clock)
        if missing is None:
            missing = tuple([u for u, position in self.last.items() if seen[u] <= position])
            self._missing[clock] = missing
        return () if missing == (veu,) else missing

    def end_us(self, part: Part) -> float:
        """When a part is done."""
        return self.finish_us if part is None else max(self.ends_us[u] for u in part)

    def after(self, clock: Clock, part: Part) -> Clock:
        """What a lane that knows `clock` knows after a wait for a part."""
        merged = self._merged.get((clock, part))
        if merged is None:
            merged = self._merged[clock, part] = merge(clock, self._clock_of(part))
        return merged

    def _clock_of(self, part: Part) -> Clock:
        if part not in self._clocks:
            lanes = self.last if part is None else part
            seen = list(merge_all(self._known[u] for u in lanes).seen)
            for u in lanes:
                seen[u] = max(seen[u], self.last[u] + 1)
            self._clocks[part] = Clock(tuple(seen))
        return self._clocks[part]
