"""What the cost model is worth: predicted makespans against measured ones, policy by policy, on this machine's CPU."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..persistent_codegen import collect_stamps
from ..profiler import make_profile
from ..race import ROUNDS, race
from ..wavefront import simulate
from .variants import Variants

APART = 1.1
"""Two policies are told apart where the slower one measures so many times the faster one."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One model planned by one policy.

    Parameters
    ----------
    policy, sync : str
    predicted_us : float
        Of a whole call, launches included: with the times that construction predicts, or a tuning log knows.
    profiled_us : float
        The same prediction with times of rTasks that were measured in runs of the first plan.
    measured_us : float
    """

    policy: str
    sync: str
    predicted_us: float
    profiled_us: float
    measured_us: float


def predict_and_measure(
    variants: Variants,
    inputs: Sequence[np.ndarray],
    ways: Iterable[tuple[str, str]],
    repeat: int,
    progress: Callable[[str], None] = lambda message: None,
    rounds: int = ROUNDS,
) -> list[Prediction]:
    """Plan a model in several ways, and let the plans that differ run in turns.

    Parameters
    ----------
    variants : Variants
        Of this machine's CPU.
    inputs : sequence of numpy.ndarray
    ways : iterable of (str, str)
        Policies, each with its sync.
    repeat : int
        Runs of each.
    progress : callable
        Is told what happens next.
    rounds : int
        Turns of each, at least; the slower half of them does not count.

    Raises
    ------
    ModelError
        Results differ: nothing was timed.
    """
    plans = {}
    for policy, sync in ways:
        programs = variants.plan(policy, sync)
        plans.setdefault(tuple((p.kernels, p.lanes) for p in programs), (policy, sync, programs))
    runners = {f"{policy} {sync}": variants.runner(policy, sync) for policy, sync, _ in plans.values()}
    first, sync, _ = next(iter(plans.values()))
    runners["profile"], record = variants.stamped_runner(first, sync)
    with collect_stamps() as stamps:
        found = race(runners, inputs, repeat, progress, rounds)
    prices = make_profile(record, stamps).cost()
    return [
        Prediction(
            policy,
            sync,
            sum(p.makespan_us for p in programs),
            sum(prices.launch_us + simulate(p, prices).makespan_us for p in programs),
            statistics.median(found[f"{policy} {sync}"].times) * 1e3,
        )
        for policy, sync, programs in plans.values()
    ]


def off_by(predicted_us: float, measured_us: float) -> float:
    """How far a prediction is off, as a part of the measured time; negative where it is too short."""
    return predicted_us / measured_us - 1.0


def order_right(pairs_us: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """Among the pairs of plans that are measured to be `APART`: how many are predicted in the right order, and all.

    Parameters
    ----------
    pairs_us : sequence of (float, float)
        For each plan of a model its predicted and its measured time.
    """
    right = pairs = 0
    for one, other in combinations(pairs_us, 2):
        slow, fast = sorted((one, other), key=lambda plan: -plan[1])
        if slow[1] > APART * fast[1]:
            pairs += 1
            right += slow[0] > fast[0]
    return right, pairs
