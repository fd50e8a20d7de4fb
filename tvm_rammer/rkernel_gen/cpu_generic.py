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
    for target in (1, device.units, 4 * device.units, 16 * device.units):
        try:
            rtasks, scheduled = _apply(func, target, device.vector_bytes // 4)
        except ScheduleError:
            continue
        if rtasks in made:
            continue
        time = cpu_cost.plain_us(work, rtasks, device, recomputed=_flops(scheduled) / max(1.0, work.flops))
        made[rtasks] = ScheduledKernel(RKernel(f"{name}_t{rtasks}", name, rtasks, time), scheduled)
    if 1 not in made:
        made[1] = single_rtask(name, func, device)
    return tuple(made[n] for n in sorted(made))


def single_rtask(name: str, func: tirx.PrimFunc, device: DeviceSpec) -> ScheduledKernel:
    """Make the kernel that does a whole function, as it is, in one rTask."""
    time = cpu_cost.plain_us(cpu_cost.Work.of(func), 1, device)
    return ScheduledKernel(RKernel(f"{name}_t1", name, 1, time), func)


def _apply(func: tirx.PrimFunc, target: int, lanes: int) -> tuple[int, tirx.PrimFunc]:
    """Return the number of rTasks and the scheduled function."""
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    _inline(sch)
    partial = [b for b in blocks_of(sch) if is_reduction(sch, b) and sch.get_consumers(b)]
    partial = [p for p in (_partial(sch, b, lanes) for b in partial) if p is not None]
    rtasks = 0
    for output in outputs_of(sch):
        loop, extent = _cut(sch, output, target)
        if rtasks not in (0, extent):
            raise ScheduleError(f"outputs of unlike shape: {rtasks} and {extent} rTasks")
        rtasks = extent
        sch.parallel(loop)
        for producer in reversed(_producers(sch, output)):
            sch.compute_at(producer, loop)
    for block in partial:
        lane, *others = sch.get_loops(block)[1:]
        if others:
            sch.reorder(*others, lane)
        sch.vectorize(lane)
    for block in blocks_of(sch):
        if _costly(sch, block) and not is_reduction(sch, block) and not has_branch(sch, block):
            _vectorize(sch, block, lanes)
    return rtasks, sch.mod["main"]


def _flops(func: tirx.PrimFunc) -> float:
    """Operations that a scheduled function does, over all rTasks: more than before where these repeat work."""
    return cpu_cost.Work.of(func).flops


def _partial(sch: s_tir.Schedule, block: SBlockRV, lanes: int) -> SBlockRV | None:
    """Let a reduction run in vectors along its last axis, each lane for itself: return the block that does so."""
    axes, loops = sch.get(block).iter_vars, sch.get_loops(block)
    extent = int(axes[-1].dom.extent)
    width = max(d for d in range(1, lanes + 1) if extent % d == 0)
    if width < 4 or len(loops) != len(axes) or not _contiguous(sch.get(block), axes[-1].var):
        return None
    try:
        _, lane = sch.split(loops[-1], [None, width])
        return sch.rfactor(lane, factor_axis=len(sch.get(block).writes[0].region))
    except ScheduleError:
        return None


def _contiguous(block: s_tir.SBlock, axis: tirx.Var) -> bool:
    """Whether an axis is the last index of all that a block reads."""
    return all(len(r.region) > 0 and r.region[-1].min.same_as(axis) for r in block.reads)


def _vectorize(sch: s_tir.Schedule, block: SBlockRV, lanes: int) -> None:
    """Compute vectors along the last loop below the rTask's."""
    loops = sch.get_loops(block)[1:]
    if not loops:
        return
    extent = int(sch.get(loops[-1]).extent)
    width = max(d for d in range(1, lanes + 1) if extent % d == 0)
    if width >= 4:
        _, lane = sch.split(loops[-1], [None, width])
        sch.vectorize(lane)


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
        return sch.add_unit_loop(loops[0] if loops else block), 1
    sch.reorder(*outer)
    return sch.fuse(*outer), count


def _closest_divisor(n: int, target: float) -> int:
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    return min(divisors, key=lambda d: abs(math.log2(d / max(1.0, target))))
