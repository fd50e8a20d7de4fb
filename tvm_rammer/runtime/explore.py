"""Choose while running (Astra, ASPLOS 2019): the first calls try plans of nearly equal predicted time.

Astra's enumerator is `alternatives`: static knowledge leaves a few plans, of several policies and kernel choices, whose
predicted times are close. Its wirer is `Exploration`: real calls cycle through them, then the fastest is kept. Every
alternative is a verified plan of the same model, so results are right throughout.
"""

import statistics
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tvm import relax

from ..compilation.record import Compilation
from ..compilation.regions import KernelizedModule, plan_regions
from ..errors import RammerError, ScheduleError
from ..ir import RKernel
from ..tuning.log.lines import TuningLogWarning

TIE_FACTOR = 1.3
"""Plans whose predicted times are within this factor of the best one's are worth a try."""

MAX_ALTERNATIVES = 6
"""Alternatives at most, since each is compiled."""

MIN_CALLS = 3
"""Least calls of an alternative. The first one finds cold caches, and counts only where it is the only one."""

POLICIES = ("wavefront", "list", "ios", "sequential")
"""Policies that are asked for a plan; the one that the user chose comes first."""

Result = TypeVar("Result")


@dataclass(slots=True)
class Alternative:
    """One way to run the model.

    Parameters
    ----------
    label : str
        Its policy and its choice of kernels.
    compilation : Compilation
    executable : relax.VMExecutable
    times_us : list of float
        Of its calls so far.
    """

    label: str
    compilation: Compilation
    executable: relax.VMExecutable
    times_us: list[float] = field(default_factory=list)

    @property
    def median_us(self) -> float:
        """Median time of a call; infinite before the first."""
        counted = self.times_us[1:] or self.times_us
        return statistics.median(counted) if counted else float("inf")


class Exploration:
    """Spends calls on alternatives, one after another, and then stays with the fastest.

    Parameters
    ----------
    alternatives : sequence of Alternative
        The best predicted first; at least one.
    calls : int
        How many calls to spend. Only so many alternatives are tried that each gets `MIN_CALLS` of them.
    finished : callable, optional
        Told of the end, once.
    """

    def __init__(
        self,
        alternatives: Sequence[Alternative],
        calls: int,
        finished: Callable[["Exploration"], None] = lambda exploration: None,
    ) -> None:
        self.alternatives = tuple(alternatives[: max(1, calls // MIN_CALLS)])
        self.calls_left = calls if len(self.alternatives) > 1 else 0
        self._finished = finished
        self._lock = threading.Lock()
        self._begun = Counter[str]()

    @property
    def best(self) -> Alternative:
        """The fastest so far; before all have been tried, the one that is predicted to be."""
        tried = all(a.times_us for a in self.alternatives)
        return min(self.alternatives, key=lambda a: a.median_us) if tried else self.alternatives[0]

    def call(self, run: Callable[[Alternative], tuple[Result, float]]) -> Result:
        """Make one call by the alternative that has had the fewest.

        Parameters
        ----------
        run : callable
            Makes the call; returns its result and its time in microseconds.
        """
        if not self.calls_left:
            return run(self.best)[0]
        with self._lock:
            alternative = min(self.alternatives, key=lambda a: len(a.times_us) + self._begun[a.label])
            self._begun[alternative.label] += 1
        try:
            result, elapsed_us = run(alternative)
        finally:
            with self._lock:
                self._begun[alternative.label] -= 1
        with self._lock:
            alternative.times_us.append(elapsed_us)
            last = self.calls_left == 1
            self.calls_left = max(0, self.calls_left - 1)
        if last:
            self._finish()
        return result

    def _finish(self) -> None:
        """Tell of the end; that what was learnt cannot be kept is no reason to lose a result."""
        try:
            self._finished(self)
        except RammerError as error:
            warnings.warn(f"what the exploration found is not kept: {error}", TuningLogWarning, stacklevel=4)


def plan_alternatives(module: KernelizedModule, record: Compilation) -> list[tuple[str, Compilation]]:
    """Plan the regions in several ways.

    Parameters
    ----------
    module : KernelizedModule
    record : Compilation
        With the user's policy, planned already.

    Returns
    -------
    list of (str, Compilation)
        Labels and plans: the user's first, then others within `TIE_FACTOR` of the best; at most `MAX_ALTERNATIVES`.
    """
    found = {_plan_of(record): (_label(record, "all kernels"), record)}
    for policy in dict.fromkeys((record.policy, *POLICIES)):
        for label, kernels in _kernel_sets(record):
            other = record.for_policy(policy, kernels)
            try:
                if plan_regions(module, other) is not module:  # of this kernel set nothing is left for some function
                    continue
            except ScheduleError:  # a policy may have limits of its own; there are others
                continue
            found.setdefault(_plan_of(other), (_label(other, label), other))
    (first, *others) = found.values()
    limit = TIE_FACTOR * min(_predicted_us(c) for _, c in found.values())
    others = sorted((o for o in others if _predicted_us(o[1]) <= limit), key=lambda o: _predicted_us(o[1]))
    return [first, *others[: MAX_ALTERNATIVES - 1]]


def _label(record: Compilation, kernels: str) -> str:
    return f"policy {record.policy}, {kernels}"


def _predicted_us(record: Compilation) -> float:
    return sum(p.makespan_us for p in record.programs)


def _plan_of(record: Compilation) -> tuple[object, ...]:
    return tuple((p.kernels, p.lanes) for p in record.programs)


def _kernel_sets(record: Compilation) -> Iterator[tuple[str, Mapping[str, tuple[RKernel, ...]]]]:
    """Candidate sets: all kernels; the fastest of each function; those near the fastest that the first plan lacks."""
    units = record.device.units
    yield "all kernels", record.kernels
    yield (
        "fastest kernels",
        {f: (min(made, key=lambda k: _alone_us(k, units)),) for f, made in record.kernels.items() if made},
    )
    chosen = {k for p in record.programs for k in p.kernels}
    rivals = {}
    for function, made in record.kernels.items():
        limit = TIE_FACTOR * min((_alone_us(k, units) for k in made), default=0.0)
        close = tuple(k for k in made if k not in chosen and _alone_us(k, units) <= limit)
        rivals[function] = close or made
    yield "second kernels", rivals


def _alone_us(kernel: RKernel, units: int) -> float:
    return kernel.rtask_us * -(-kernel.num_rtasks // units)
