"""Accuracy of the cost model: predicted against measured makespans, policy by policy, on this machine's CPU."""

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

MIN_RATIO, MIN_SHARE = 1.1, 0.75
"""Two plans differ if one takes at least `MIN_RATIO` times as long as the other in `MIN_SHARE` of the rounds."""


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
        Measured: the median of each round. Within a round all plans ran under the same load.
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
    configurations: Iterable[tuple[str, str]],
    repeat: int,
    progress: Callable[[str], None] = lambda message: None,
    rounds: int = ROUNDS,
) -> list[Prediction]:
    """Plan a model in several configurations, and time the plans that differ, interleaved.

    Parameters
    ----------
    variants : Variants
        Of this machine's CPU.
    inputs : sequence of numpy.ndarray
    configurations : iterable of (str, str)
        Policies, each with its sync.
    repeat : int
        Runs of each.
    progress : callable
        Gets a message before each step.
    rounds : int
        Least number of rounds; the slower half of them does not count.

    Raises
    ------
    ModelError
        Results differ: nothing was timed.
    """
    plans: dict[tuple[object, ...], tuple[str, str, tuple[RProgram, ...]]] = {}
    for policy, sync in configurations:
        programs = variants.plan(policy, sync)
        plans.setdefault(tuple((p.kernels, p.lanes) for p in programs), (policy, sync, programs))
    runners = {f"{policy} {sync}": variants.runner(policy, sync) for policy, sync, _ in plans.values()}
    first, sync, _ = next(iter(plans.values()))
    runners["profile"], record = variants.stamped_runner(first, sync)
    with collect_stamps() as stamps:
        found = race(runners, inputs, repeat, progress, rounds)
    cost = make_profile(record, stamps).cost()
    return [
        Prediction(
            policy,
            sync,
            sum(p.makespan_us for p in programs),
            sum(cost.launch_us + simulate(p, cost).makespan_us for p in programs),
            tuple(ms * 1e3 for ms in found[f"{policy} {sync}"].medians),
        )
        for policy, sync, programs in plans.values()
    ]


def relative_deviation(predicted_us: float, measured_us: float) -> float:
    """Predicted over measured time, less 1; negative where the prediction is too short."""
    return predicted_us / measured_us - 1.0


def count_ordered_pairs(plans: Sequence[tuple[float, Sequence[float]]]) -> tuple[int, int]:
    """Count the pairs of plans that differ and are predicted in the right order, and all pairs that differ.

    Parameters
    ----------
    plans : sequence of (float, sequence of float)
        For each plan of a model its predicted time, and its measured times round by round.
    """
    right = pairs = 0
    for (one_us, one), (other_us, other) in permutations(plans, 2):
        slower = sum(a > MIN_RATIO * b for a, b in zip(one, other, strict=True))
        if slower >= MIN_SHARE * len(one):
            pairs += 1
            right += one_us > other_us
    return right, pairs
