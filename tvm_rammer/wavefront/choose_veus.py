"""How many vEUs a plan is worth: more than one must save more than they risk."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from ..ir import RProgram
from .cost import CostModel

_ROUNDING = 1 + 1e-9
"""Sums of the same times differ by no more where they are added up in another order."""


def choose_veus(
    plan: Callable[[int], tuple[RProgram, ...]], veus: int, cost: CostModel, work_us: float = 0.0
) -> tuple[RProgram, ...]:
    """Plan for 1, 2, 4 ... and all vEUs, and take the plan whose predicted time and risk are least.

    Where an operator is short, the waits of two vEUs cost as much as the second one saves, and beside other processes
    more: whoever waits for a vEU waits for the thread behind it.

    Parameters
    ----------
    plan : callable
        Makes the programs for so many vEUs.
    veus : int
        At most.
    cost : CostModel
    work_us : float
        Of all operators at least, on one vEU: by it plans that cannot win are not made, and programs are found brief.

    Returns
    -------
    tuple of RProgram
        With the fewest vEUs among those that are as good.
    """
    made = cache(plan)

    def is_brief(count: int) -> bool:
        """Whether vEUs beyond the first save less time than waking them takes (`RProgram.brief`).

        First by the least that all work takes: the plan on one vEU is made only where that does not decide.
        """
        most_us = cost.wake_us + spent_us(made(count))
        return cost.launch_us + work_us <= most_us and spent_us(made(1)) <= most_us

    best = veus
    for count in reversed(list(_fewer(veus))):
        # Plans of several vEUs are woken alike. Only beside a plan of one does it matter that a brief one wakes none.
        most_us = priced_us(made(best), cost, brief=count == 1 and is_brief(best)) * _ROUNDING
        if cost.launch_us + work_us / count <= most_us and priced_us(made(count), cost, brief=False) <= most_us:
            best = count
    return tuple(replace(p, brief=len(p.lanes) > 1 and is_brief(best)) for p in made(best))


def spent_us(programs: Iterable[RProgram]) -> float:
    """The predicted time of programs."""
    return sum(program.makespan_us for program in programs)


def priced_us(programs: Sequence[RProgram], cost: CostModel, *, brief: bool) -> float:
    """The predicted time of programs, and what they risk."""
    return spent_us(programs) + sum(cost.risk_us(program, brief=brief) for program in programs)


def _fewer(veus: int) -> Iterator[int]:
    """1, 2, 4 ... below."""
    count = 1
    while count < veus:
        yield count
        count *= 2
