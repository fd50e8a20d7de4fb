"""CPU tilings of everything else: the output's outer loops are cut into rTasks.

What comes before the output (padding, the sums of a softmax) moves inside the rTask that needs it. Where
several rTasks need the same value, each computes it: rTasks of one operator are independent (Rammer, 3.1).
"""

import math

import tvm
from tvm import s_tir, tirx
from tvm.s_tir.schedule import LoopRV, SBlockRV, ScheduleError

from ..device import DeviceSpec
from ..ir import RKernel
from ..kernel import ScheduledKernel
from . import cpu_cost
from .anchor import blocks_of, calls, has_branch, is_reduction, outputs_of


def generic_kernels(name: str, func: tirx.PrimFunc, device: DeviceSpec) -> tuple[ScheduledKernel, ...]:
    """Make kernels of any function: some 1, 4 and 16 rTasks a unit, and one single rTask.

    Returns
    -------
    tuple of ScheduledKernel
        At least the single rTask, which any function can be.
    """
    work = cpu_cost.Work.of(func)
    made = {}
    for target in (device.units, 4 * device.units, 16 * device.units):
        try:
            rtasks, recomputes, scheduled = _apply(func, target)
        except ScheduleError:
            continue
        time = cpu_cost.plain_us(work, rtasks, device, recomputed=rtasks if recomputes else 1)
        made[rtasks] = ScheduledKernel(RKernel(f"{name}_t{rtasks}", name, rtasks, time), scheduled)
    if 1 not in made:
        made[1] = single_rtask(name, func, device)
    return tuple(made[n] for n in sorted(made))


def single_rtask(name: str, func: tirx.PrimFunc, device: DeviceSpec) -> ScheduledKernel:
    """Make the kernel that does a whole function, as it is, in one rTask."""
    time = cpu_cost.plain_us(cpu_cost.Work.of(func), 1, device)
    return ScheduledKernel(RKernel(f"{name}_t1", name, 1, time), func)


def _apply(func: tirx.PrimFunc, target: int) -> tuple[int, bool, tirx.PrimFunc]:
    """Return the number of rTasks, whether they repeat work, and the scheduled function."""
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    _inline(sch)
    rtasks, recomputes = 0, False
    for output in outputs_of(sch):
        loop, extent = _cut(sch, output, target)
        if rtasks not in (0, extent):
            raise ScheduleError(f"outputs of unlike shape: {rtasks} and {extent} rTasks")
        rtasks = extent
        sch.parallel(loop)
        for producer in reversed(_producers(sch, output)):
            recomputes = True
            sch.compute_at(producer, loop)
    return rtasks, recomputes, sch.mod["main"]


def _inline(sch: s_tir.Schedule) -> None:
    """Inline blocks that compute no sum and no choice, unless a sum would repeat them."""
    for block in blocks_of(sch):
        consumers = sch.get_consumers(block)
        if not consumers or is_reduction(sch, block) or has_branch(sch, block):
            continue
        if len(consumers) == 1 or not _costly(sch, block):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                continue


def _costly(sch: s_tir.Schedule, block: SBlockRV) -> bool:
    """Whether a block calls a function such as exp."""
    return bool(calls(sch, block))


def _producers(sch: s_tir.Schedule, block: SBlockRV) -> list[SBlockRV]:
    """All blocks that `block` needs, in the order of the program."""
    needed: list[SBlockRV] = []

    def visit(b: SBlockRV) -> None:
        for producer in sch.get_producers(b):
            if not any(sch.get(producer).same_as(sch.get(n)) for n in needed):
                visit(producer)
                needed.append(producer)

    visit(block)
    return [b for b in blocks_of(sch) if any(sch.get(b).same_as(sch.get(n)) for n in needed)]


def _cut(sch: s_tir.Schedule, block: SBlockRV, target: int) -> tuple[LoopRV, int]:
    """Cut the outer spatial loops of a block into about `target` rTasks; return their loop and number."""
    axes = sch.get(block).iter_vars
    loops = [loop for loop, axis in zip(sch.get_loops(block), axes, strict=False) if axis.iter_type == 0]
    outer: list[LoopRV] = []
    count = 1
    for loop in loops:
        extent = int(sch.get(loop).extent)
        parts = _closest_divisor(extent, target / count)
        if parts == extent:
            outer.append(loop)
            count *= extent
            continue
        if parts > 1:
            part, _ = sch.split(loop, [parts, None])
            outer.append(part)
            count *= parts
        break
    if not outer:
        return sch.add_unit_loop(block), 1
    sch.reorder(*outer)
    return sch.fuse(*outer), count


def _closest_divisor(n: int, target: float) -> int:
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    return min(divisors, key=lambda d: abs(math.log2(d / max(1.0, target))))
