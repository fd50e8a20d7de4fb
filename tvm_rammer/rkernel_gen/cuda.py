"""All rKernels of a function on a GPU: one kernel each, whose blocks are the rTasks."""

from tvm import tirx

from .. import debug
from ..device import DeviceSpec
from ..kernel import ScheduledKernel
from .cuda_contraction import GEMM_RULE
from .cuda_elementwise import ELEMENTS_RULE
from .cuda_reduction import SUMS_RULE
from .cuda_rows import ROWS_RULE
from .cuda_window import WINDOW_RULE
from .cuda_wmma import WMMA_RULE
from .tiling import Function, Rule

MAX_KERNELS = 6
"""Tilings of a function at most."""

CUDA_RULES: tuple[Rule, ...] = (WMMA_RULE, SUMS_RULE, GEMM_RULE, WINDOW_RULE, ROWS_RULE, ELEMENTS_RULE)


def cuda_kernels(name: str, func: tirx.PrimFunc, device: DeviceSpec) -> tuple[ScheduledKernel, ...]:
    """Make several tilings of a fused function: the best of each number of rTasks, as predicted.

    Parameters
    ----------
    name : str
        The function's name; the kernels' names start with it.
    func : tirx.PrimFunc
        Fused, not scheduled, of static shapes.
    device : DeviceSpec
        A GPU.

    Returns
    -------
    tuple of ScheduledKernel
        With different numbers of rTasks, fewest first. Empty where no rule makes one kernel of the function, as for
        several outputs that need sums: then the operator stays out of rPrograms (RAMMER_DEBUG=2 names it).
    """
    function = Function(name, func, device)
    ranked = [(t.operator_us(device.units), rule, t) for rule in CUDA_RULES for t in rule.tilings(function)]
    made: dict[int, ScheduledKernel] = {}
    for _, rule, tiling in sorted(ranked, key=lambda one: one[0]):
        if len(made) == MAX_KERNELS:
            break
        if tiling.num_rtasks not in made:
            kernel = rule.build(function, dict(tiling.choices))
            if kernel is not None:
                made[tiling.num_rtasks] = kernel
    if not made:
        debug.say(2, f"{name}: no rule makes one CUDA kernel of it, so it stays out of rPrograms")
    return tuple(made[blocks] for blocks in sorted(made))
