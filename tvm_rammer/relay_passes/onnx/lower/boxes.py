"""Boxes and grids of images: NonMaxSuppression, AffineGrid, RoiAlign."""

import numpy as np
from onnx import TensorProto, helper

from ..emit import Emitter, NodeView

_SIGN = 1 << 31
_LEAST = ((_SIGN ^ 0x80800000) >> 1) - 1
"""What the order of the least finite number is above."""


def _non_max_suppression(node: NodeView, emit: Emitter) -> Emitter | None:
    """With what it leaves out written down: TVM's frontend has other defaults, and keeps fewer on the boundary.

    Of scores TVM knows positive ones only. One that is NaN is not above the threshold.
    """
    given = [node.array(i) for i in (2, 3, 4)]
    if any(node.input(i) and array is None for i, array in zip((2, 3, 4), given, strict=True)):
        node.refuse_at_last("has thresholds or a number of boxes that are computed", "make them constants (fix_inputs)")
        return None
    if node.node.name.endswith("/complete"):
        return None
    boxes, threshold, least = given
    most = int(boxes.item()) if boxes is not None else 0
    overlap = np.float32(threshold.item() if threshold is not None else 0.0)
    score = np.float32(least.item() if least is not None else np.finfo(np.float32).min)
    lowest = emit.constant(np.array(0.0 if score >= 0 else -np.inf, np.float32))
    scores = emit("Where", emit("IsNaN", node.input(1)), lowest, node.input(1))
    if score < 0:
        scores, score = _positive(emit, scores), _ordered(score)
    inputs = [np.array([most], np.int64), np.nextafter(overlap, np.float32(2)).reshape(1), score.reshape(1)]
    emit.last(
        "NonMaxSuppression", node.input(0), scores, *map(emit.constant, inputs), outputs=node.node.output,
        name=f"{node.output}/complete", center_point_box=node.attribute("center_point_box", 0),
    )  # fmt: skip
    return emit


def _positive(emit: Emitter, scores: str) -> str:
    """Scores as positive numbers of the same order; neighbours in float32 may become equal. See `_ordered`."""
    bits = emit("BitCast", scores, to=TensorProto.UINT32)
    sign, ones, one, least = (emit.constant(np.array(n, np.uint32)) for n in (_SIGN, 2**32 - 1, 1, _LEAST))
    negative = emit("Not", emit("Less", bits, sign))
    order = emit("BitwiseXor", bits, emit("Where", negative, ones, sign))
    order = emit("Sub", emit("BitShift", order, one, direction="RIGHT"), least)
    return emit("BitCast", order, to=TensorProto.FLOAT)


def _ordered(score: np.float32) -> np.float32:
    """The positive number of a score. Bits of float32 are ordered as integers are, once those below 0 are inverted."""
    bits = int(score.view(np.uint32))
    order = bits ^ (2**32 - 1 if bits >= _SIGN else _SIGN)
    return np.uint32((order >> 1) - _LEAST).view(np.float32)


def _affine_grid(node: NodeView, emit: Emitter) -> Emitter | None:
    """A product with the grid: TVM would leave out what it multiplies by 0, be it NaN."""
    size = node.array(1)
    if size is None:
        return None
    image = size.tolist()[2:]
    node.require(len(image) in (2, 3) and min(image) > 0, f"the size {size.tolist()}")
    steps = [
        np.linspace(-1, 1, n) if node.attribute("align_corners", 0) else (np.arange(n) * 2 + 1) / n - 1 for n in image
    ]
    places = np.meshgrid(*steps, indexing="ij")[::-1]
    grid = np.stack([*places, np.ones(image)]).reshape(len(image) + 1, -1).astype(emit.dtype)
    moved = emit("Transpose", emit("MatMul", node.input(0), emit.constant(grid)), perm=[0, 2, 1])
    emit.name(emit.reshape(moved, [int(size[0]), *image, len(image)]), node.output)
    return emit


def _roi_align(node: NodeView, emit: Emitter) -> Emitter | None:
    """Boxes that are scaled ahead: TVM's frontend moves them by half a pixel before it scales them."""
    if node.attribute("mode", b"avg") == b"max":
        node.refuse("has the mode 'max'", "use 'avg'")
    scale, how = node.attribute("spatial_scale", 1.0), node.attribute("coordinate_transformation_mode", b"half_pixel")
    if emit.opset < 16 or how != b"half_pixel" or scale == 1:
        return None
    boxes = emit("Mul", node.input(1), emit.number(scale))
    attributes = {a.name: helper.get_attribute_value(a) for a in node.node.attribute} | {"spatial_scale": 1.0}
    emit.last("RoiAlign", node.input(0), boxes, node.input(2), outputs=node.node.output, **attributes)
    return emit


BOXES = {
    ("", "AffineGrid"): _affine_grid,
    ("", "NonMaxSuppression"): _non_max_suppression,
    ("", "RoiAlign"): _roi_align,
}
"""By domain and name."""
