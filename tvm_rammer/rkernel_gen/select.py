"""Which of a function's kernels the scheduler gets to see: the Pareto set of time and resources."""

from collections.abc import Sequence

from ..ir import RKernel
from ..kernel import ScheduledKernel


def pareto(kernels: Sequence[ScheduledKernel]) -> tuple[ScheduledKernel, ...]:
    """Drop every kernel that another one beats or equals in all respects.

    The respects are the time of an rTask, the number of rTasks, and the registers, shared memory and threads of an
    rTask. The fastest kernel and the one of least time x rTasks (Rammer, section 4) survive, for any number of vEUs.

    Parameters
    ----------
    kernels : sequence of ScheduledKernel
        Of one function; of those that are equal in all respects the first stays.

    Returns
    -------
    tuple of ScheduledKernel
        Fewest rTasks first.
    """
    kept: list[ScheduledKernel] = []
    for kernel in kernels:
        if not any(_beats(other.spec, kernel.spec) for other in kept):
            kept = [other for other in kept if not _beats(kernel.spec, other.spec)]
            kept.append(kernel)
    return tuple(sorted(kept, key=lambda k: (k.spec.num_rtasks, k.spec.rtask_us)))


def _beats(one: RKernel, other: RKernel) -> bool:
    return all(a <= b for a, b in zip(_respects(one), _respects(other), strict=True))


def _respects(spec: RKernel) -> tuple[float, ...]:
    return (spec.rtask_us, spec.num_rtasks, spec.registers or 0, spec.shared_bytes, spec.threads)
