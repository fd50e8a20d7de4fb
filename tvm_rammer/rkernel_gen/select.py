"""Which of a function's kernels the scheduler may choose from: the Pareto set of time and resources."""

from collections.abc import Sequence

from ..ir import RKernel
from ..kernel import ScheduledKernel


def pareto(kernels: Sequence[ScheduledKernel]) -> tuple[ScheduledKernel, ...]:
    """Drop every kernel that is dominated: another one is better or equal in all objectives.

    The objectives are the time of an rTask, the number of rTasks, and the registers, shared memory and threads of an
    rTask. The set contains the fastest kernel for any number of vEUs, and the resource-efficient one, of least
    time x rTasks (Rammer, section 4).

    Parameters
    ----------
    kernels : sequence of ScheduledKernel
        Kernels of one function; of those with equal objectives the first is kept.

    Returns
    -------
    tuple of ScheduledKernel
        In order of their numbers of rTasks.
    """
    kept: list[ScheduledKernel] = []
    for kernel in kernels:
        if not any(_dominates(other.spec, kernel.spec) for other in kept):
            kept = [other for other in kept if not _dominates(kernel.spec, other.spec)]
            kept.append(kernel)
    return tuple(sorted(kept, key=lambda k: (k.spec.num_rtasks, k.spec.rtask_us)))


def _dominates(one: RKernel, other: RKernel) -> bool:
    return all(a <= b for a, b in zip(_objectives(one), _objectives(other), strict=True))


def _objectives(spec: RKernel) -> tuple[float, ...]:
    return (spec.rtask_us, spec.num_rtasks, spec.registers or 0, spec.shared_bytes, spec.threads)
