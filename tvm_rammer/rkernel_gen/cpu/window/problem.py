"""A sliding window as a value: convolutions of any groups, transposed ones, and pools, over NCHW images or NCW rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad

from ...analysis.work import nbytes_of, shape_of

CONFLICT_ELEMENTS = 256
"""Channels at multiples of 1 KB conflict in the first-level cache."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """The operations on each result of the window before it is stored.

    Parameters
    ----------
    axes : tuple of tirx.Var
        n, channel, y, x of the output; no y where it is one-dimensional.
    value : Expr
        The stored value as an expression in these axes; loads of `source` stand for the window's result.
    source : tirx.Buffer
    """

    axes: tuple[tirx.Var, ...]
    value: Expr
    source: tirx.Buffer

    def at(self, index: Sequence[Expr], result: Expr) -> Expr:
        """The value to store at an index of the output."""
        by_axis = dict(zip(self.axes, index, strict=True))

        def load(node: TensorLoad) -> Expr:
            return result if node.source.same_as(self.source) else node

        def axis(var: tirx.Var) -> Expr:
            return by_axis.get(var, var)

        return tvm_ffi.structural_map(self.value, [(TensorLoad, load), (tirx.Var, axis)], order="post")


@dataclass(frozen=True, slots=True)
class Phases:
    """A transposed convolution of stride s is s x s plain windows of stride 1 over the same image.

    The phase (py, px) is the output at rows `s * j + py` and columns `s * i + px`. It needs the taps that are congruent
    modulo s; the k-th of them reads the row `j + (py + shift) // s - k`.

    Parameters
    ----------
    stride, shift : pair of int
    taps : pair of int
        Of all phases together: a phase has its share of them, and where that leaves a rest some have one more.
    rows, columns : int
        Extents of the complete output.
    """

    stride: tuple[int, int]
    shift: tuple[int, int]
    taps: tuple[int, int]
    rows: int
    columns: int

    @property
    def extra(self) -> tuple[int, int]:
        """How many more rows and columns the last phase reads than the first, at the end."""
        (sy, sx), (ay, ax) = self.stride, self.shift
        return (ay + sy - 1) // sy - ay // sy, (ax + sx - 1) // sx - ax // sx

    def offset(self, axis: int, phase: int) -> int:
        """By how many rows (axis 0) or columns (1) a phase reads further along than the first one."""
        stride, shift = self.stride[axis], self.shift[axis]
        return (phase + shift) // stride - shift // stride

    def first_tap(self, axis: int, phase: int) -> int:
        """The first tap of a phase."""
        return (phase + self.shift[axis]) % self.stride[axis]

    def count(self, axis: int, phase: int) -> int:
        """How many taps a phase has."""
        return -(-(self.taps[axis] - self.first_tap(axis, phase)) // self.stride[axis])


@dataclass(frozen=True)
class Window:
    """`out[n, f, y, x]` is the sum, over c, ry, rx, of `data[n, c', y*sy + ry*dy - top, ..] * weight[f, c, ry, rx]`.

    Parameters
    ----------
    data, out : tirx.Buffer
        Parameters of the function.
    weight : tirx.Buffer or None
        None in a pool.
    maximum : bool
        Whether the terms are combined by their maximum instead of their sum.
    batch, groups, filters, channels : int
        Extents; filters and channels are those of one group.
    rows, columns : int
        Extents of the output, or of one phase where it is transposed.
    kernel, stride, dilation, padding : pair of int
        Vertical and horizontal; the padding is that at top and left.
    fill : float
        The value that the image is padded with.
    initial : float
        The value that each sum or maximum begins with.
    epilogue : Epilogue or None
    rank : int
        2 for images; 1 for rows, which are read as images of one row.
    phases : Phases or None
        None except for a transposed convolution.
    """

    data: tirx.Buffer
    weight: tirx.Buffer | None
    out: tirx.Buffer
    maximum: bool
    batch: int
    groups: int
    filters: int
    channels: int
    rows: int
    columns: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    fill: float
    initial: float
    epilogue: Epilogue | None
    rank: int = 2
    phases: Phases | None = None

    @property
    def taps(self) -> int:
        """Terms of one result."""
        return self.channels * math.prod(self.kernel)

    def weight_of(self, func: tirx.PrimFunc) -> int | None:
        """Which parameter of the function is the weight; None in a pool."""
        return next((i for i, p in enumerate(func.params) if self.weight is not None and p.same_as(self.weight)), None)

    def store(self, index: tuple[Expr, Expr, Expr, Expr], value: Expr) -> tirx.Stmt:
        """Store one result, after the epilogue, at its n, filter, y and x."""
        n, f, y, x = index
        place = [n, f, y, x] if self.rank == 2 else [n, f, x]
        return tirx.BufferStore(self.out, self.epilogue.at(place, value) if self.epilogue else value, place)

    @property
    def inside(self) -> bool:
        """Whether no tap reads anything but the image itself."""
        if self.padding != (0, 0) or self.phases is not None:
            return False
        height, width = (1, *shape_of(self.data)[2:])[-2:]
        extents = zip((self.rows, self.columns), self.kernel, self.stride, self.dilation, (height, width), strict=True)
        return all((size - 1) * s + (k - 1) * d < extent for size, k, s, d, extent in extents)

    def without_stride(self) -> "Window":
        """The window over the same padded image that stops at each pixel."""
        return replace(self, stride=(1, 1))

    @cached_property
    def data_bytes(self) -> int:
        """Size of the image."""
        return nbytes_of(self.data)

    @cached_property
    def out_bytes(self) -> int:
        """Size of the output."""
        return nbytes_of(self.out)

    @cached_property
    def conflicting(self) -> bool:
        """Whether channels of the image itself are so far apart that they conflict in the first-level cache."""
        return math.prod(shape_of(self.data)[2:]) % CONFLICT_ELEMENTS == 0

    @cached_property
    def flat(self) -> bool:
        """Whether the image can be read in place, as one long row: 1x1, stride 1, no padding."""
        return self.one_row and self.stride == (1, 1) and shape_of(self.data)[2:] == shape_of(self.out)[2:]

    @cached_property
    def one_row(self) -> bool:
        """Whether the results can be computed as one long row: 1x1 without padding, at any stride."""
        plain = self.kernel == (1, 1) and self.inside
        return plain and shape_of(self.out)[2:] == (self.rows, self.columns)[-self.rank :] and self.flat_epilogue

    @cached_property
    def flat_epilogue(self) -> bool:
        """Whether the epilogue uses y and x only as the last indices of arrays with images of the output's size."""
        if self.epilogue is None:
            return True
        axes, uses, flat_uses = self.epilogue.axes[2:], 0, 0
        size = (self.rows, self.columns)[-self.rank :]

        def var(node: tirx.Var) -> None:
            nonlocal uses
            uses += any(node.same_as(axis) for axis in axes)

        def load(node: TensorLoad) -> None:
            nonlocal flat_uses
            index, shape = list(node.indices)[-self.rank :], shape_of(node.source)
            if len(index) == self.rank and shape[-self.rank :] == size:
                flat_uses += self.rank * all(i.same_as(a) for i, a in zip(index, axes, strict=True))

        tvm_ffi.structural_walk(self.epilogue.value, [(tirx.Var, var), (TensorLoad, load)], order="pre")
        return uses == flat_uses
