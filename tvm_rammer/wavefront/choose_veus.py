"""How many vEUs a plan is worth: more than one must save more than they risk."""

from collections.abc import Callable, Iterable, Iterator

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
        Of all operators at least, on one vEU: plans that cannot win are not made.

    Returns
    -------
    tuple of RProgram
        With the fewest vEUs among those that are as good.
    """
    best = plan(veus)
    for count in reversed(list(_fewer(veus))):
        price_us = priced_us(best, cost) * _ROUNDING
        if cost.launch_us + work_us / count <= price_us and priced_us(fewer := plan(count), cost) <= price_us:
            best = fewer
    return best


def priced_us(programs: Iterable[RProgram], cost: CostModel) -> float:
    """The predicted time of programs, and what they risk."""
    return sum(program.makespan_us + cost.risk_us(program) for program in programs)


def _fewer(veus: int) -> Iterator[int]:
    """1, 2, 4 ... below."""
    count = 1
    while count < veus:
        yield count
        count *= 2
