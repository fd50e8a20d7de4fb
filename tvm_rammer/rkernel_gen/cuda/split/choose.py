"""Which products are split over rTasks: those that are faster by the model in two steps than in one."""

from collections.abc import Mapping, Sequence

from tvm import tirx

from ....device import DeviceSpec
from ....ir import RGraph
from ...construct import space
from ...make_kernels import constant_parameters
from ...tiling import Function
from ..product.gemm import GEMM_RULE
from .cut import Halves, cut_window

WORTH = 0.9
"""Time of both steps relative to that of one, at most: a second operator has waits, rows and code of its own."""


def split_sums(
    graphs: Sequence[RGraph], functions: Mapping[str, tirx.PrimFunc], device: DeviceSpec
) -> dict[str, Halves]:
    """Find the convolutions that are faster if their sums are split over rTasks, as in Stream-K and split-K products.

    A convolution of few pixels and filters has few tiles, and each is a long sum. Teams of threads share the sum
    within an rTask; beyond that rTasks compute partial sums, and a second operator adds them up.

    Parameters
    ----------
    graphs : sequence of RGraph
    functions : mapping of str to tirx.PrimFunc
        Fused and not scheduled, by the names that `ROperator.function` uses.
    device : DeviceSpec
        A GPU.

    Returns
    -------
    dict of str to Halves
        For each function that is worth it the two that take its place. All of a loop stay whole.
    """
    found: dict[str, Halves] = {}
    straight = [graph for graph in graphs if graph.steps == 1]
    looped = {op.function for graph in graphs if graph.steps > 1 for op in graph.operators}
    for name, constants in constant_parameters(straight).items():
        whole = Function(name, functions[name], device, constants)
        cuts = cut_window(whole.func) if name not in looped and GEMM_RULE.find(whole) is not None else []
        times = [(_both_us(whole, halves), n) for n, halves in enumerate(cuts)]
        if times and min(times)[0] <= WORTH * _best_us(whole):
            found[name] = cuts[min(times)[1]]
    return found


def _both_us(whole: Function, halves: Halves) -> float:
    """The partial sums, what it takes to know of them, and their sum."""
    device, constants = whole.device, whole.constants
    parts = frozenset(n for n, p in enumerate(halves.parts_inputs) if p in constants)
    total = frozenset(n + 1 for n, p in enumerate(halves.total_inputs) if p in constants)
    return (
        _best_us(Function(f"{whole.name}_parts", halves.parts, device, parts))
        + device.signal_us
        + _best_us(Function(f"{whole.name}_sum", halves.total, device, total))
    )


def _best_us(function: Function) -> float:
    """The least time of an operator alone on the device."""
    return min((t.operator_us(function.device.units) for t in space(function)), default=float("inf"))
