"""From the constructed space of a function to the few kernels that are built (Roller, OSDI 2022, section 3)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..device import DeviceSpec
from ..kernel import ScheduledKernel
from .registered import registered_rules
from .tiling import Function, Rule, Tiling

Measured = Mapping[Tiling, float]
"""Time of one rTask in microseconds, for the tilings that somebody measured."""

TRIES = 3
"""Tilings of a class that are built before the class is given up."""


def rules(device: DeviceSpec) -> tuple[Rule, ...]:
    """The rules that may apply on a device, those registered by hand first."""
    if device.kind == "cpu":
        from .cpu import CPU_RULES

        return (*registered_rules("cpu"), *CPU_RULES)
    from .cuda import CUDA_RULES

    return (*registered_rules("cuda"), *CUDA_RULES)


def space(function: Function) -> tuple[Tiling, ...]:
    """All tilings of a function, the one that is predicted to be fastest alone first."""
    units = function.device.units
    found = [t for rule in rules(function.device) for t in rule.tilings(function)]
    return tuple(sorted(found, key=lambda t: (t.operator_us(units), t.num_rtasks)))


def build(function: Function, tiling: Tiling) -> ScheduledKernel | None:
    """The code of a tiling; None where its rule cannot make it of this function."""
    for rule in rules(function.device):
        if rule.name == tiling.rule:
            return rule.build(function, dict(tiling.choices))
    return None


def choose(function: Function, measured: Measured | None = None) -> Iterator[ScheduledKernel]:
    """Build the best tiling of each class of rTask number; measured times come before predicted ones.

    Parameters
    ----------
    function : Function
    measured : mapping of Tiling to float, optional
        Times of rTasks in microseconds.

    Yields
    ------
    ScheduledKernel
        One a class: as many rTasks as units, four times as many, a quarter, and so on, and a single one. Its time is
        the measured one where there is one.
    """
    known = measured or {}
    timed = [replace(t, rtask_us=known[t]) if t in known else t for t in space(function)]
    for members in _classes(timed, function.device.units):
        # A measured time is worth more than any promise: predictions err by more than tilings differ.
        ranked = sorted(members, key=lambda t: (t not in known, t.operator_us(function.device.units)))
        for tiling in ranked[:TRIES]:
            kernel = build(function, tiling)
            if kernel is not None:
                yield replace(kernel, spec=replace(kernel.spec, rtask_us=tiling.rtask_us, measured=tiling in known))
                break


def _classes(tilings: Sequence[Tiling], units: int) -> list[list[Tiling]]:
    """Tilings with about the same number of rTasks: a factor of two either way; a single rTask by itself."""
    found: dict[int | None, list[Tiling]] = {}
    for tiling in tilings:
        key = None if tiling.num_rtasks == 1 else round(math.log(tiling.num_rtasks / units, 4))
        found.setdefault(key, []).append(tiling)
    return list(found.values())
