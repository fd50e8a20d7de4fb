"""Layers in forms that TVM's frontend lacks: of training, with further results, with explicit output shapes."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from onnx import helper

from ..emit import Emitter, NodeView
from .deformed import deform_conv
from .elementwise import element, in_single, numpy_type
from .indexing.choose import windows
from .lost_taps import conv
from .transposed import conv_transpose

_MASK_SAYS_KEPT = 12
"""The first opset in which the mask of a Dropout that infers says that all is kept; before it was all 0."""
_MOST_DET = 6
"""Of larger matrices the determinant would be thousands of products."""


def _dropout(node: NodeView, emit: Emitter) -> Emitter | None:
    """What infers keeps all; what trains would need random numbers."""
    dims, ratio, training = node.dims(0), node.array(1), node.array(2)
    if dims is None:
        return None
    if node.input(2) and training is None:
        node.refuse("may or may not train", "make its third input a constant (fix_inputs)")
    trains = training is not None and bool(training.any())
    if trains and (ratio is None or ratio.any()):
        node.refuse("drops elements at random", "export the model for inference")
    emit.name(node.input(0), node.output)
    if len(node.node.output) > 1 and node.node.output[1]:
        kept = np.full(dims, emit.opset >= _MASK_SAYS_KEPT)
        mask = kept.astype(numpy_type(element(node, 0))) if emit.opset < 10 else kept
        emit.name(emit.constant(mask), node.node.output[1])
    return emit


def _reach(kernel: int, dilation: int) -> int:
    """Elements from the first that a window reads to the last."""
    return dilation * (kernel - 1) + 1


_SAME = (b"SAME_UPPER", b"SAME_LOWER")
"""Values of auto_pad: as many windows as fit with pads at both ends, more of them at one."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """The windows of a pool over an image; `dropped`: some would begin behind it, which ceil_mode leaves out."""

    image: list[int]
    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]
    outs: list[int]
    dropped: bool

    @classmethod
    def of(cls, node: NodeView, image: list[int]) -> Self:
        kernel, ones = list(node.attribute("kernel_shape", [])), [1] * len(image)
        strides, dilations = list(node.attribute("strides", ones)), list(node.attribute("dilations", ones))
        pads = list(node.attribute("pads", [0] * 2 * len(kernel)))
        auto, outs, any_dropped = node.attribute("auto_pad", b"NOTSET"), [], False
        for a, size in enumerate(image):
            reach = _reach(kernel[a], dilations[a])
            if auto in _SAME:
                out = -(-size // strides[a])
                total = max(0, (out - 1) * strides[a] + reach - size)
                pads[a] = total // 2 if auto == b"SAME_UPPER" else total - total // 2
            else:
                room = size + pads[a] + pads[a + len(image)] - reach
                out = room // strides[a] + 1
                if node.attribute("ceil_mode", 0):
                    out = -(-room // strides[a]) + 1
                    dropped = (out - 1) * strides[a] >= size + pads[a]
                    out -= dropped
                    any_dropped = any_dropped or dropped
            outs.append(out)
        return cls(image, kernel, strides, dilations, pads, outs, any_dropped)

    def ends(self) -> list[int]:
        """Pads behind the image with which the windows are as many without ceil_mode."""
        found = self.pads[len(self.image) :]
        for a, size in enumerate(self.image):
            reach = _reach(self.kernel[a], self.dilations[a])
            found[a] = max(found[a], (self.outs[a] - 1) * self.strides[a] + reach - size - self.pads[a])
        return found


def _pool(node: NodeView, emit: Emitter) -> Emitter | None:
    """Without ceil_mode where that drops windows: onnx's shape inference counts them. And with pads that are numbers:
    of those at the lower end TVM's frontend makes too few windows."""
    dims, same = node.extents(0), node.attribute("auto_pad", b"NOTSET") in _SAME
    image = [size for size in (dims or ())[2:] if size is not None]
    if dims is None or len(image) < len(dims) - 2 or not (same or node.attribute("ceil_mode", 0)):
        return None
    pool = _Pool.of(node, image)
    pads = [*pool.pads[: len(pool.image)], *pool.ends()]
    plain = node.node.op_type == "LpPool"  # what is added counts for nothing
    included = node.attribute("count_include_pad", 0) and pads != pool.pads
    if not same and not plain and (not pool.dropped or included):
        return None
    dropped = ("ceil_mode", "auto_pad")
    given = {a.name: helper.get_attribute_value(a) for a in node.node.attribute if a.name not in dropped}
    emit.last(node.node.op_type, node.input(0), outputs=node.node.output[:1], **given | {"pads": pads})
    return emit


def _max_pool(node: NodeView, emit: Emitter) -> Emitter | None:
    """With the positions of the maxima: elements are gathered by constant indices."""
    dims = node.dims(0)
    if not any(node.node.output[1:]):
        return _pool(node, emit)
    if dims is None:
        return None
    pool = _Pool.of(node, dims[2:])
    image, outs = pool.image, pool.outs
    index, inside = windows(image, pool.kernel, pool.strides, pool.pads, pool.dilations, outs)
    flat = emit.reshape(node.input(0), [dims[0], dims[1], math.prod(image)])
    dtype = numpy_type(element(node, 0))
    values = emit("Gather", flat, emit.constant(index), axis=2)
    lowest = np.array(np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf, dtype)
    values = emit("Where", emit.constant(inside), values, emit.constant(lowest))
    shape = [*dims[:2], *outs]
    which = emit("ArgMax", values, axis=3, keepdims=1)
    if node.output:
        emit.name(emit.reshape(emit("GatherElements", values, which, axis=3), shape), node.output)
    _flat_positions(node, emit, which, index, image, shape)
    return emit


def _flat_positions(
    node: NodeView, emit: Emitter, which: str, index: np.ndarray, image: list[int], shape: list[int]
) -> None:
    """Name the positions of the maxima in the whole tensor; `storage_order` 1 counts rows first."""
    if node.attribute("storage_order", 0):
        places = np.unravel_index(index, image)
        index = np.ravel_multi_index(places[::-1], image[::-1])
    planes = np.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], 1, 1) * math.prod(image)
    every = np.broadcast_to(index[None, None], (shape[0], shape[1], *index.shape)) + planes
    positions = emit("GatherElements", emit.constant(np.ascontiguousarray(every).astype(np.int64)), which, axis=3)
    emit.name(emit.reshape(positions, shape), node.node.output[1])


def _det(node: NodeView, emit: Emitter) -> Emitter | None:
    """The sum over all permutations, factor by factor along the rows."""
    dims, sizes = node.dims(0), node.extents(0) if node.last else node.dims(0)
    if sizes is None or None in sizes[-2:]:
        return None
    node.require(len(sizes) >= 2 and sizes[-1] == sizes[-2], f"the shape {sizes}, whose last two sizes are to be equal")
    size = sizes[-1] or 0
    if size > _MOST_DET:
        node.refuse(f"is of {size} x {size} matrices", f"up to {_MOST_DET} x {_MOST_DET} can be compiled")
    last = len(sizes) - 2
    lead = [0] * last if dims is None else dims[:-2]  # as many as there are
    flat = emit.reshape(node.input(0), [*lead, size * size])
    ones = np.ones([1] if dims is None else [*lead, 1], emit.dtype)
    minors: dict[tuple[int, ...], str] = {(): emit.constant(ones)}
    for row in range(size):
        minors = {
            chosen: _expansion(emit, flat, last, row, size, chosen, minors)
            for chosen in itertools.combinations(range(size), row + 1)
        }
    whole = minors[tuple(range(size))]
    emit.name(emit.axes("Squeeze", whole, last) if dims is None else emit.reshape(whole, lead), node.output)
    return emit


def _expansion(
    emit: Emitter,
    flat: str,
    axis: int,
    row: int,
    size: int,
    chosen: tuple[int, ...],
    minors: Mapping[tuple[int, ...], str],
) -> str:
    """The minor of the first rows and the chosen columns, by its last row."""
    total = ""
    for place, column in enumerate(chosen):
        at = row * size + column
        term = emit("Mul", emit.part(flat, axis, at, at + 1), minors[tuple(c for c in chosen if c != column)])
        negative = (len(chosen) - 1 - place) % 2
        if not total:
            total = emit("Neg", term) if negative else term
        else:
            total = emit("Sub" if negative else "Add", total, term)
    return total


LAYERS = {
    ("", "AveragePool"): _pool,
    ("", "Conv"): conv,
    ("", "ConvTranspose"): conv_transpose,
    ("", "DeformConv"): deform_conv,
    ("", "Det"): in_single(_det),
    ("", "Dropout"): _dropout,
    ("", "LpPool"): _pool,
    ("", "MaxPool"): _max_pool,
}
"""By domain and name."""
