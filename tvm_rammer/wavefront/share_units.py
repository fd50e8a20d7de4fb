"""Plans in which several vEUs share each unit of a GPU: for which kernels there is room, and when they are worth it."""

from collections.abc import Mapping, Sequence

from ..device import DeviceSpec
from ..ir import Copies, RGraph, RKernel, RProgram
from .options import PolicyOptions
from .predict.lower_bound import lower_bound
from .schedule import NO_COPIES, schedule
from .views import place_views

ROW_REGISTERS = 24
"""What a thread of the persistent kernel keeps beside those of an rTask."""

LEAST_GAIN = 0.05
"""Part of the time that sharing must save: what vEUs on a unit take from each other was never measured."""


def schedule_sharing(
    graph: RGraph,
    kernels: Mapping[str, Sequence[RKernel]],
    device: DeviceSpec,
    planned: Sequence[RProgram],
    *,
    blocks: int,
    policy: str = "auto",
    sync: str = "auto",
    options: PolicyOptions | None = None,
    copies: Copies = NO_COPIES,
) -> tuple[RProgram, ...] | None:
    """Plan a graph with several vEUs on each unit, where that is predicted to save time.

    Parameters
    ----------
    graph, kernels, device, sync, options, copies
        As in `schedule`.
    planned : sequence of RProgram
        What it must be faster than.
    blocks : int
        VEUs that share a unit.
    policy : str
        As in `schedule`; for "auto" it is list scheduling, since planning takes longer with more vEUs.

    Returns
    -------
    tuple of RProgram or None
        As `schedule` returns them; None where some function has no kernel that leaves room for so many, or where at
        least `LEAST_GAIN` is not saved.
    """
    used = {op.function for op in graph.operators}
    room = _with_room({name: made for name, made in kernels.items() if name in used}, device, blocks)
    if not all(room.values()):
        return None
    veus = blocks * device.units
    enough_us = (1.0 - LEAST_GAIN) * sum(program.makespan_us for program in planned)
    bound = lower_bound(place_views(graph, copies), room, device, veus=veus)
    if bound.best_us > enough_us:
        return None
    programs = schedule(
        graph, room, device, veus=veus, policy="list" if policy == "auto" else policy, sync=sync, options=options,
        copies=copies,
    )  # fmt: skip
    return programs if sum(program.makespan_us for program in programs) <= enough_us else None


def _with_room(
    kernels: Mapping[str, Sequence[RKernel]], device: DeviceSpec, blocks: int
) -> dict[str, tuple[RKernel, ...]]:
    """The kernels of which a unit holds so many blocks, whichever of them are in one program.

    The persistent kernel has the threads of the largest, and its registers are limited for so many blocks: what a
    kernel needs must be well below the limit, or ptxas spills. Kernels of unknown registers have no room.
    """
    threads = max((kernel.threads for made in kernels.values() for kernel in made), default=1)
    shared = device.shared_bytes_of(blocks)

    def has_room(kernel: RKernel) -> bool:
        if kernel.registers is None or kernel.shared_bytes > shared:
            return False
        needed = kernel.registers + ROW_REGISTERS
        return device.resident_blocks(threads, needed, kernel.shared_bytes) >= blocks

    return {name: tuple(filter(has_room, made)) for name, made in kernels.items()}
