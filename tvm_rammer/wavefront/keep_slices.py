"""Which slices of constants the vEUs of a loop keep in their own memory over all steps.

Each vEU runs the same rTasks in every step, so the weights that these read are the same, too: loaded once ahead of the
loop, they are read from shared memory from then on (persistent RNNs: Diamos et al., ICML 2016). What does not fit is
read from the last-level cache in every step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..device import DeviceSpec
from ..ir import SLICE_ALIGNMENT, Instruction, Lane, RGraph, RKernel, ROperator, RProgram, Run, Slices, align

_FEW = 3
"""A vEU has to have room for so many slices of a kernel that is planned as if they were kept."""


def keep_slices(program: RProgram, device: DeviceSpec) -> RProgram:
    """Let each vEU keep as many slices as its memory holds beside the arena of its rTasks, the largest first.

    Parameters
    ----------
    program : RProgram
        Of several steps; none of its slices is kept.
    device : DeviceSpec

    Returns
    -------
    RProgram
        Runs of which only some rTasks have room for their slices are cut into two. The same program where a device has
        no such memory.
    """
    room = _room(program, device)
    if room <= 0:
        return program
    kernels = [
        kernel if kernel.slices and _is_constant(program.graph, op, kernel.slices) else replace(kernel, slices=None)
        for op, kernel in zip(program.graph.operators, program.kernels, strict=True)
    ]
    return replace(program, lanes=tuple(_keep(lane, kernels, room) for lane in program.lanes))


def as_if_kept(kernels: Mapping[str, Sequence[RKernel]], device: DeviceSpec) -> Mapping[str, Sequence[RKernel]]:
    """The kernels of a loop with their times where all slices are kept: what its steps are planned with.

    A slice is counted as kept if a vEU has room for a few of its size: a larger one may not fit beside others.
    """
    most = device.shared_bytes_of(1) // _FEW

    def as_kept(kernel: RKernel) -> RKernel:
        of = kernel.slices
        return replace(kernel, rtask_us=kernel.rtask_us * of.factor) if of and of.nbytes <= most else kernel

    return {name: tuple(map(as_kept, made)) for name, made in kernels.items()}


def _room(program: RProgram, device: DeviceSpec) -> int:
    """Bytes that each vEU has for slices."""
    arena = align(max((kernel.shared_bytes for kernel in program.kernels), default=0))
    return device.shared_bytes_of(-(-len(program.lanes) // device.units)) - arena


def _is_constant(graph: RGraph, op: ROperator, slices: Slices) -> bool:
    """Whether what is sliced is a constant, and the same in all steps."""
    buffer = op.inputs[slices.parameter]
    same = not op.first or op.first[slices.parameter] == buffer
    return graph.buffers[buffer].kind == "constant" and same and slices.nbytes % SLICE_ALIGNMENT == 0


def _keep(lane: Lane, kernels: Sequence[RKernel], room: int) -> Lane:
    pieces = [piece for i in lane for piece in (_pieces(i, kernels[i.operator]) if isinstance(i, Run) else [i])]
    sizes = {n: of.nbytes for n, i in enumerate(pieces) if isinstance(i, Run) and (of := kernels[i.operator].slices)}
    end, kept = 0, {}
    for n in sorted(sizes, key=lambda n: -sizes[n]):
        run = pieces[n]
        assert isinstance(run, Run)
        fitting = min(run.count, (room - end) // sizes[n])
        if fitting > 0:
            kept[n] = replace(run, count=fitting, kept=end)
            end += fitting * sizes[n]
    made: list[Instruction] = []
    for n, i in enumerate(pieces):
        made += [kept[n], *_rest(i, kept[n].count)] if n in kept and isinstance(i, Run) else [i]
    return tuple(made)


def _pieces(run: Run, kernel: RKernel) -> list[Run]:
    """Runs whose slices are neighbours."""
    if run.step == 1 or not kernel.slices:
        return [run]
    return [Run(run.operator, index, 1) for index in run.indices()]


def _rest(run: Run, done: int) -> list[Run]:
    return [replace(run, start=run.start + done, count=run.count - done)] if run.count > done else []
