"""All rKernels of a function on a CPU."""

from dataclasses import replace

from tvm import tirx
from tvm.s_tir.schedule import ScheduleError

from ..device import DeviceSpec
from ..kernel import ScheduledKernel
from .branches import branch_stores
from .cpu_contraction import contraction_kernels
from .cpu_generic import generic_kernels, single_rtask
from .cpu_math import vector_math
from .cpu_window_kernels import window_kernels


def cpu_kernels(
    name: str, func: tirx.PrimFunc, device: DeviceSpec, constants: frozenset[int] = frozenset()
) -> tuple[ScheduledKernel, ...]:
    """Make several tilings of a fused function.

    Parameters
    ----------
    name : str
        The function's name; the kernels' names start with it.
    func : tirx.PrimFunc
        Fused, not scheduled, of static shapes.
    device : DeviceSpec
        A CPU.
    constants : frozenset of int
        The parameters that are constants wherever the function is called.

    Returns
    -------
    tuple of ScheduledKernel
        At least one; two or more with different numbers of rTasks wherever the output can be cut.
    """
    try:
        made = _constructed(name, func, device, constants) or generic_kernels(name, func, device)
    except ScheduleError:  # not written in blocks that a schedule can work on, as a cumulative sum is
        made = (single_rtask(name, func, device),)
    return tuple(replace(kernel, func=vector_math(branch_stores(kernel.func))) for kernel in made)


def _constructed(
    name: str, func: tirx.PrimFunc, device: DeviceSpec, constants: frozenset[int]
) -> tuple[ScheduledKernel, ...]:
    """For each number of rTasks the kernel of least predicted time, of the rules with a register tile."""
    made: dict[int, ScheduledKernel] = {}
    for rule in (contraction_kernels, window_kernels):
        for kernel in rule(name, func, device, constants):
            rival = made.get(kernel.spec.num_rtasks)
            if rival is None or kernel.spec.rtask_us < rival.spec.rtask_us:
                made[kernel.spec.num_rtasks] = kernel
    return tuple(made[n] for n in sorted(made))
