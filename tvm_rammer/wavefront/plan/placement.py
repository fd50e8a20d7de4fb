"""The placement of one operator in a plan: which vEU runs which of its rTasks, and what their end implies."""

from .clocks import Clock, ClockArithmetic, pack, without

Part = tuple[int, ...] | None
"""A part of an operator's rTasks, named by the vEUs that run it, in order; None is all of them."""


class Placement:
    """The rTasks of one operator in a plan.

    Parameters
    ----------
    number : int
        How many operators were appended before this one.
    arithmetic : ClockArithmetic

    Attributes
    ----------
    last : dict of int to int
        For each vEU that runs rTasks of it, the position of the last of them in its lane.
    ends_us : dict of int to float
        When each vEU has run its rTasks of it.
    finish_us : float
        When the last of its rTasks ends.
    events : dict of Part to int
        The events that are waited for, by the part that signals.
    closed : bool
        Whether a later operator depends on it already, so that no more rTasks may be appended.
    """

    __slots__ = (
        "_after",
        "_arithmetic",
        "_clocks",
        "_ends",
        "_parts",
        "_veu_of",
        "closed",
        "ends_us",
        "events",
        "finish_us",
        "last",
        "number",
    )

    def __init__(self, number: int, arithmetic: ClockArithmetic) -> None:
        self.number = number
        self.last: dict[int, int] = {}
        self.ends_us: dict[int, float] = {}
        self.finish_us = 0.0
        self.events: dict[Part, int] = {}
        self.closed = False
        self._arithmetic = arithmetic
        self._veu_of: dict[int, int] = {}
        self._clocks: dict[int, Clock] = {}
        self._parts: dict[int, Part] = {}
        self._ends: dict[Part, Clock] = {}
        self._after: dict[Part, Clock] = {}

    @property
    def only_veu(self) -> int | None:
        """The vEU that runs all of its rTasks; None if there are several."""
        return next(iter(self.last)) if len(self.last) == 1 else None

    def add(self, veu: int, indices: range, position: int, clock: Clock, end_us: float) -> None:
        """Record rTasks at `position` of a vEU's lane; the vEU's clock is `clock` when it begins them."""
        self.last[veu] = position
        self.ends_us[veu] = end_us
        self.finish_us = max(self.finish_us, end_us)
        self._clocks[veu] = clock
        self._veu_of.update(dict.fromkeys(indices, veu))

    def veu_of(self, rtask: int) -> int:
        """The vEU that runs an rTask."""
        return self._veu_of[rtask]

    def veus_of(self, rtasks: int) -> Part:
        """The vEUs that run some rTasks (bits)."""
        self.closed = True
        if rtasks not in self._parts:
            veus: set[int] = set()
            rest = rtasks
            while rest:
                veus.add(self._veu_of[(rest & -rest).bit_length() - 1])
                rest &= rest - 1
            self._parts[rtasks] = tuple(sorted(veus)) if len(veus) < len(self.last) else None
        return self._parts[rtasks]

    def may_signal(self, part: tuple[int, ...], limit: int) -> bool:
        """Whether each vEU of a part signals fewer than `limit` events of parts so far."""
        return all(sum(p is not None and u in p for p in self.events) < limit for u in part)

    def not_known_to_end(self, veu: int, clock: Clock, part: Part) -> int:
        """The vEUs of a part, as guard bits, whose rTasks may not have ended by what the clock of `veu` implies."""
        self.closed = True
        return self._arithmetic.behind(clock, without(self._end(part), veu))

    def end_us(self, part: Part) -> float:
        """When a part has ended."""
        return self.finish_us if part is None else max(self.ends_us[u] for u in part)

    def after(self, clock: Clock, part: Part) -> Clock:
        """The clock of a vEU, so far `clock`, after a wait for a part."""
        if part not in self._after:
            merged = self._arithmetic.merge_all(self._clocks[u] for u in (self.last if part is None else part))
            self._after[part] = self._arithmetic.merge(merged, self._end(part))
        return self._arithmetic.merge(clock, self._after[part])

    def _end(self, part: Part) -> Clock:
        """How far the lanes of a part's vEUs are when it has ended."""
        if part not in self._ends:
            self._ends[part] = pack({u: self.last[u] + 1 for u in (self.last if part is None else part)})
        return self._ends[part]
