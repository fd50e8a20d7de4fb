"""Which of a function's kernels the scheduler gets to see: the Pareto set of time and resources."""

from collections.abc import Sequence

from ..ir import RKernel
from ..kernel import ScheduledKernel


def pareto(kernels: Sequence[ScheduledKernel], units: int) -> tuple[ScheduledKernel, ...]:
    """Drop every kernel that another one beats or equals in all respects.

    The respects are the time of the operator alone, the number of rTasks, and the registers, shared memory and
    threads of an rTask. The fastest kernel and the one of least time x rTasks (Rammer, section 4) both survive.

    Parameters
    ----------
    kernels : sequence of ScheduledKernel
        Of one function.
    units : int
        vEUs that an operator alone would have.

    Returns
    -------
    tuple of ScheduledKernel
        Fewest rTasks first.
    """
    # Of kernels that are equal in all respects the first stays.
    kept: list[ScheduledKernel] = []
    for kernel in kernels:
        mine = _respects(kernel.spec, units)
        if any(_beats(_respects(other.spec, units), mine) for other in kept):
            continue
        kept = [other for other in kept if not _beats(mine, _respects(other.spec, units))]
        kept.append(kernel)
    return tuple(sorted(kept, key=lambda k: (k.spec.num_rtasks, k.spec.rtask_us)))


def _respects(spec: RKernel, units: int) -> tuple[float, ...]:
    alone_us = spec.rtask_us * -(-spec.num_rtasks // units)
    return (alone_us, spec.work_us, spec.num_rtasks, spec.registers or 0, spec.shared_bytes, spec.threads)


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))
