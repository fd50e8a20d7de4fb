"""All rKernels of a function on a CPU."""

from tvm import tirx

from ..device import DeviceSpec
from ..kernel import ScheduledKernel
from .cpu_contraction import ContractionRule
from .cpu_generic import GenericRule
from .cpu_space import spread
from .cpu_window_rule import WindowRule
from .tiling import Function, Rule

CPU_RULES: tuple[Rule, ...] = (ContractionRule(), WindowRule(), GenericRule())
"""The rules for CPUs, those first whose kernels are better where predictions tie."""


def cpu_kernels(
    name: str, func: tirx.PrimFunc, device: DeviceSpec, constants: frozenset[int] = frozenset()
) -> tuple[ScheduledKernel, ...]:
    """Make several tilings of a fused function: the best predicted of some 1, 4 and 16 rTasks a unit.

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
    function = Function(name, func, device, constants)
    *special, generic = CPU_RULES
    found = [t for rule in special for t in rule.tilings(function)] or list(generic.tilings(function))
    rules = {rule.name: rule for rule in CPU_RULES}
    made = [rules[t.rule].build(function, dict(t.choices)) for t in spread(found, device)]
    return tuple(kernel for kernel in made if kernel is not None)
