"""From the constructed space of a function to the few kernels that are built (Roller, OSDI 2022, section 3)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..device import DeviceSpec
from ..kernel import ScheduledKernel
from .registered import registered_rules
from .tiling import Function, Rule, Tiling

Measured = Mapping[Tiling, float]
"""Time of one rTask in microseconds, for the tilings that somebody measured."""

MOST = 6
"""Kernels of a function at most."""

TRIES = 3
"""Tilings of a class that are built before the class is given up."""


def rules(device: DeviceSpec) -> tuple[tuple[Rule, ...], ...]:
    """The rules that may apply on a device, in tiers: one is asked only where those before it have no tiling."""
    if device.kind == "cpu":
        from .cpu import CPU_RULES

        *special, generic = CPU_RULES
        return (*registered_rules("cpu"), *special), (generic,)
    from .cuda import CUDA_RULES

    return ((*registered_rules("cuda"), *CUDA_RULES),)


def space(function: Function) -> tuple[Tiling, ...]:
    """All tilings of a function, the one that is predicted to be fastest alone first."""
    units = function.device.units
    for tier in rules(function.device):
        if found := [t for rule in tier for t in rule.tilings(function)]:
            return tuple(sorted(found, key=lambda t: (t.operator_us(units), t.num_rtasks)))
    return ()


def build(function: Function, tiling: Tiling) -> ScheduledKernel | None:
    """The code of a tiling; None where no rule can make it of this function."""
    rule = next((r for tier in rules(function.device) for r in tier if r.name == tiling.rule), None)
    return rule.build(function, dict(tiling.choices)) if rule else None


def choose(function: Function, measured: Measured | None = None) -> tuple[ScheduledKernel, ...]:
    """Build the best tilings of a function, with different numbers of rTasks.

    Tilings whose numbers of rTasks have the same power of two are a class. The best one of each is a candidate, the
    fastest `MOST` and the one of least work are built.

    Parameters
    ----------
    function : Function
    measured : mapping of Tiling to float, optional
        Times of rTasks in microseconds. A measured tiling goes before all others of its class: predictions err by
        more than tilings differ.

    Returns
    -------
    tuple of ScheduledKernel
        Fewest rTasks first. Their time is the measured one where there is one.
    """
    known, units = measured or {}, function.device.units
    timed = [replace(t, rtask_us=known[t]) if t in known else t for t in space(function)]
    ranked = [sorted(c, key=lambda t: (t not in known, t.operator_us(units))) for c in _classes(timed)]
    ranked.sort(key=lambda c: c[0].operator_us(units))
    made = []
    for members in _fast_and_thrifty(ranked):
        kernel = next((k for t in members[:TRIES] if (k := _timed(function, t, known))), None)
        if kernel is not None:
            made.append(kernel)
    return tuple(sorted(made, key=lambda k: k.spec.num_rtasks))


def _classes(tilings: Sequence[Tiling]) -> list[list[Tiling]]:
    found: dict[int, list[Tiling]] = {}
    for tiling in tilings:
        found.setdefault(math.frexp(tiling.num_rtasks)[1], []).append(tiling)
    return list(found.values())


def _fast_and_thrifty(ranked: Sequence[list[Tiling]]) -> list[list[Tiling]]:
    """The first `MOST` classes, the one of least time x rTasks among them."""
    if len(ranked) <= MOST:
        return list(ranked)
    thrifty = min(ranked, key=lambda c: c[0].rtask_us * c[0].num_rtasks)
    fast = [c for c in ranked if c is not thrifty]
    return [*fast[: MOST - 1], thrifty]


def _timed(function: Function, tiling: Tiling, known: Measured) -> ScheduledKernel | None:
    kernel = build(function, tiling)
    if kernel is None:
        return None
    return replace(kernel, spec=replace(kernel.spec, rtask_us=tiling.rtask_us, measured=tiling in known))
