"""Rammer's interplay of inter- and intra-operator scheduling (OSDI 2020, 5.5): each without the other, and both."""

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..benchmark.race import race
from ..device import DeviceSpec
from ..ir import RKernel, RProgram
from .variants import Variants

Kernels = Mapping[str, tuple[RKernel, ...]]

SEQUENTIAL, CO_SCHEDULED = ("sequential", "global"), ("wavefront", "auto")
"""Policy and sync: operator after operator with barriers between them, or co-scheduled with waits between rTasks."""


@dataclass(frozen=True, slots=True)
class Interplay:
    """Times of one model in the four configurations, in microseconds.

    Parameters
    ----------
    one_by_one_fastest, one_by_one_selected : float
        Operator after operator, each with its fastest kernel, or with the one that co-scheduling selects.
    together_fastest, together_selected : float
        Co-scheduled; the second one is Rammer.
    """

    one_by_one_fastest: float
    one_by_one_selected: float
    together_fastest: float
    together_selected: float


def predict_interplay(variants: Variants) -> Interplay:
    """Plan a model in the four configurations; times are predicted, launches included."""
    return Interplay(*(_makespan_us(variants.plan(*how)) for how in _configurations(variants)))


def measure_interplay(
    variants: Variants, inputs: Sequence[np.ndarray], repeat: int, progress: Callable[[str], None]
) -> Interplay:
    """Compile a model in the four configurations for this machine's CPU, and time them interleaved.

    Raises
    ------
    ModelError
        Results differ: nothing was timed.
    """
    runners = {str(n): variants.runner(*how) for n, how in enumerate(_configurations(variants))}
    found = race(runners, inputs, repeat, progress)
    return Interplay(*(statistics.median(samples.times) * 1e3 for samples in found.values()))


def agreement(variants: Variants) -> float:
    """Share of the operators that use the kernel which most calls of their function use."""
    programs = variants.plan(*CO_SCHEDULED)
    most_common = selected_kernels(programs)
    chosen = [(op.function, k) for p in programs for op, k in zip(p.graph.operators, p.kernels, strict=True)]
    return sum(most_common[function] == (kernel,) for function, kernel in chosen) / len(chosen)


def fastest_kernels(kernels: Kernels, device: DeviceSpec) -> Kernels:
    """For each function the kernel of least time alone on the vDevice; of equal ones that of least work."""

    def alone(kernel: RKernel) -> tuple[float, float]:
        return kernel.rtask_us * -(-kernel.num_rtasks // device.units), kernel.work_us

    return {function: (min(made, key=alone),) for function, made in kernels.items() if made}


def selected_kernels(programs: Sequence[RProgram]) -> Kernels:
    """For each function the kernel that most of its operators have."""
    counts: dict[str, Counter[RKernel]] = {}
    for program in programs:
        for op, kernel in zip(program.graph.operators, program.kernels, strict=True):
            counts.setdefault(op.function, Counter())[kernel] += 1
    return {function: (count.most_common(1)[0][0],) for function, count in counts.items()}


def _configurations(variants: Variants) -> list[tuple[Any, ...]]:
    """Policy, sync and kernels in the order of `Interplay`."""
    fastest = fastest_kernels(variants.record.kernels, variants.record.device)
    selected = selected_kernels(variants.plan(*CO_SCHEDULED))
    return [(*SEQUENTIAL, fastest), (*SEQUENTIAL, selected), (*CO_SCHEDULED, fastest), (*CO_SCHEDULED, None)]


def _makespan_us(programs: Sequence[RProgram]) -> float:
    return sum(program.makespan_us for program in programs)
