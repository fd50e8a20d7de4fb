"""Transposed convolutions of volumes as plain ones: those of a stride s are s x s x s convolutions of the same volume.

The element y of an axis is reached by the taps k that y + padding = s * pixel + k allows: by every s-th, from the phase
(y + padding) mod s on. So each phase is a convolution of stride 1 by its taps, from the last to the first, and the
results of all phases lie between each other.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from tvm import relax
from tvm.ir import Call

from ...bindings import static_shape
from .stock import stock


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
    """A transposed convolution as convolutions; None where it is none of volumes, by constants, without gaps.

    Parameters
    ----------
    bb : relax.BlockBuilder
    call : Call
        Of constant weights, all finite.
    """
    data, made, weight = static_shape(call.args[0].ty), static_shape(call.ty), call.args[1].value.numpy()
    if data is None or made is None or len(data) != 5 or str(call.ty.dtype) not in ("float32", "float64"):
        return None
    attrs = call.attrs
    each = zip(data[2:], attrs.strides, weight.shape[2:], list(attrs.padding)[:3], made[2:], strict=True)
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
    results = []
    for kernel in kernels:
        ends = [axis.pads(taps) for axis, taps in zip(axes, kernel.shape[2:], strict=True)]
        padding = [begin for begin, _ in ends] + [end for _, end in ends]
        result = relax.op.nn.conv3d(call.args[0], relax.const(kernel), padding=padding, groups=groups)
        results.append(step(result))
    together = results[0] if len(results) == 1 else step(relax.op.stack(results, 2))
    strides, extents = [a.stride for a in axes], [a.extent for a in axes]
    apart = step(relax.op.reshape(together, [*made[:2], *strides, *extents]))
    between = step(relax.op.permute_dims(apart, [0, 1, 5, 2, 6, 3, 7, 4]))
    whole = step(relax.op.reshape(between, [*made[:2], *map(math.prod, zip(extents, strides, strict=True))]))
    cut = [a.cut for a in axes], [a.cut + a.made for a in axes]
    return stock(bb, bb.normalize(relax.op.strided_slice(whole, [2, 3, 4], *cut)))


def _kernel(weight: np.ndarray, groups: int, taps: list[range]) -> np.ndarray:
    """The filters [filters, channels, taps] of a phase, from those of the transposed one [channels, filters, taps]."""
    channels, filters, *sizes = (chosen := weight[np.ix_(*map(range, weight.shape[:2]), *taps)]).shape
    grouped = chosen.reshape(groups, channels // groups, filters, *sizes).swapaxes(1, 2)
    return np.ascontiguousarray(grouped.reshape(groups * filters, channels // groups, *sizes))
