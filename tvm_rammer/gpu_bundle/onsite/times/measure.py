"""Interleaved timing, so that a change of clocks affects all contenders alike."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

BATCH_US = 4000.0
"""Length of a batch of back-to-back runs, about."""

MAX_BATCH, MAX_WAITED = 2000, 20
WAITED_US = 4000.0
"""Time in a round of the runs that are waited for one by one, about; at most `MAX_WAITED` of them."""

WARM_UP_US = 100_000.0
"""Least time of the back-to-back runs of each contender before anything is timed."""


class Contender(Protocol):
    """Something to time."""

    def batch_us(self, runs: int) -> float:
        """Time of so many back-to-back runs on the GPU, in microseconds."""

    def latencies_us(self, runs: int) -> list[float]:
        """Time of each of so many runs that are waited for, in wall-clock time."""


@dataclass(slots=True)
class Samples:
    """Microseconds a run: `back_to_back` by GPU events, one value a batch; `waited` in wall-clock time."""

    back_to_back: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Medians and percentiles."""
        return {
            "back_to_back_us": statistics.median(self.back_to_back),
            "back_to_back_p10_us": _percentile(self.back_to_back, 0.1),
            "back_to_back_p90_us": _percentile(self.back_to_back, 0.9),
            "batches": len(self.back_to_back),
            "waited_us": statistics.median(self.waited),
            "waited_p10_us": _percentile(self.waited, 0.1),
            "waited_p90_us": _percentile(self.waited, 0.9),
            "waited_runs": len(self.waited),
        }


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(
    contenders: Mapping[str, Contender],
    seconds: float,
    rounds: int,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[int, dict[str, Samples]]]:
    """Time contenders, interleaved.

    Parameters
    ----------
    contenders : mapping of str to Contender
    seconds : float
        Time for all of it; at least one round is made.
    rounds : int
        Greatest number of rounds.
    clock : callable

    Yields
    ------
    (int, dict of str to Samples)
        After each round, its number and all samples so far.
    """
    end = clock() + seconds
    samples = {name: Samples() for name in contenders}
    sizes = {name: _sizes(contender) for name, contender in contenders.items()}
    names = list(contenders)
    for done in range(rounds):
        # Each round begins with another contender, so that none always follows the same one.
        for name in names[done % max(1, len(names)) :] + names[: done % max(1, len(names))]:
            batch, waited = sizes[name]
            samples[name].back_to_back.append(contenders[name].batch_us(batch) / batch)
            samples[name].waited += contenders[name].latencies_us(waited)
        yield done + 1, samples
        if clock() >= end:
            return


def _sizes(contender: Contender) -> tuple[int, int]:
    """Runs of a batch, and runs that are waited for, after a warm-up."""
    warm = 0.0
    while warm < WARM_UP_US:  # an idle GPU takes a while to raise its clocks
        warm += max(1.0, contender.batch_us(100))
    each = max(0.1, contender.batch_us(10) / 10)
    waited = max(0.1, statistics.median(contender.latencies_us(5)))
    return min(MAX_BATCH, max(3, round(BATCH_US / each))), min(MAX_WAITED, max(3, round(WAITED_US / waited)))
