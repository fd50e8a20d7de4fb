"""One operator as placed in a plan: on which lanes, and what the end of all its rTasks proves."""

from .clocks import Clock, merge, merge_all


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
    finish_us : float
        When the last of its rTasks ends.
    """

    __slots__ = ("_event", "_known", "_merged", "_missing", "finish_us", "last", "rank")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.last: dict[int, int] = {}
        self.finish_us = 0.0
        self._known: dict[int, Clock] = {}
        self._event: Clock | None = None
        self._merged: dict[Clock, Clock] = {}
        self._missing: dict[Clock, tuple[int, ...]] = {}

    @property
    def closed(self) -> bool:
        """Whether someone depends on it already, so that no more rTasks may be appended."""
        return bool(self._missing)

    @property
    def home(self) -> int | None:
        """The lane that runs all of its rTasks; None if there are several."""
        return next(iter(self.last)) if len(self.last) == 1 else None

    def add(self, veu: int, position: int, known: Clock, end_us: float) -> None:
        """Record rTasks at `position` of lane `veu`, which knows `known` when it begins them."""
        self.last[veu] = position
        self._known[veu] = known
        self.finish_us = max(self.finish_us, end_us)

    def known_to(self, veu: int, clock: Clock) -> bool:
        """Whether lane `veu`, knowing `clock`, knows all its rTasks to be done."""
        missing = self._missing.get(clock)
        if missing is None:
            seen = clock.seen
            missing = tuple([u for u, position in self.last.items() if seen[u] <= position])
            self._missing[clock] = missing
        return not missing or missing == (veu,)

    def after(self, clock: Clock) -> Clock:
        """What a lane that knows `clock` knows after a wait for all its rTasks."""
        merged = self._merged.get(clock)
        if merged is None:
            merged = self._merged[clock] = merge(clock, self._event_clock())
        return merged

    def _event_clock(self) -> Clock:
        if self._event is None:
            seen = list(merge_all(self._known.values()).seen)
            for veu, position in self.last.items():
                seen[veu] = position + 1
            self._event = Clock(tuple(seen))
        return self._event
