"""Convolutions some of whose taps meet no pixel, as widely dilated ones of small images have them."""

import numpy as np
from onnx import helper

from ..emit import Emitter, NodeView


def conv(node: NodeView, emit: Emitter) -> Emitter | None:
    """Leave out the first and last taps of each axis that read nothing but padding."""
    dims, weights = node.dims(0), node.dims(1)
    if dims is None or weights is None or len(dims) != len(weights):
        return None
    attributes = {a.name: helper.get_attribute_value(a) for a in node.node.attribute}
    if attributes.get("auto_pad", b"NOTSET") != b"NOTSET" or 0 in dims or 0 in weights:
        return None
    spatial = len(dims) - 2
    strides, dilations = (list(attributes.get(name, [1] * spatial)) for name in ("strides", "dilations"))
    pads = list(attributes.get("pads", [0] * 2 * spatial))
    if {len(strides), len(dilations), len(pads) / 2} != {spatial} or min(*strides, *dilations, 1) < 1:
        return None  # who checks the node says so
    kept = [slice(None), slice(None)]
    for axis, (size, taps, stride, dilation) in enumerate(zip(dims[2:], weights[2:], strides, dilations, strict=True)):
        begin, end = pads[axis], pads[spatial + axis]
        outs = (size + begin + end - dilation * (taps - 1) - 1) // stride + 1
        met = [k for k in range(taps) if _meets(size, k * dilation - begin, stride, outs)]
        first, last = (met[0], met[-1]) if met else (0, taps - 1)
        if begin < first * dilation:  # the image would have to be cut
            first = 0
        if end < (taps - 1 - last) * dilation:
            last = taps - 1
        pads[axis], pads[spatial + axis] = begin - first * dilation, end - (taps - 1 - last) * dilation
        kept.append(slice(first, last + 1))
    shape = [*weights[:2], *(s.stop - s.start for s in kept[2:])]
    if shape == weights:
        return None
    array = node.array(1)
    if array is None or not np.isfinite(array).all():  # a pad times infinity is NaN
        return None
    attributes |= {"pads": pads, "kernel_shape": shape[2:]}
    fewer = emit.constant(np.ascontiguousarray(array[tuple(kept)]))
    emit.last("Conv", node.input(0), fewer, *node.node.input[2:], outputs=node.node.output, **attributes)
    return emit


def _meets(size: int, offset: int, stride: int, outs: int) -> bool:
    """Whether one of the windows' places `offset + i * stride` is in the image."""
    first = max(0, -(offset // stride))
    return first < outs and offset + first * stride < size
