"""What operators of quantised numbers are made of: numbers, their products, and the numbers that become of these."""

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np
from onnx import TensorProto

from ...emit import HALVES, Emitter, NodeView

MOST_TERMS = 4096
"""Of a sum whose weights are cut into parts; longer sums are made in float64."""
_EXACT = 2**24
_PART = 16
"""Weights are cut into multiples of this, and the rest."""
_BYTES = (TensorProto.UINT8, TensorProto.INT8)
_BYTE, _SIGN = np.iinfo(np.int8), 128
"""The range of a signed byte; and what makes an unsigned one of it."""
_MOST_TAPS = 16
"""Of a window whose bytes are put side by side."""
_GROUP, _ALIGNED = 4, 16
"""Of how many bytes there is a whole number then; and of how many channels, where bytes of 0 are added for that."""
_MOST_ADDED = 1 / 8
"""Of these, for each channel that there is."""


def _more_channels(channels: int, taps: int) -> int | None:
    """How many channels are added, so that a window has a whole number of groups; None where these are too many."""
    if channels * taps % _GROUP == 0:
        return 0
    added = (-channels % multiple for multiple in (_ALIGNED, _GROUP))
    return next((n for n in added if n <= _MOST_ADDED * channels), None)


class Quantised:
    """Emits the operators around those of a quantised node. Inputs are named by their positions."""

    def __init__(self, node: NodeView, emit: Emitter) -> None:
        self._node, self._emit = node, emit

    def parameter(self, index: int, shape: Sequence[int]) -> str:
        """A scale or zero point that broadcasts: one for each row or channel has this shape."""
        dims = self._node.dims(index)
        if dims is None or len(dims) != 1:
            return self._node.input(index)
        return self._emit.reshape(self._node.input(index), [] if dims == [1] else shape)

    def number(self, index: int, zero: int, shape: Sequence[int] = (-1,)) -> str:
        """An input less its zero point, in floating point."""
        value = self._emit("Cast", self._node.input(index), to=TensorProto.FLOAT)
        if not self._node.input(zero):
            return value
        return self._emit("Sub", value, self._emit("Cast", self.parameter(zero, shape), to=TensorProto.FLOAT))

    def real(self, first: int) -> str:
        """What a value stands for that is followed by its scale and its zero point."""
        return self._emit("Mul", self.number(first, first + 2), self._single(self.parameter(first + 1, (-1,))))

    def scaled(self, value: str, *scales: str) -> str:
        """A product times the scales of its factors."""
        return self._emit("Mul", value, self._single(reduce(partial(self._emit, "Mul"), scales)))

    def _single(self, scale: str) -> str:
        """A scale in float32, in which all is computed: half precision has no room for products of integers."""
        kinds = [self._node.types.get(name) for name in self._node.node.input]
        narrow = any(k is not None and k.elem_type in HALVES for k in kinds)
        return self._emit("Cast", scale, to=TensorProto.FLOAT) if narrow else scale

    def quantise(self, value: str, scale: int, places: Sequence[int] = ()) -> Emitter:
        """Make a value the node's result, by a scale and the zero point after it.

        Parameters
        ----------
        value : str
        scale : int
            The scale's position.
        places : sequence of int
            The shape [N, H, W, F] of the rows and columns of `windows`.
        """
        zero = [self.parameter(scale + 1, ())] if self._node.input(scale + 1) else []
        data = self._node.types.get(self._node.input(0))
        if not zero and data is not None and data.elem_type == TensorProto.INT8:  # without a zero point it is unsigned
            zero = [self._emit.constant(np.array(0, np.int8))]
        made = self._emit("QuantizeLinear", value, self._single(self.parameter(scale, ())), *zero)
        return self.give(self.channels_second(made, places) if places else made)

    def channels_second(self, rows: str, places: Sequence[int]) -> str:
        """Rows and columns of `windows` as images of their shape."""
        return self._emit("Transpose", self._emit.reshape(rows, places), perm=[0, 3, 1, 2])

    def product(self, data: tuple[int, int], weights: tuple[int, int], *, turned: bool = False) -> str:
        """The exact product of bytes with a constant matrix of bytes, as int32; empty where it is not that.

        Of bytes a with the zero point x, signed bytes w with z, and n terms a sum of (a - x) * (w - z) is that of
        a * w, less x times (the sum of w, less n * z), less z times the sum of a. Mostly w - z are signed bytes
        themselves: then they take the place of w, and z is 0.

        Parameters
        ----------
        data, weights : pair of int
            Positions of an input, and of its zero point.
        turned : bool
            Whether the matrix is transposed before.
        """
        node = self._node
        matrix, zero = node.array(weights[0]), node.array(weights[1])
        kind = node.types.get(node.input(data[0]))
        if kind is None or kind.elem_type not in _BYTES or matrix is None or matrix.ndim != 2:
            return ""
        if node.input(weights[1]) and zero is None:
            return ""
        signed = kind.elem_type == TensorProto.INT8
        offset = self._offset(data[1], signed=signed)
        return self.sums(
            self._unsigned(node.input(data[0]), signed=signed), offset, matrix.T if turned else matrix, zero
        )

    def sums(
        self, data: str, offset: str, matrix: np.ndarray, zero: np.ndarray | None,
        more: int = 0, fill: int = 0, row_sums: Callable[[], str] | None = None,
    ) -> str:  # fmt: skip
        """The same of unsigned bytes, their zero point as int32, or none, and numbers.

        Parameters
        ----------
        data, offset : str
        matrix : numpy.ndarray
            Of two axes, or several of which all but the last are those that are summed over.
        zero : numpy.ndarray or None
        more, fill : int
            So many bytes follow those of the last of these axes in the data, which count for nothing; what each is.
        row_sums : callable, optional
            The sums of the data's rows as int32, where there is a cheaper way to them.
        """
        emit = self._emit
        numbers, zeros = matrix.astype(np.int64), np.zeros(1, np.int64)
        if zero is not None:
            zeros = zero.astype(np.int64).ravel()
        around = numbers - zeros
        if _BYTE.min <= around.min(initial=0) and around.max(initial=0) <= _BYTE.max:
            numbers, zeros = around, np.zeros(1, np.int64)
        elif matrix.dtype == np.uint8:
            numbers, zeros = numbers - _SIGN, zeros - _SIGN
        summed, (*outer, _, last) = tuple(range(matrix.ndim - 1)), matrix.shape
        columns = emit.constant((numbers.sum(summed) - math.prod(matrix.shape[:-1]) * zeros).astype(np.int32))
        rows = np.pad(numbers, [*((0, 0) for _ in outer), (0, more), (0, 0)]).reshape(-1, last)
        total = emit("MatMulInteger", data, emit.constant(rows.astype(np.int8)))
        if offset:
            total = emit("Sub", total, emit("Mul", offset, columns))
        if zeros.any():
            sums = row_sums() if row_sums else self._sums_of_bytes(data)
            if more:
                extra = np.array(math.prod(outer) * more * fill, np.int32)
                sums = emit("Sub", sums, emit.constant(extra))
            total = emit("Sub", total, emit("Mul", sums, emit.constant(zeros.astype(np.int32))))
        return total

    def _sums_of_bytes(self, data: str) -> str:
        return self._emit.sums(self._emit("Cast", data, to=TensorProto.INT32), -1)

    def _unsigned(self, value: str, *, signed: bool) -> str:
        """Bytes as unsigned ones, which are larger by 128."""
        emit = self._emit
        if not signed:
            return value
        shifted = emit("Add", emit("Cast", value, to=TensorProto.INT32), emit.constant(np.array(_SIGN, np.int32)))
        return emit("Cast", shifted, to=TensorProto.UINT8)

    def _offset(self, zero: int, *, signed: bool) -> str:
        """The zero point of these bytes as int32; empty where it is 0."""
        emit, shift = self._emit, self._emit.constant(np.array(_SIGN, np.int32)) if signed else ""
        if not self._node.input(zero):
            return shift
        value = emit("Cast", self.parameter(zero, (-1, 1)), to=TensorProto.INT32)
        return emit("Add", value, shift) if shift else value

    def windows(self, data: tuple[int, int], weights: tuple[int, int], bias: str = "") -> tuple[str, list[int]] | None:
        """The exact sums of a convolution of bytes with constant ones, and their shape; None for any other.

        The bytes that a window reads are put side by side, channels last, so that each result is that of a row and a
        column of matrices: the sums are an int32 [N * H * W, F], in the order of the shape [N, H, W, F].

        Parameters
        ----------
        data, weights : pair of int
            Positions of an input, and of its zero point.
        bias : str
            Added, if there is one.
        """
        emit, node = self._emit, self._node
        dims, kernel, zero = node.dims(data[0]), node.array(weights[0]), node.array(weights[1])
        kind, filled = node.types.get(node.input(data[0])), node.array(data[1])
        if kind is None or kind.elem_type not in _BYTES or dims is None or len(dims) != 4 or kernel is None:
            return None
        if filled is not None and filled.size > 1:
            return None
        taps, pads = math.prod(kernel.shape[2:]), node.attribute("pads", [0] * 4)
        plain = node.attribute("group", 1) == 1 and node.attribute("auto_pad", b"NOTSET") in (b"NOTSET", b"VALID")
        known = zero is not None or not node.input(weights[1])
        more = _more_channels(kernel.shape[1], taps)
        if not plain or not known or taps > _MOST_TAPS or more is None:
            return None
        signed = kind.elem_type == TensorProto.INT8
        value = emit("Transpose", self._unsigned(node.input(data[0]), signed=signed), perm=[0, 2, 3, 1])
        fill = (0 if filled is None else int(filled.item())) + (_SIGN if signed else 0)
        if any(pads) or more:
            around = emit.constant(np.array([0, *pads[:2], 0, 0, *pads[2:], more], np.int64))
            value = emit("Pad", value, around, emit.constant(np.array(fill, np.uint8)))
        if any(pads) and node.input(data[1]) and filled is None:  # only the run tells what is around the image
            image = np.pad(np.ones((1, *dims[2:], 1), bool), [(0, 0), *zip(pads[:2], pads[2:], strict=True), (0, 0)])
            if more:  # what is added stays as it is
                image = np.pad(image.repeat(dims[1], 3), [(0, 0)] * 3 + [(0, more)], constant_values=True)
            point = self._unsigned(emit.reshape(node.input(data[1]), []), signed=signed)
            value = emit("Where", emit.constant(image), value, point)
        strides, dilations = node.attribute("strides", [1, 1]), node.attribute("dilations", [1, 1])
        size = [dims[2 + d] + pads[d] + pads[2 + d] for d in (0, 1)]
        count = [(size[d] - (kernel.shape[2 + d] - 1) * dilations[d] - 1) // strides[d] + 1 for d in (0, 1)]
        bounds = []
        for tap in np.ndindex(*kernel.shape[2:]):
            begin = [tap[d] * dilations[d] for d in (0, 1)]
            end = [begin[d] + (count[d] - 1) * strides[d] + 1 for d in (0, 1)]
            bounds.append([emit.constant(np.array(given, np.int64)) for given in (begin, end, [1, 2], strides)])

        def taps_of(image: str) -> list[str]:
            """For each tap what all windows read there."""
            return [image if taps == 1 and strides == [1, 1] else emit("Slice", image, *at) for at in bounds]

        def row_sums() -> str:
            """A pixel's channels are added up once for all windows that it is in."""
            first, *others = taps_of(self._sums_of_bytes(value))
            return emit.reshape(reduce(partial(emit, "Add"), others, first), [-1, 1])

        matrix, offset = kernel.transpose(2, 3, 1, 0), self._offset(data[1], signed=signed)
        rows = emit.reshape(emit.join(taps_of(value), 3), [-1, taps * (kernel.shape[1] + more)])
        total = self.sums(rows, offset, matrix, zero, more, fill, row_sums)
        return emit("Add", total, bias) if bias else total, [dims[0], *count, kernel.shape[0]]

    def give(self, value: str, real: str = "") -> Emitter:
        """Make a value the node's result; `real`: the same in floating point."""
        self._emit.name(value, self._node.output)
        if real:
            self._emit.reals[self._node.output] = real
        return self._emit

    def whole(
        self, product: Callable[[str, str], str], data: str, weights: str, worst: float, terms: int
    ) -> tuple[str, str]:
        """A product of integers with weights, as int32 and as float32.

        Parameters
        ----------
        product : callable
            Of data and weights.
        worst : float
            The largest sum there may be.
        terms : int
            How many are summed up.
        """
        emit = self._emit
        if worst <= _EXACT:
            value = product(data, weights)
            return emit("Cast", value, to=TensorProto.INT32), value
        if terms > MOST_TERMS:
            value = product(*(emit("Cast", part, to=TensorProto.DOUBLE) for part in (data, weights)))
            return emit("Cast", value, to=TensorProto.INT32), emit("Cast", value, to=TensorProto.FLOAT)
        high = emit("Floor", emit("Mul", weights, emit.number(1 / _PART)))
        low = emit("Sub", weights, emit("Mul", high, emit.number(_PART)))
        high, low = product(data, high), product(data, low)
        value = emit("Add", emit("Mul", high, emit.number(_PART)), low)
        high, low = (emit("Cast", part, to=TensorProto.INT32) for part in (high, low))
        return emit("Add", emit("Mul", high, emit.constant(np.array(_PART, np.int32))), low), value
