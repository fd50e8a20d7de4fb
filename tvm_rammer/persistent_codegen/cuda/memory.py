"""The memory of the persistent kernel: its parameters, views of them as each type, and the arena of a block."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from ...ir import RProgram
from ..arrays import array_bytes, item_bytes, scalar_of
from ..calls import CallSignature
from ..layout import CONSTANTS, FIRST_EXTERNAL, KEPT, WORKSPACE, Layout

CONSTANT_NAMES = ("weights", "begin", "rows", "state")
"""The constants of a program, in the order in which the kernel takes them."""


def declare_parameters(
    program: RProgram, layout: Layout, constants: Sequence[np.ndarray]
) -> tuple[dict[int, tirx.Buffer], dict[str, tirx.Buffer]]:
    """Declare the parameters; return the segments by number, and the tables by name."""
    segments: dict[int, tirx.Buffer] = {}
    plan: dict[str, tirx.Buffer] = {}
    external_buffers = (*layout.inputs, *layout.outputs)

    def tensor(name: str, shape: tuple[int, ...], dtype: str) -> tirx.Buffer:
        return T.arg(name, T.buffer(shape, dtype, layout=None))

    def declare_external(positions: range) -> None:
        for i in positions:
            buffer = program.graph.buffers[external_buffers[i]]
            segments[FIRST_EXTERNAL + i] = tensor(f"segment{i}", buffer.shape, buffer.dtype)

    declare_external(range(len(layout.inputs)))
    for name, array in zip(CONSTANT_NAMES, constants, strict=True):
        plan[name] = tensor(name, array.shape, str(array.dtype))
    declare_external(range(len(layout.inputs), len(external_buffers)))
    segments[WORKSPACE] = tensor("workspace", (layout.workspace_bytes,), "uint8")
    segments[CONSTANTS] = plan.pop("weights")
    return segments, plan


def declare_views(
    segments: Mapping[int, tirx.Buffer], signatures: Sequence[CallSignature], read: Collection[int] = ()
) -> dict[tuple[int, str], tirx.Buffer]:
    """Declare each segment as a flat array of each element type that an rTask function reads or writes there.

    What a vEU keeps is copied from the constants, which are declared as its type, too; and each segment that the
    kernel itself is to `read` as its own type.
    """
    wanted = {
        (CONSTANTS if segment == KEPT else segment, dtype)
        for signature in signatures
        for possible, dtype in zip(signature.segments, signature.function.dtypes, strict=True)
        for segment in possible
    } | {(segment, str(segments[segment].dtype)) for segment in read}
    views = {}
    for number, dtype in sorted(wanted):
        segment = segments[number]
        size = array_bytes(segment) // item_bytes(dtype)
        views[number, dtype] = T.decl_buffer((size,), dtype, data=segment.data, layout=None)
    return views


def declare_arena(signatures: Sequence[CallSignature], shared_bytes: int) -> dict[str, tirx.Buffer]:
    """Allocate the block's dynamic shared memory, declared as each type; vectors only if all are.

    The arena of its rTasks begins there; behind it is what the vEU keeps of constants.
    """
    kept = {dtype for s in signatures for at, dtype in zip(s.segments, s.function.dtypes, strict=True) if at == (KEPT,)}
    dtypes = sorted({dtype for s in signatures for _, dtype in s.function.scratch} | kept)
    if len(dtypes) > 1:
        dtypes = sorted(set(map(scalar_of, dtypes)))
    if not dtypes:
        return {}
    # Where all accesses are of one type TVM retypes an allocation and keeps its extent: as bytes it would grow.
    size = shared_bytes // item_bytes(dtypes[0])
    arena = IRBuilder.name("arena", T.alloc_buffer((size,), dtypes[0], scope="shared.dyn", layout=None))
    return {
        dtype: T.decl_buffer(
            (shared_bytes // item_bytes(dtype),), dtype, data=arena.data, scope="shared.dyn", layout=None
        )
        for dtype in dtypes
    }
