"""Sizes of buffers, and the work of a whole function: operations and bytes."""

import functools
import math
from dataclasses import dataclass

import tvm
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
        flops = s_tir.analysis.estimate_tir_flops(tvm.IRModule({"main": func}))
        return Work(float(flops), sum(sizes), max(sizes))
