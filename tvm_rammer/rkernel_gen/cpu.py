"""All rKernels of a function on a CPU."""

from dataclasses import replace

from tvm import tirx
from tvm.s_tir.schedule import ScheduleError

from ..device import DeviceSpec
from ..kernel import ScheduledKernel
from .branches import branch_stores
from .cpu_contraction import contraction_kernels
from .cpu_generic import generic_kernels, single_rtask


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
        made = contraction_kernels(name, func, device, constants) or generic_kernels(name, func, device)
    except ScheduleError:  # not written in blocks that a schedule can work on, as a cumulative sum is
        made = (single_rtask(name, func, device),)
    return tuple(replace(kernel, func=branch_stores(kernel.func)) for kernel in made)
