"""Slices of constants that a vEU keeps in shared memory over all steps: what is copied there ahead of the first row.

They are in the table `begin`, behind the beginnings of the lanes' rows:

    begin[c + v] .. begin[c + v + 1]    the copies of lane v, as places in `begin`; c is the number of lanes, plus one
    begin[copy]                         where its bytes are in the constants, in vectors of 16 bytes; where they go in
                                        shared memory, likewise; how many they are
"""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from ...errors import CodegenError
from ...ir import ITEM_BYTES, SLICE_ALIGNMENT, RProgram, Run, Slices
from ...kernel import Pack
from ..arrays import item_bytes
from ..layout import Layout
from . import sync

_WORDS = 3
"""Of a copy."""


def build_copies(
    program: RProgram,
    layout: Layout,
    packs: Sequence[Mapping[int, Pack]],
    kept_at: int,
) -> np.ndarray:
    """What the lanes of a program copy.

    Parameters
    ----------
    program : RProgram
    layout : Layout
    packs : sequence of mapping
        For each operator, how its kernel wants its constant parameters laid out.
    kept_at : int
        Byte of shared memory at which kept slices begin.

    Returns
    -------
    numpy.ndarray
        int32, what comes behind the beginnings of rows; empty where no lane keeps anything.

    Raises
    ------
    CodegenError
        A packed constant is not as large as its slices together.
    """
    if not program.kept_bytes:
        return np.zeros(0, np.int32)
    copies: list[list[list[int]]] = []
    for lane in program.lanes:
        copies.append([])
        for run in lane:
            if isinstance(run, Run) and run.kept is not None:
                slices = _slices_of(program, run.operator, packs[run.operator])
                address = layout.addresses[run.operator][slices.parameter]
                nbytes = address.offset + run.start * slices.nbytes, kept_at + run.kept, run.count * slices.nbytes
                copies[-1].append([n // SLICE_ALIGNMENT for n in nbytes])
    first = 2 * (len(program.lanes) + 1)
    places = [first + _WORDS * n for n in accumulate(map(len, copies), initial=0)]
    return np.array([*places, *(word for lane in copies for copy in lane for word in copy)], np.int32)


def _slices_of(program: RProgram, operator: int, packs: Mapping[int, Pack]) -> Slices:
    """The slices of an operator's kernel, which together are the packed constant."""
    kernel, op = program.kernels[operator], program.graph.operators[operator]
    assert kernel.slices is not None
    buffer = program.graph.buffers[op.inputs[kernel.slices.parameter]]
    pack = packs.get(kernel.slices.parameter)
    nbytes = math.prod(pack.shape) * ITEM_BYTES[buffer.dtype] if pack else buffer.nbytes
    if kernel.slices.nbytes * kernel.num_rtasks != nbytes:
        raise CodegenError(
            f"{program.name} keeps slices of {buffer.name!r} for {op.name!r}: {kernel.num_rtasks} of "
            f"{kernel.slices.nbytes} bytes, but it has {nbytes} where it is packed: correct the RKernel"
        )
    return kernel.slices


def copy_slices(
    begin: tirx.Buffer, constants: tirx.Buffer, arena: Mapping[str, tirx.Buffer], veu: tirx.Var, lanes: int
) -> None:
    """Add the copies of a lane to the kernel, ahead of its first row.

    Parameters
    ----------
    begin : Buffer
        The table.
    constants : Buffer
        All constants, as elements of any type.
    arena : mapping of str to Buffer
        Shared memory as each type that it is declared as.
    veu : Var
    lanes : int
    """
    dtype, shared = next(iter(arena.items()))
    first = IRBuilder.name("first_copy", T.bind(begin[lanes + 1 + veu]))
    with T.serial(0, tirx.truncdiv(begin[lanes + 2 + veu] - first, _WORDS)) as n:
        source, target, vectors = (begin[first + n * _WORDS + i] for i in range(_WORDS))
        to = T.address_of(shared[target * (SLICE_ALIGNMENT // item_bytes(dtype))])
        at = source * (SLICE_ALIGNMENT // item_bytes(str(constants.dtype)))
        T.evaluate(sync.keep(T.address_of(constants[at]), to, vectors))
