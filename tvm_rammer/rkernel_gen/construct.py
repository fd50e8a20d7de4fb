"""From the constructed space of a function to the few kernels that are built (Roller, OSDI 2022, section 3)."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tvm.error import InternalError
from tvm.s_tir.schedule import ScheduleError

from .. import debug
from ..device import DeviceSpec
from ..errors import last_line
from ..kernel import ScheduledKernel
from .analysis.claims import false_claim
from .measured import MeasuredTime, code_hash
from .registered import registered_rules
from .tiling import Function, Rule, Tiling

MAX_KERNELS = {"cpu": 4, "cuda": 8}
"""Kernels of a function at most. More would hardly give the scheduler a better choice."""


CLASSES_OF_AN_OCTAVE = {"cpu": 1, "cuda": 2}
"""Size classes from one number of rTasks to its double: on a GPU a kernel that leaves a third of the vEUs to others is
another choice than one that fills them."""

MAX_ATTEMPTS = 3
"""Measured tilings of a size class that are tried until one can be built; then as many predicted ones."""


@dataclass(frozen=True, slots=True)
class _SizeClass:
    """Tilings with about as many rTasks (`CLASSES_OF_AN_OCTAVE`); each sequence has the best tiling first.

    Parameters
    ----------
    measured : sequence of Tiling
        Those with a measured time, which they carry.
    predicted : sequence of Tiling
        All, with their predicted times.
    """

    measured: Sequence[Tiling]
    predicted: Sequence[Tiling]

    @property
    def best(self) -> Tiling:
        """The tiling by which the class is ranked."""
        return (self.measured or self.predicted)[0]


def rules(device: DeviceSpec) -> tuple[tuple[Rule, ...], ...]:
    """The rules for a device, in tiers: a tier is used only where no earlier one yields a kernel."""
    if device.kind == "cpu":
        from .cpu.rules import CPU_RULES

        *special, generic = CPU_RULES
        return (*registered_rules("cpu"), *special), (generic,)
    from .cuda.rules import CUDA_RULES

    return ((*registered_rules("cuda"), *CUDA_RULES),)


def space(function: Function) -> tuple[Tiling, ...]:
    """All tilings of a function in the first tier that has any, ranked by predicted time within a model."""
    return next(_spaces(function), ())


def _spaces(function: Function, dropped: Counter[str] | None = None) -> Iterator[tuple[Tiling, ...]]:
    """The ranked tilings of each tier that has any."""
    units = function.device.units
    for tier in rules(function.device):
        if found := [t for rule in tier for t in tilings_of(rule, function, dropped)]:
            yield tuple(sorted(found, key=lambda t: (t.rank_us(units), t.num_rtasks)))


def build(function: Function, tiling: Tiling, dropped: Counter[str] | None = None) -> ScheduledKernel | None:
    """The code of a tiling; None where no rule can build it for this function, which is counted where TVM refuses."""
    rule = next((r for tier in rules(function.device) for r in tier if r.name == tiling.rule), None)
    if rule is None:
        return None
    try:
        return rule.build(function, dict(tiling.choices))
    except _REFUSALS as error:
        _count_refusal(rule, function, error, dropped)
        return None


_REFUSALS = (InternalError, ScheduleError, ValueError)
"""How TVM refuses a step of a schedule; some functions are so odd that the step breaks a check of TVM's own."""


def tilings_of(rule: Rule, function: Function, dropped: Counter[str] | None = None) -> Sequence[Tiling]:
    """The tilings of a rule; none where TVM refuses to schedule the function, which is counted."""
    try:
        return rule.tilings(function)
    except _REFUSALS as error:
        _count_refusal(rule, function, error, dropped)
        return ()


def _count_refusal(rule: Rule, function: Function, error: Exception, dropped: Counter[str] | None) -> None:
    debug.say(1, f"the rule {rule.name!r} cannot be used for {function.name}: {last_line(error)}")
    if dropped is not None:
        unproven = bool(false_claim(function.func))
        dropped[
            "a block claims what is not proven" if unproven else f"TVM refuses the schedule of the rule {rule.name}"
        ] += 1


def choose(
    function: Function,
    measured: Mapping[Tiling, MeasuredTime] | None = None,
    dropped: Counter[str] | None = None,
) -> tuple[ScheduledKernel, ...]:
    """Build the best tilings of a function, with different numbers of rTasks.

    The best tiling of each size class is a candidate. The fastest candidates are built, `MAX_KERNELS` at most and on a
    CPU of few units fewer, with the most resource-efficient one among them. All come from one tier of rules: the first
    from which any can be built.

    Parameters
    ----------
    function : Function
    measured : mapping of Tiling to MeasuredTime, optional
        From a tuning log. Measured tilings are preferred to all others of their size class, since the error of
        predictions is larger than the difference between tilings; but only while the rule still makes the code that
        was measured.
    dropped : Counter, optional
        Counts tilings that cannot be used, by reason.

    Returns
    -------
    tuple of ScheduledKernel
        In order of their numbers of rTasks; with measured times where there are any.
    """
    counter = Counter[str]() if dropped is None else dropped
    tiers = (_choose_in_tier(tilings, function, measured or {}, counter) for tilings in _spaces(function, counter))
    return next((kernels for kernels in tiers if kernels), ())


def _choose_in_tier(
    tilings: Sequence[Tiling], function: Function, measured: Mapping[Tiling, MeasuredTime], dropped: Counter[str]
) -> tuple[ScheduledKernel, ...]:
    units = function.device.units
    times = {
        t: replace(t, rtask_us=time.alone_us(t, function.device)) for t, time in measured.items() if not time.wrong
    }
    classes = [
        _SizeClass(sorted((times[t] for t in members if t in times), key=lambda t: t.rank_us(units)), members)
        for members in _by_size(tilings, CLASSES_OF_AN_OCTAVE[function.device.kind])
    ]
    classes.sort(key=lambda c: c.best.rank_us(units))
    kernels = []
    for candidates in _fastest_and_most_efficient(classes, _most_kernels(function.device)):
        kernel = _first_measured(function, candidates.measured, measured, dropped)
        kernel = kernel or _first_predicted(function, candidates.predicted, measured, dropped)
        if kernel is not None:
            kernels.append(kernel)
    return tuple(sorted(kernels, key=lambda k: k.spec.num_rtasks))


def _most_kernels(device: DeviceSpec) -> int:
    """Kernels of a function at most, on a device: on a CPU as many as it has units, but no fewer than two.

    Few units have no use for many: with two instead of four on two units none of 12 models of the zoo was predicted to
    take 0.2 % longer.
    """
    most = MAX_KERNELS[device.kind]
    return min(most, max(device.units, 2)) if device.kind == "cpu" else most


def _first_measured(
    function: Function, tilings: Sequence[Tiling], measured: Mapping[Tiling, MeasuredTime], dropped: Counter[str]
) -> ScheduledKernel | None:
    for tiling in tilings[:MAX_ATTEMPTS]:
        kernel = build(function, tiling, dropped)
        if kernel is not None and code_hash(kernel) == measured[tiling].code:
            return replace(kernel, spec=replace(kernel.spec, rtask_us=tiling.rtask_us, measured=True))
        dropped["measured with other code"] += 1
    return None


def _first_predicted(
    function: Function, tilings: Sequence[Tiling], measured: Mapping[Tiling, MeasuredTime], dropped: Counter[str]
) -> ScheduledKernel | None:
    for tiling in tilings[:MAX_ATTEMPTS]:
        kernel = build(function, tiling, dropped)
        if kernel is None:
            dropped["no single kernel within an rTask's limits"] += 1
        elif _is_wrong(kernel, measured.get(tiling)):
            dropped["logged with a wrong result"] += 1
        else:
            return kernel
    return None


def _is_wrong(kernel: ScheduledKernel, known: MeasuredTime | None) -> bool:
    return known is not None and known.wrong and code_hash(kernel) == known.code


def _by_size(tilings: Sequence[Tiling], classes: int) -> list[list[Tiling]]:
    found: dict[int, list[Tiling]] = {}
    for tiling in tilings:
        found.setdefault(math.frexp(tiling.num_rtasks**classes)[1], []).append(tiling)
    return list(found.values())


def _fastest_and_most_efficient(ranked: Sequence[_SizeClass], count: int) -> list[_SizeClass]:
    """The first `count` classes, with the resource-efficient one, of least time x rTasks, among them."""
    if len(ranked) <= count:
        return list(ranked)
    efficient = min(ranked, key=lambda c: c.best.rtask_us * c.best.num_rtasks)
    fastest = [c for c in ranked if c is not efficient]
    return [*fastest[: count - 1], efficient]
