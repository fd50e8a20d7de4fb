"""Which axis of a value holds the rows of a sequence, and whether an operator computes each row by itself.

Row t of a result may depend on row t of what is read, and on what has no rows; then rows that are beyond the end of a
sequence change nothing that is before it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from ....errors import LengthError
from ..check.names import describe
from ..lower.elementwise import BY_ELEMENT

_NORMALISING = {"Softmax": -1, "LogSoftmax": -1, "Hardmax": -1, "LayerNormalization": -1, "RMSNormalization": -1}
"""Operators along the axes from one on, and which that is by default."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node, and what is known of its values.

    Parameters
    ----------
    node : onnx.NodeProto
    shapes : mapping of str to tuple of int
        Of all values, in the model of so many rows.
    axes : mapping of str to int
        Of values that hold rows: the axis. It has as many entries as there are rows, or a multiple, rows outermost.
    rows : int
        How many rows there are.
    constants : mapping of str to numpy.ndarray
        The small ones.
    opset : int
    """

    node: onnx.NodeProto
    shapes: Mapping[str, tuple[int, ...]]
    axes: Mapping[str, int]
    rows: int
    constants: Mapping[str, np.ndarray]
    opset: int

    def attribute(self, name: str, default: object = None) -> object:
        """An attribute, or what it is by default."""
        return next((helper.get_attribute_value(a) for a in self.node.attribute if a.name == name), default)

    def refuse(self, why: str) -> LengthError:
        """The error that says why the node does not go row by row."""
        return LengthError(f"{describe(self.node)} {why}")

    def ints(self, name: str, index: int) -> list[int] | None:
        """A list that is an attribute in some opsets and a constant input in others; None where there is neither."""
        if (given := self.attribute(name)) is not None:
            return [int(n) for n in given] if isinstance(given, Sequence) else [int(str(given))]
        if len(self.node.input) <= index or not self.node.input[index]:
            return None
        if self.node.input[index] not in self.constants:
            raise self.refuse(f"has {name} that are computed")
        return [int(n) for n in np.atleast_1d(self.constants[self.node.input[index]])]

    @property
    def x(self) -> tuple[tuple[int, ...], int]:
        """Shape and axis of the first input, the only one that holds rows."""
        if [name for name in self.node.input if name in self.axes] != [self.node.input[0]]:
            raise self.refuse("reads rows by another input than its first")
        return self.shapes[self.node.input[0]], self.axes[self.node.input[0]]

    def inner_axis(self, axis: int, rank: int, rows: int) -> int:
        """An axis that is not the one of the rows, counted from the first."""
        axis %= rank
        if axis == rows:
            raise self.refuse("works along the sequence")
        return axis


def rows_axis(node: Node) -> int:
    """The axis of the rows in all results of a node, some input of which holds rows.

    Raises
    ------
    LengthError
        It does not compute each row by itself, or it is not known that it does.
    """
    kind = node.node.op_type
    if node.node.domain not in ("", "ai.onnx"):
        raise node.refuse("is an operator whose rows are not known")
    if kind in BY_ELEMENT:
        return _by_element(node)
    if kind in _NORMALISING:
        return _normalising(node)
    if kind.startswith("Reduce") or kind in ("ArgMax", "ArgMin"):
        return _reducing(node)
    if kind not in _RULES:
        raise node.refuse("is no operator that goes row by row")
    return _RULES[kind](node)


def _by_element(node: Node) -> int:
    result = node.shapes[node.node.output[0]]
    read = [name for name in node.node.input if name]
    found = {len(result) - len(node.shapes[name]) + node.axes[name] for name in read if name in node.axes}
    if len(found) > 1:
        raise node.refuse("puts rows beside rows of another axis")
    (axis,) = found
    for name in read:
        own = axis - (len(result) - len(node.shapes[name]))
        if name not in node.axes and own >= 0 and node.shapes[name][own] != 1:
            raise node.refuse(f"reads {name!r}, which has as many entries as there are rows, and is no sequence")
        if name in node.axes and node.shapes[name][own] != result[axis]:
            raise node.refuse("repeats rows")
    return axis


def _normalising(node: Node) -> int:
    shape, axis = node.x
    default = 1 if node.opset < 13 and node.node.op_type in ("Softmax", "LogSoftmax", "Hardmax") else -1
    first = int(str(node.attribute("axis", default))) % len(shape)
    whole = node.opset < 13 or node.node.op_type.endswith("Normalization")
    if first == axis or (whole and first < axis):
        raise node.refuse("works along the sequence")
    return axis


def _reducing(node: Node) -> int:
    shape, axis = node.x
    if node.node.op_type.startswith("Arg"):
        axes: list[int] | None = [int(str(node.attribute("axis", 0)))]
    else:
        axes = node.ints("axes", 1)
    if not axes:
        raise node.refuse("works along the sequence")
    reduced = [node.inner_axis(a, len(shape), axis) for a in axes]
    return axis if node.attribute("keepdims", 1) else axis - sum(a < axis for a in reduced)


def _matmul(node: Node) -> int:
    shape, axis = node.x
    other, result = node.shapes[node.node.input[1]], node.shapes[node.node.output[0]]
    if axis == len(shape) - 1 or len(shape) == 1:
        raise node.refuse("works along the sequence")
    if axis < len(shape) - 2 and len(other) > 2 and other[axis - len(shape)] != 1:
        raise node.refuse("reads matrices, as many as there are rows, that are no sequence")
    return len(result) - len(shape) + axis


def _gemm(node: Node) -> int:
    _, axis = node.x
    bias = node.node.input[2] if len(node.node.input) > 2 else ""
    if axis or node.attribute("transA", 0) or (bias and len(node.shapes[bias]) > 1 and node.shapes[bias][0] != 1):
        raise node.refuse("works along the sequence")
    return 0


def _transpose(node: Node) -> int:
    shape, axis = node.x
    order = node.ints("perm", 1) or list(reversed(range(len(shape))))
    return order.index(axis)


def _reshape(node: Node) -> int:
    """Rows stay rows where as much lies outside of them as before; their axis may have swallowed what follows it."""
    shape, axis = node.x
    result = node.shapes[node.node.output[0]]
    outside = math.prod(shape[:axis])
    for a in range(len(result)):
        if math.prod(result[:a]) == outside and result[a] % node.rows == 0:
            return a
    raise node.refuse("mixes rows with what lies outside of them")


def _squeeze(node: Node) -> int:
    shape, axis = node.x
    axes = node.ints("axes", 1)
    gone = [a % len(shape) for a in axes] if axes else [a for a, size in enumerate(shape) if size == 1]
    if axis in gone:
        raise node.refuse("takes the rows for a single one")
    return axis - sum(a < axis for a in gone)


def _unsqueeze(node: Node) -> int:
    _, axis = node.x
    rank = len(node.shapes[node.node.output[0]])
    new = {a % rank for a in node.ints("axes", 1) or ()}
    return [a for a in range(rank) if a not in new][axis]


def _concat(node: Node) -> int:
    found = {node.axes.get(name) for name in node.node.input}
    axis = next(iter(found))
    if len(found) > 1 or axis is None:
        raise node.refuse("puts rows beside what has none")
    node.inner_axis(int(str(node.attribute("axis"))), len(node.shapes[node.node.input[0]]), axis)
    return axis


def _split(node: Node) -> int:
    shape, axis = node.x
    node.inner_axis(int(str(node.attribute("axis", 0))), len(shape), axis)
    return axis


def _slice(node: Node) -> int:
    shape, axis = node.x
    starts = node.ints("starts", 1) or []
    for a in node.ints("axes", 3) or range(len(starts)):
        node.inner_axis(a, len(shape), axis)
    return axis


def _gather(node: Node) -> int:
    data, indices = node.node.input
    shape = node.shapes[data]
    along = int(str(node.attribute("axis", 0))) % len(shape)
    if data in node.axes and indices in node.axes:
        raise node.refuse("looks rows up by rows")
    if indices in node.axes:
        return along + node.axes[indices]
    axis = node.axes[data]
    node.inner_axis(along, len(shape), axis)
    return axis if axis < along else axis - 1 + len(node.shapes[indices])


_RULES: dict[str, Callable[[Node], int]] = {
    "Concat": _concat, "Gather": _gather, "Gemm": _gemm, "MatMul": _matmul, "Reshape": _reshape, "Slice": _slice,
    "Split": _split, "Squeeze": _squeeze, "Transpose": _transpose, "Unsqueeze": _unsqueeze,
}  # fmt: skip
