"""Transposed convolutions of a given output shape, and dilated ones."""

from collections.abc import Sequence

import numpy as np
from onnx import helper

from ..emit import Emitter, NodeView


def conv_transpose(node: NodeView, emit: Emitter) -> Emitter | None:
    """An output shape as pads, and as padding of the output where it is larger; dilated taps as a convolution."""
    dims, weights, wanted = node.dims(0), node.dims(1), node.attribute("output_shape", None)
    if dims is None or weights is None:
        return None
    attributes = {a.name: helper.get_attribute_value(a) for a in node.node.attribute}
    spatial, auto = len(dims) - 2, attributes.get("auto_pad", b"NOTSET")
    strides = list(attributes.get("strides", [1] * spatial))
    dilations = list(attributes.get("dilations", [1] * spatial))
    known = node.array(1)
    finite = known is not None and bool(np.isfinite(known).all())
    dilated = finite and any(d > 1 and k > 1 for d, k in zip(dilations, weights[2:], strict=True))
    more, same = list(attributes.get("output_padding", [0] * spatial)), auto in (b"SAME_UPPER", b"SAME_LOWER")
    # Of what ONNX says of the size of a padded output that is to be the same, its own shape inference has another one.
    if not dilated and not wanted and not (same and any(more)):
        return None
    pads = list(attributes.get("pads", [0] * 2 * spatial)) if auto == b"NOTSET" else [0] * 2 * spatial
    given = bool(wanted)
    if not wanted and same:
        wanted = [size * stride for size, stride in zip(dims[2:], strides, strict=True)]
    for a, size in enumerate(list(wanted)[-spatial:] if wanted else ()):
        total = strides[a] * (dims[2 + a] - 1) + more[a] + (weights[2 + a] - 1) * dilations[a] + 1 - size
        if not given:
            total = max(total, 0)
        if total < 0 and auto == b"SAME_UPPER":  # zeros at the begin by ONNX, at the end by ONNX Runtime
            node.refuse(
                "has an output_shape larger than all that it makes, and auto_pad SAME_UPPER",
                "give pads and output_padding",
            )
        if total < 0:
            more[a] -= total
            total = 0
        small, large = total // 2, total - total // 2
        pads[a], pads[spatial + a] = (small, large) if auto == b"SAME_UPPER" else (large, small)
    if dilated:
        reach = [d * (k - 1) for d, k in zip(dilations, weights[2:], strict=True)]
        around = [r - p for r, p in zip(reach, pads[:spatial], strict=True)]
        around += [r - p + m for r, p, m in zip(reach, pads[spatial:], more, strict=True)]
        data = _spread(emit, node.input(0), dims, strides, around)
        groups = node.attribute("group", 1)
        flipped = _flipped(emit, node.input(1), weights, groups)
        emit.last(
            "Conv", data, flipped, *node.node.input[2:], outputs=node.node.output, dilations=dilations, group=groups
        )
        return emit
    kept = {n: v for n, v in attributes.items() if n not in ("output_shape", "auto_pad", "pads", "output_padding")}
    emit.last("ConvTranspose", *node.node.input, outputs=node.node.output, pads=pads, output_padding=more, **kept)
    return emit


def _spread(emit: Emitter, data: str, dims: Sequence[int], strides: Sequence[int], around: Sequence[int]) -> str:
    """An image with zeros between its pixels and around it.

    TVM's frontend puts the zeros between the taps, which makes NaN of the infinities that they meet.
    """
    sizes = list(dims)
    for axis, stride in enumerate(strides, 2):
        if stride > 1:
            apart = emit.axes("Unsqueeze", data, axis + 1)
            ends = [0] * 2 * (len(sizes) + 1)
            ends[len(sizes) + axis + 2] = stride - 1
            sizes[axis] *= stride
            data = emit.reshape(_padded(emit, apart, ends), sizes)
    after = [end - (stride - 1) for end, stride in zip(around[len(strides) :], strides, strict=True)]
    return _padded(emit, data, [0, 0, *around[: len(strides)], 0, 0, *after])


def _padded(emit: Emitter, value: str, pads: Sequence[int]) -> str:
    if emit.opset < 11:
        return emit("Pad", value, pads=list(pads))
    return emit("Pad", value, emit.constant(np.array(pads, np.int64)))


def _flipped(emit: Emitter, weight: str, dims: Sequence[int], groups: int) -> str:
    """Weights [channels, filters of a group, taps] as those of a convolution, [filters, channels of a group, taps]."""
    channels, filters, *taps = dims
    for axis, size in enumerate(taps, 2):
        weight = emit("Gather", weight, emit.constant(np.arange(size)[::-1].copy()), axis=axis)
    if groups > 1:
        weight = emit.reshape(weight, [groups, channels // groups, filters, *taps])
        order = [0, 2, 1, *range(3, 3 + len(taps))]
        return emit.reshape(emit("Transpose", weight, perm=order), [groups * filters, channels // groups, *taps])
    return emit("Transpose", weight, perm=[1, 0, *range(2, 2 + len(taps))])
