"""One operator as placed in a plan: which lane runs which of its rTasks, and what their end proves."""

from .clocks import Clock, Clocks, pack, without

Part = tuple[int, ...] | None
"""A part of an operator, named by the lanes that run it, in order; None is all of it."""


class Placement:
    """The rTasks of one operator in a plan.

    Parameters
    ----------
    rank : int
        How many operators were appended before this one.
    clocks : Clocks

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
    closed : bool
        Whether someone depends on it already, so that no more rTasks may be appended.
    """

    __slots__ = (
        "_after",
        "_clocks",
        "_ends",
        "_known",
        "_lanes",
        "_owner",
        "closed",
        "ends_us",
        "events",
        "finish_us",
        "last",
        "rank",
    )

    def __init__(self, rank: int, clocks: Clocks) -> None:
        self.rank = rank
        self.last: dict[int, int] = {}
        self.ends_us: dict[int, float] = {}
        self.finish_us = 0.0
        self.events: dict[Part, int] = {}
        self.closed = False
        self._clocks = clocks
        self._owner: dict[int, int] = {}
        self._known: dict[int, Clock] = {}
        self._lanes: dict[int, Part] = {}
        self._ends: dict[Part, Clock] = {}
        self._after: dict[Part, Clock] = {}

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
        """The lanes that run some rTasks (bits)."""
        self.closed = True
        if rtasks not in self._lanes:
            lanes: set[int] = set()
            rest = rtasks
            while rest:
                lanes.add(self._owner[(rest & -rest).bit_length() - 1])
                rest &= rest - 1
            self._lanes[rtasks] = tuple(sorted(lanes)) if len(lanes) < len(self.last) else None
        return self._lanes[rtasks]

    def room(self, part: tuple[int, ...], most: int) -> bool:
        """Whether each lane of a part signals fewer than `most` events of parts."""
        return all(sum(p is not None and u in p for p in self.events) < most for u in part)

    def unknown_to(self, veu: int, clock: Clock, part: Part) -> int:
        """The lanes of a part, as guard bits, that may not be done with it, as far as lane `veu` can tell."""
        self.closed = True
        return self._clocks.behind(clock, without(self._end(part), veu))

    def end_us(self, part: Part) -> float:
        """When a part is done."""
        return self.finish_us if part is None else max(self.ends_us[u] for u in part)

    def after(self, clock: Clock, part: Part) -> Clock:
        """What a lane that knows `clock` knows after a wait for a part."""
        if part not in self._after:
            known = self._clocks.merge_all(self._known[u] for u in (self.last if part is None else part))
            self._after[part] = self._clocks.merge(known, self._end(part))
        return self._clocks.merge(clock, self._after[part])

    def _end(self, part: Part) -> Clock:
        """How far the lanes of a part are when they are done with it."""
        if part not in self._ends:
            self._ends[part] = pack({u: self.last[u] + 1 for u in (self.last if part is None else part)})
        return self._ends[part]
