"""Options of the policies."""

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ScheduleError


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """Options of policies; each reads those that concern it.

    Parameters
    ----------
    r, s : int, optional
        `ios`: at most so many operators a group, and groups a stage (IOS, 4.3). Without them 3 and 8, and no limit in
        parts of the graph that are small enough to try all.
    seed : int
        `search`: plans depend on nothing else that is random.
    budget : int
        `search`: how many plans it may try.
    seconds : float, optional
        `search`: stop earlier, after this time of `clock`. Plans then depend on the machine.
    clock : callable, optional
        Returns seconds, as `time.monotonic` does. The scheduler reads no clock of its own.

    Raises
    ------
    ScheduleError
        A limit below 1, a negative budget, or `seconds` without a `clock`.
    """

    r: int | None = None
    s: int | None = None
    seed: int = 0
    budget: int = 100
    seconds: float | None = None
    clock: Callable[[], float] | None = None

    def __post_init__(self) -> None:
        if any(limit is not None and limit < 1 for limit in (self.r, self.s)):
            raise ScheduleError(f"r is {self.r}, and s {self.s}; give at least 1: a stage has a group of one operator")
        if self.budget < 0:
            raise ScheduleError(f"budget is {self.budget}; give the number of plans that may be tried, 0 for none")
        if self.seconds is not None and self.clock is None:
            raise ScheduleError(f"seconds is {self.seconds}, without a clock; give clock=time.monotonic as well")


DEFAULTS = PolicyOptions()
