"""Transposed convolutions as plain ones: by a stride of s, those of a volume are s x s x s ones of the same volume.

The element y of an axis is reached by the taps k that y + padding = s * pixel + k allows: by every s-th, from the phase
(y + padding) mod s on. So each phase is a convolution of stride 1 by its taps, from the last to the first, and the
results of all phases lie between each other.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax, tirx
from tvm.ir import Call

from .stock import stock

MOST_CONVOLUTIONS = 27
"""Of phases with unequal numbers of taps, each of which is one: those of a volume by strides of three."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis of a transposed convolution, whose phases all have the same extent: some elements are cut off.

    Parameters
    ----------
    size, stride, taps, padding, made : int
        Pixels, and elements of the result; `padding` is that of the beginning.
    """

    size: int
    stride: int
    taps: int
    padding: int
    made: int

    @property
    def first(self) -> int:
        """Where the phases begin, in strides."""
        return -((self.stride - 1 - self.padding) // self.stride)

    @property
    def extent(self) -> int:
        """How many elements each phase has."""
        return (self.made - 1 + self.padding) // self.stride - self.first + 1

    @property
    def cut(self) -> int:
        """The elements before the first one that is wanted."""
        return self.padding - self.stride * self.first

    def pads(self, taps: int) -> tuple[int, int]:
        """What a convolution by some taps pads the pixels with, before and behind."""
        return taps - 1 - self.first, self.first + self.extent - self.size

    def taps_of(self, phase: int) -> range:
        """The taps of a phase, from the last to the first."""
        return range(phase, self.taps, self.stride)[::-1]


def by_phases(bb: relax.BlockBuilder, call: Call) -> relax.Expr | None:
    """A transposed convolution as convolutions; None where taps have gaps, and where it is better off as it is.

    In images and rows, if it is known how many there are, kernels find the phases by themselves.

    Parameters
    ----------
    bb : relax.BlockBuilder
    call : Call
        Of constant weights, all finite.
    """
    data, made, weight = _sizes(call.args[0].ty), _sizes(call.ty), call.args[1].value.numpy()
    if data is None or made is None or str(call.ty.dtype) not in ("float32", "float64"):
        return None
    spatial, attrs = len(data) - 2, call.attrs
    if spatial < 3 and isinstance(data[0], int):
        return None
    each = zip(data[2:], attrs.strides, weight.shape[2:], list(attrs.padding)[:spatial], made[2:], strict=True)
    axes = [_Axis(*map(int, numbers)) for numbers in each]
    if any(int(d) > 1 for d in attrs.dilation) or any(a.taps < a.stride for a in axes):
        return None
    if min(n for a in axes for phase in range(a.stride) for n in a.pads(len(a.taps_of(phase)))) < 0:
        return None

    def step(value: relax.Expr) -> relax.Expr:
        return bb.emit(stock(bb, bb.normalize(value)))

    groups, phases = int(attrs.groups), list(itertools.product(*(range(a.stride) for a in axes)))
    kernels = [_kernel(weight, groups, [a.taps_of(r) for a, r in zip(axes, phase, strict=True)]) for phase in phases]
    if len({kernel.shape for kernel in kernels}) == 1:  # one convolution, by the filters of all phases
        kernels = [np.stack(kernels, 1).reshape(-1, *kernels[0].shape[1:])]
    if len(kernels) > MOST_CONVOLUTIONS:
        return None
    results = []
    for kernel in kernels:
        ends = [axis.pads(taps) for axis, taps in zip(axes, kernel.shape[2:], strict=True)]
        padding = [begin for begin, _ in ends] + [end for _, end in ends]
        result = _CONVOLUTIONS[spatial](
            call.args[0], relax.const(kernel, str(kernel.dtype)), padding=padding, groups=groups
        )
        results.append(step(result))
    together = results[0] if len(results) == 1 else step(relax.op.stack(results, 2))
    strides, extents = [a.stride for a in axes], [a.extent for a in axes]
    apart = step(relax.op.reshape(together, [*made[:2], *strides, *extents]))
    order = [axis for a in range(2, 2 + spatial) for axis in (a + spatial, a)]
    between = step(relax.op.permute_dims(apart, [0, 1, *order]))
    whole = step(relax.op.reshape(between, [*made[:2], *map(math.prod, zip(extents, strides, strict=True))]))
    cut = [a.cut for a in axes], [a.cut + a.made for a in axes]
    return stock(bb, bb.normalize(relax.op.strided_slice(whole, list(range(2, 2 + spatial)), *cut)))


_CONVOLUTIONS = {1: relax.op.nn.conv1d, 2: relax.op.nn.conv2d, 3: relax.op.nn.conv3d}


def _sizes(ty: relax.TensorType) -> list[Any] | None:
    """The shape of a tensor, all of it but for the first extent known."""
    if not isinstance(ty.shape, relax.ShapeExpr):
        return None
    sizes = [int(size) if isinstance(size, tirx.IntImm) else size for size in ty.shape]
    return sizes if all(isinstance(size, int) for size in sizes[1:]) else None


def _kernel(weight: np.ndarray, groups: int, taps: list[range]) -> np.ndarray:
    """The filters [filters, channels, taps] of a phase, from those of the transposed one [channels, filters, taps]."""
    channels, filters, *sizes = (chosen := weight[np.ix_(*map(range, weight.shape[:2]), *taps)]).shape
    grouped = chosen.reshape(groups, channels // groups, filters, *sizes).swapaxes(1, 2)
    return np.ascontiguousarray(grouped.reshape(groups * filters, channels // groups, *sizes))
