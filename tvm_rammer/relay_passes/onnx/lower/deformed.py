"""Deformable convolutions: samples of the image, and a product with the weights (Dai et al., ICCV 2017)."""

import math

import numpy as np
from onnx import TensorProto

from ..emit import Emitter, NodeView
from .elementwise import element

_RANK = 4
"""Images have a batch, channels, rows and columns; ONNX defines no other."""


def deform_conv(node: NodeView, emit: Emitter) -> Emitter | None:
    """The pixels that each tap reads, by GridSample, each times its mask; then a product for each group.

    Numbers of half precision are computed in single precision.
    """
    data, weight, offset = (node.dims(i) for i in range(3))
    elem = element(node, 0)
    if data is None or weight is None or offset is None or not elem:
        return None
    if elem == TensorProto.DOUBLE:
        node.refuse("is of double precision, and pixels are sampled in single precision", "export it in float32")
    image_in, weight_in, offset_in, bias, mask = (_single(node, emit, i, elem) for i in range(5))
    if not len(data) == len(weight) == len(offset) == _RANK:
        node.refuse(f"has an image of the shape {data}", "use images of two dimensions")
    batch, channels, *image = data
    filters, depth, *kernel = weight
    groups, deformed = node.attribute("group", 1), node.attribute("offset_group", 1)
    taps, rows, columns = math.prod(kernel), *offset[2:]
    node.require(node.attribute("kernel_shape", kernel) == kernel, f"weights of the shape {weight}")
    node.require(groups > 0 and channels == depth * groups and filters % groups == 0, f"{groups} groups of {data}")
    node.require(deformed > 0 and channels % deformed == 0, f"{deformed} groups of offsets for {channels} channels")
    node.require(offset == [batch, deformed * taps * 2, *_sizes(node, image, kernel)], f"offsets of the shape {offset}")
    if min(image) < 2:
        node.refuse(f"has an image of {image[0]} x {image[1]} pixels", "pad it to two pixels at least")
    moved = emit.reshape(offset_in, [batch * deformed, taps, 2, rows, columns])
    moved = emit("Transpose", moved, perm=[0, 1, 3, 4, 2])
    moved = emit("Gather", moved, emit.constant(np.array([1, 0], np.int64)), axis=4)
    # GridSample counts from -1, the first pixel, to 1, the last.
    scale = 2 / (np.array(image[::-1], np.float64) - 1)
    steps, starts = (
        emit.constant(array.astype(np.float32)) for array in (scale, _places(node, offset, kernel) * scale - 1)
    )
    grid = emit.reshape(emit("Add", emit("Mul", moved, steps), starts), [batch * deformed, taps * rows, columns, 2])
    pixels = emit.reshape(image_in, [batch * deformed, channels // deformed, *image])
    sampled = emit("GridSample", pixels, grid, align_corners=1)
    if mask:
        sampled = emit("Mul", sampled, emit.reshape(mask, [batch * deformed, 1, taps * rows, columns]))
    sampled = emit.reshape(sampled, [batch, groups, depth * taps, rows * columns])
    matrix = emit.reshape(weight_in, [1, groups, filters // groups, depth * taps])
    result = emit.reshape(emit("MatMul", matrix, sampled), [batch, filters, rows, columns])
    if bias:
        result = emit("Add", result, emit.reshape(bias, [1, filters, 1, 1]))
    emit.name(result if elem == TensorProto.FLOAT else emit("Cast", result, to=elem), node.output)
    return emit


def _single(node: NodeView, emit: Emitter, index: int, elem: int) -> str:
    """An input in single precision; empty where it is left out."""
    name = node.input(index)
    return name if elem == TensorProto.FLOAT or not name else emit("Cast", name, to=TensorProto.FLOAT)


def _sizes(node: NodeView, image: list[int], kernel: list[int]) -> list[int]:
    """Rows and columns of the result."""
    pads, strides, dilations = _geometry(node)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    padded = [size + pads[i] + pads[i + 2] for i, size in enumerate(image)]
    return [(size - span) // stride + 1 for size, span, stride in zip(padded, spans, strides, strict=True)]


def _geometry(node: NodeView) -> tuple[list[int], list[int], list[int]]:
    """Pads, strides and dilations."""
    found = (node.attribute("pads", [0] * 4), node.attribute("strides", [1, 1]), node.attribute("dilations", [1, 1]))
    fits = [len(numbers) for numbers in found] == [4, 2, 2] and min(*found[1], *found[2]) > 0
    node.require(fits, f"pads, strides and dilations of {found}")
    return found


def _places(node: NodeView, offset: list[int], kernel: list[int]) -> np.ndarray:
    """Column and row that each tap of each result reads where nothing is deformed: [taps, rows, columns, 2]."""
    pads, strides, dilations = _geometry(node)
    axes = [
        np.arange(kernel[i]).reshape(-1, 1) * dilations[i] + np.arange(offset[2 + i]) * strides[i] - pads[i]
        for i in range(2)
    ]
    shape = (*kernel, *offset[2:])
    y = np.broadcast_to(axes[0][:, None, :, None], shape)
    x = np.broadcast_to(axes[1][None, :, None, :], shape)
    return np.stack([x, y], axis=-1).reshape(math.prod(kernel), *offset[2:], 2).astype(np.float64)
