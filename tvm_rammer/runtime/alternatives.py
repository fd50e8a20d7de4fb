"""Plans of nearly equal predicted time: what an exploration tries (Astra's enumerator)."""

from collections.abc import Iterator, Mapping

from ..compilation.record import Compilation
from ..compilation.regions import KernelizedModule, plan_regions
from ..errors import ScheduleError
from ..ir import RKernel

TIE_FACTOR = 1.3
"""Plans whose predicted times are within this factor of the best one's are worth a try."""

MAX_ALTERNATIVES = 6
"""Alternatives at most, since each is compiled."""

POLICIES = ("wavefront", "list", "ios", "sequential")
"""Policies that are asked for a plan; the one that the user chose comes first."""


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
