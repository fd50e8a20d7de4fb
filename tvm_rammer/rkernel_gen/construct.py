"""From the constructed space of a function to the few kernels that are built (Roller, OSDI 2022, section 3)."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..device import DeviceSpec
from ..kernel import ScheduledKernel
from .measured import MeasuredTime, code_hash
from .registered import registered_rules
from .tiling import Function, Rule, Tiling

MOST = {"cpu": 4, "cuda": 6}
"""Kernels of a function at most; few vEUs are well filled by few kinds."""

TRIES = 3
"""Measured tilings of a class that are built until one fits; and then, of those that are only predicted, too."""

_Class = tuple[Sequence[Tiling], Sequence[Tiling], Sequence[Tiling]]
"""A class of tilings by which it is ranked, those measured, and all as predicted; each best first."""


def rules(device: DeviceSpec) -> tuple[tuple[Rule, ...], ...]:
    """The rules that may apply on a device, in tiers: one is asked only where those before it have no tiling."""
    if device.kind == "cpu":
        from .cpu.rules import CPU_RULES

        *special, generic = CPU_RULES
        return (*registered_rules("cpu"), *special), (generic,)
    from .cuda.rules import CUDA_RULES

    return ((*registered_rules("cuda"), *CUDA_RULES),)


def space(function: Function) -> tuple[Tiling, ...]:
    """All tilings of a function, the one that is predicted to be fastest first."""
    return next(_spaces(function), ())


def _spaces(function: Function) -> Iterator[tuple[Tiling, ...]]:
    """The tilings of each tier that has some."""
    units = function.device.units
    for tier in rules(function.device):
        if found := [t for rule in tier for t in rule.tilings(function)]:
            yield tuple(sorted(found, key=lambda t: (t.rank_us(units), t.num_rtasks)))


def build(function: Function, tiling: Tiling) -> ScheduledKernel | None:
    """The code of a tiling; None where no rule can make it of this function."""
    rule = next((r for tier in rules(function.device) for r in tier if r.name == tiling.rule), None)
    return rule.build(function, dict(tiling.choices)) if rule else None


def choose(
    function: Function,
    measured: Mapping[Tiling, MeasuredTime] | None = None,
    dropped: Counter[str] | None = None,
) -> tuple[ScheduledKernel, ...]:
    """Build the best tilings of a function, with different numbers of rTasks.

    Tilings whose numbers of rTasks have the same power of two are a class. The best one of each is a candidate, the
    fastest `MOST` and the one of least work are built. All are of one tier of rules: the first by which any can be.

    Parameters
    ----------
    function : Function
    measured : mapping of Tiling to MeasuredTime, optional
        What a log knows. A measured tiling goes before all others of its class, since predictions err by more than
        tilings differ; but only while the rule still makes the code that was measured.
    dropped : Counter, optional
        What was built and cannot be used is counted here, by reason.

    Returns
    -------
    tuple of ScheduledKernel
        Fewest rTasks first. Their time is the measured one where there is one.
    """
    lost = Counter[str]() if dropped is None else dropped
    made = (_choose_of(tilings, function, measured or {}, lost) for tilings in _spaces(function))
    return next((kernels for kernels in made if kernels), ())


def _choose_of(
    tilings: Sequence[Tiling], function: Function, measured: Mapping[Tiling, MeasuredTime], dropped: Counter[str]
) -> tuple[ScheduledKernel, ...]:
    units = function.device.units
    times = {t: replace(t, rtask_us=time.alone_us(t, function.device)) for t, time in measured.items()}
    classes = []
    for members in _classes(tilings):
        known = sorted((times[t] for t in members if t in times), key=lambda t: t.rank_us(units))
        classes.append((known or members, known, members))
    classes.sort(key=lambda c: c[0][0].rank_us(units))
    made = []
    for _, known, members in _fast_and_thrifty(classes, MOST[function.device.kind]):
        kernel = _first_measured(function, known, measured, dropped) or _first_built(function, members, dropped)
        if kernel is not None:
            made.append(kernel)
    return tuple(sorted(made, key=lambda k: k.spec.num_rtasks))


def _first_measured(
    function: Function, tilings: Sequence[Tiling], measured: Mapping[Tiling, MeasuredTime], dropped: Counter[str]
) -> ScheduledKernel | None:
    for tiling in tilings[:TRIES]:
        kernel = build(function, tiling)
        if kernel is not None and code_hash(kernel) == measured[tiling].code:
            return replace(kernel, spec=replace(kernel.spec, rtask_us=tiling.rtask_us, measured=True))
        dropped["measured with other code"] += 1
    return None


def _first_built(function: Function, tilings: Sequence[Tiling], dropped: Counter[str]) -> ScheduledKernel | None:
    for tiling in tilings[:TRIES]:
        kernel = build(function, tiling)
        if kernel is not None:
            return kernel
        dropped["no single kernel within an rTask's limits"] += 1
    return None


def _classes(tilings: Sequence[Tiling]) -> list[list[Tiling]]:
    found: dict[int, list[Tiling]] = {}
    for tiling in tilings:
        found.setdefault(math.frexp(tiling.num_rtasks)[1], []).append(tiling)
    return list(found.values())


def _fast_and_thrifty(ranked: Sequence[_Class], most: int) -> list[_Class]:
    """The first `most` classes, the one of least time x rTasks among them."""
    if len(ranked) <= most:
        return list(ranked)
    thrifty = min(ranked, key=lambda c: c[0][0].rtask_us * c[0][0].num_rtasks)
    fast = [c for c in ranked if c is not thrifty]
    return [*fast[: most - 1], thrifty]
