"""Boxes and grids of images: NonMaxSuppression, AffineGrid, GridSample, RoiAlign."""

import numpy as np
from onnx import TensorProto, helper

from ..emit import HALVES, Emitter, NodeView
from .elementwise import element

_MOST_SAMPLES = 256
"""Along an axis of a bin of RoiAlign: with more a call would not end."""


def _non_max_suppression(node: NodeView, _emit: Emitter) -> Emitter | None:
    """Stays what it is (`converters`): here it is refused where its shapes do not fit."""
    boxes, scores = node.dims(0), node.dims(1)
    for dims in (boxes, scores):
        node.require(dims is None or len(dims) == 3, f"an input of the shape {dims}, which is to have three axes")
    if boxes is not None and scores is not None:
        fits = boxes == [scores[0], scores[2], 4]
        node.require(fits, f"boxes of the shape {boxes} for scores of the shape {scores}")
    return None


def _affine_grid(node: NodeView, emit: Emitter) -> Emitter | None:
    """A product with the grid: TVM would leave out what it multiplies by 0, be it NaN."""
    size = node.array(1)
    if size is None:
        return None
    image = size.tolist()[2:]
    node.require(len(image) in (2, 3) and min(image) > 0, f"the size {size.tolist()}")
    aligned = node.attribute("align_corners", 0)
    if aligned and min(image) == 1:  # ONNX has it at -1, ONNX Runtime at 1, PyTorch at 0
        node.refuse("aligns the corners of a single row or column, of which readers differ", "use align_corners=0")
    steps = [np.linspace(-1, 1, n) if aligned else (np.arange(n) * 2 + 1) / n - 1 for n in image]
    places = np.meshgrid(*steps, indexing="ij")[::-1]
    grid = np.stack([*places, np.ones(image)]).reshape(len(image) + 1, -1).astype(emit.dtype)
    moved = emit("Transpose", emit("MatMul", node.input(0), emit.constant(grid)), perm=[0, 2, 1])
    emit.name(emit.reshape(moved, [int(size[0]), *image, len(image)]), node.output)
    return emit


def _roi_align(node: NodeView, emit: Emitter) -> Emitter | None:
    """Boxes that are scaled ahead: TVM's frontend moves them by half a pixel before it scales them."""
    if node.attribute("mode", b"avg") == b"max":
        node.refuse("has the mode 'max'", "use 'avg'")
    if (ratio := node.attribute("sampling_ratio", 0)) > _MOST_SAMPLES:
        node.refuse(f"asks for {ratio} samples along each axis of a bin", f"ask for {_MOST_SAMPLES} at most")
    scale, how = node.attribute("spatial_scale", 1.0), node.attribute("coordinate_transformation_mode", b"half_pixel")
    if emit.opset < 16 or how != b"half_pixel" or scale == 1:
        return None
    boxes = emit("Mul", node.input(1), emit.number(scale))
    attributes = {a.name: helper.get_attribute_value(a) for a in node.node.attribute} | {"spatial_scale": 1.0}
    emit.last("RoiAlign", node.input(0), boxes, node.input(2), outputs=node.node.output, **attributes)
    return emit


def _grid_sample(node: NodeView, emit: Emitter) -> Emitter | None:
    """Of half precision in single precision, as ONNX Runtime has it: of TVM's cubic weights the sums have that type."""
    elem = element(node, 0)
    if elem not in HALVES:
        return None
    single = [emit("Cast", node.input(i), to=TensorProto.FLOAT) for i in (0, 1)]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.node.attribute}
    emit.name(emit("Cast", emit("GridSample", *single, **attributes), to=elem), node.output)
    return emit


BOXES = {
    ("", "AffineGrid"): _affine_grid,
    ("", "GridSample"): _grid_sample,
    ("", "NonMaxSuppression"): _non_max_suppression,
    ("", "RoiAlign"): _roi_align,
}
"""By domain and name."""
