"""Sizes of buffers, and the work of a whole function: operations and bytes."""

import functools
import math
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from ...ir import ITEM_BYTES


@functools.lru_cache(maxsize=256)  # asked for each tiling
def shape_of(buffer: tirx.Var) -> tuple[int, ...]:
    """The static shape of a buffer or parameter."""
    return tuple(int(extent) for extent in buffer.shape)


@functools.lru_cache(maxsize=256)  # asked for each tiling
def nbytes_of(buffer: tirx.Var) -> int:
    """Size of a buffer or parameter in bytes."""
    return math.prod(shape_of(buffer)) * ITEM_BYTES[str(buffer.dtype)]


GUESSED_ROUNDS = 8
"""Rounds of a loop of which only the data know how many it has. TVM counts as many as an integer has values."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a function does in all.

    Parameters
    ----------
    flops : float
        Operations, as TVM counts them; 0 for a mere copy.
    nbytes : int
        Bytes of all its parameters, each read or written once.
    largest : int
        Bytes of its largest parameter.
    """

    flops: float
    nbytes: int
    largest: int

    @staticmethod
    @functools.lru_cache(maxsize=64)  # asked for each tiling
    def of(func: tirx.PrimFunc) -> "Work":
        """Count the work of an unscheduled function."""
        sizes = [nbytes_of(param) for param in func.params]
        known = tvm_ffi.structural_map(func.body, [(tirx.For, _of_known_rounds)], order="post")
        flops = s_tir.analysis.estimate_tir_flops(tvm.IRModule({"main": func.with_body(known)}))
        return Work(float(flops), sum(sizes), max(sizes))


def _of_known_rounds(loop: tirx.For) -> tirx.For:
    if isinstance(loop.extent, tirx.IntImm):
        return loop
    rounds = tirx.IntImm(loop.loop_var.ty.dtype, GUESSED_ROUNDS)
    return tirx.For(loop.loop_var, loop.min, rounds, loop.kind, loop.body)
