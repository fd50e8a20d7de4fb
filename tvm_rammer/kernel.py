"""An rKernel with its code: what rkernel_gen passes to persistent_codegen.

`ir.RKernel` describes a kernel to the scheduler, without TVM; `ScheduledKernel` adds TVM's function.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import tirx
from tvm.s_tir.schedule import Trace

from .ir import RKernel

SPREAD = "rammer.spread"
"""Annotation of a loop in a function that is left to stock TVM: its rounds may run beside each other."""


@dataclass(frozen=True, slots=True)
class Pack:
    """How a constant is packed for a kernel, once, at compile time.

    Its two last axes are transformed where there is a matrix for them, or one of its axes is cut into blocks, of which
    the last ones overlap. Then the array is padded with zeros, at its end but for `before`, to shape `padded`, reshaped
    to `split`, and transposed by `axes`.

    Parameters
    ----------
    padded : tuple of int
        Has as many axes as the constant, each at least as long.
    split : tuple of int
        Has as many elements as `padded`.
    axes : tuple of int
        Permutation of the axes of `split`.
    matrix : tuple of tuple of float, optional
        What both of the last axes are multiplied by, in float64.
    before : tuple of int, optional
        Zeros before each axis; none where it is empty.
    blocks : (int, int), optional
        An axis, and the elements of its blocks: as many as `padded` has. Those that would end beyond the axis end where
        it does.
    """

    padded: tuple[int, ...]
    split: tuple[int, ...]
    axes: tuple[int, ...]
    matrix: tuple[tuple[float, ...], ...] | None = None
    before: tuple[int, ...] = ()
    blocks: tuple[int, int] | None = None

    def apply(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the constant as the kernel reads it: contiguous, of shape `self.shape`."""
        if self.matrix is not None:
            matrix = np.array(self.matrix)
            array = (matrix @ array.astype(np.float64) @ matrix.T).astype(array.dtype)
        if self.blocks is not None:
            axis, size = self.blocks
            first = np.minimum(np.arange(0, self.padded[axis], size), array.shape[axis] - size)
            array = array.take(np.add.outer(first, np.arange(size)).reshape(-1), axis)
        before = self.before or (0,) * array.ndim
        widths = [(b, new - old - b) for b, new, old in zip(before, self.padded, array.shape, strict=True)]
        return np.ascontiguousarray(np.pad(array, widths).reshape(self.split).transpose(self.axes))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the packed array."""
        return tuple(self.split[a] for a in self.axes)


@dataclass(frozen=True, slots=True)
class ScheduledKernel:
    """An rKernel with its scheduled function.

    Parameters
    ----------
    spec : RKernel
    func : tirx.PrimFunc
        On a CPU one outermost parallel loop, whose iterations are the rTasks; on a GPU one kernel,
        whose blocks are the rTasks. Parameters as in the operator: its inputs, then its outputs.
    packs : mapping of int to Pack
        For each parameter that is a packed constant.
    trace : Trace or None
        The schedule as instructions that apply to the unscheduled function, packing included, so that stock TVM can
        repeat it; None for code that no schedule made.
    rule : str
        Name of the rule that made the kernel; empty where none did.
    """

    spec: RKernel
    func: tirx.PrimFunc
    packs: Mapping[int, Pack] = field(default_factory=dict)
    trace: Trace | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class RTaskFunction:
    """The device function of a kernel: one call runs one rTask.

    Parameters
    ----------
    name : str
        The kernel's name, or that of the code that several kernels share.
    func : tirx.PrimFunc
        Parameters: a data pointer for each buffer of the operator, in its order; a pointer
        for each scratch array; the rTask index; on a GPU the thread index, then `numbers`.
    dtypes : tuple of str
        Element type behind each buffer pointer.
    scratch : tuple of (int, str)
        Bytes and element type of each scratch array, private to the vEU that runs the rTask.
    threads : int
        Threads that call it together (1 on a CPU).
    numbers : tuple of int
        What tells the kernel's code from that of others with the same function: int32 arguments.
    """

    name: str
    func: tirx.PrimFunc
    dtypes: tuple[str, ...]
    scratch: tuple[tuple[int, str], ...] = ()
    threads: int = 1
    numbers: tuple[int, ...] = ()

    @property
    def scratch_bytes(self) -> int:
        """Size of all its scratch arrays, each aligned."""
        return sum(size for size, _ in self.scratch_offsets())

    def scratch_offsets(self) -> tuple[tuple[int, int], ...]:
        """(aligned size, offset) of each scratch array in the vEU's arena."""
        from .ir import align

        placed, at = [], 0
        for nbytes, _ in self.scratch:
            placed.append((align(nbytes), at))
            at += align(nbytes)
        return tuple(placed)
