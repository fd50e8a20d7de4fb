"""What the cost model is worth: predicted makespans against measured ones, policy by policy, on this machine's CPU."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ..benchmark.race import ROUNDS, race
from ..ir import RProgram
from ..persistent_codegen import collect_stamps
from ..runtime.profiler import make_profile
from ..wavefront import simulate
from .variants import Variants

APART, OFTEN = 1.1, 0.75
"""Two plans are told apart where one takes so many times as long as the other, in this share of the rounds at least."""


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
    rounds_us : tuple of float
        Measured: the median of each round. In the same round all plans met the same neighbours.
    """

    policy: str
    sync: str
    predicted_us: float
    profiled_us: float
    rounds_us: tuple[float, ...]

    @property
    def measured_us(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds_us)


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
    plans: dict[tuple[object, ...], tuple[str, str, tuple[RProgram, ...]]] = {}
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
            tuple(ms * 1e3 for ms in found[f"{policy} {sync}"].medians),
        )
        for policy, sync, programs in plans.values()
    ]


def off_by(predicted_us: float, measured_us: float) -> float:
    """How far a prediction is off, as a part of the measured time; negative where it is too short."""
    return predicted_us / measured_us - 1.0


def order_right(plans: Sequence[tuple[float, Sequence[float]]]) -> tuple[int, int]:
    """Among the pairs of plans that can be told apart: how many are predicted in the right order, and all.

    Parameters
    ----------
    plans : sequence of (float, sequence of float)
        For each plan of a model its predicted time, and its measured times round by round.
    """
    right = pairs = 0
    for (one_us, one), (other_us, other) in permutations(plans, 2):
        slower = sum(a > APART * b for a, b in zip(one, other, strict=True))
        if slower >= OFTEN * len(one):
            pairs += 1
            right += one_us > other_us
    return right, pairs
