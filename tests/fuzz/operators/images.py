"""Operators on images: resizing, sampling, regions."""

import numpy as np

from ..generate.builder import Builder

_REALS = ("float32", "float32", "float64")


def resize(b: Builder):
    x = b.source(b.types("Resize"), low=1, high=5, check=lambda s: min(s) > 0)
    shape = b.of(x)
    rank = len(shape)
    moved = [rank > 2 and i < 2 for i in range(rank)] if b.chance(0.8) else [False] * rank
    scales = [1.0 if still else b.pick([0.5, 0.6, 0.75, 1.0, 1.5, 2.0, 2.3, 3.0]) for still in moved]
    mode = b.pick(["nearest", "linear", "cubic"] if b.opset >= 11 else ["nearest", "linear"])
    factors = b.constant(np.array(scales, "float32"))
    if b.opset == 10:
        return b.add("Resize", [x, factors], mode=mode)
    transforms = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
    how = {
        "mode": mode if b.chance(0.8) else None,
        "coordinate_transformation_mode": b.pick([None, *transforms, *(["half_pixel_symmetric"] * (b.opset >= 19))]),
        "nearest_mode": b.pick([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
        "cubic_coeff_a": b.pick([None, None, -0.5]),
        "exclude_outside": b.pick([None, None, 1]),
        "extrapolation_value": b.pick([None, None, 2.5]),
        "antialias": b.pick([None, None, None, 1]),
    }
    crop = how["coordinate_transformation_mode"] == "tf_crop_and_resize"
    roi = b.constant(np.array([0.1] * rank + [0.8] * rank, "float32")) if crop else ""
    if b.opset < 13 and not roi:
        roi = b.constant(np.zeros(0, "float32"))
    if b.opset >= 18 and not roi and b.chance(0.3):
        how["axes"] = [a - rank if b.chance(0.3) else a for a in b.rng.sample(range(rank), b.integer(1, rank))]
        scales, shape = ([values[a] for a in how["axes"]] for values in (scales, shape))
        factors = b.constant(np.array(scales, "float32"))
    if b.chance(0.5):
        return b.add("Resize", [x, roi, factors], **how)
    sizes = b.integers([max(1, int(d * s)) for d, s in zip(shape, scales, strict=True)])
    empty = "" if b.opset >= 13 else b.constant(np.zeros(0, "float32"))
    policy = b.pick([None, None, "not_larger", "not_smaller"])
    return b.add("Resize", [x, roi, empty, sizes], keep_aspect_ratio_policy=policy, **how)


def upsample(b: Builder):
    if b.opset > 9:
        return []
    x = b.source(["float32"], low=4, high=4, check=lambda s: min(s) > 0)
    scales = [1.0, 1.0, b.pick([1.0, 2.0, 1.5]), b.pick([2.0, 3.0])]
    mode = b.pick(["nearest", "linear"])
    if b.opset < 9:
        return b.add("Upsample", [x], mode=mode, scales=scales)
    return b.add("Upsample", [x, b.constant(np.array(scales, "float32"))], mode=mode)


def depth_to_space(b: Builder):
    block = b.integer(1, 3)
    x = b.source(b.types("DepthToSpace"), shape=[b.integer(1, 2), block**2 * b.integer(1, 3), *b.shape(2, 2)])
    return b.add("DepthToSpace", [x], blocksize=block, mode=b.pick([None, "DCR", "CRD"]))


def space_to_depth(b: Builder):
    block = b.integer(1, 3)
    shape = [b.integer(1, 2), b.integer(1, 3), block * b.integer(1, 3), block * b.integer(1, 3)]
    return b.add("SpaceToDepth", [b.source(b.types("SpaceToDepth"), shape=shape)], blocksize=block)


def grid_sample(b: Builder):
    rank = b.pick([4, 4, 5] if b.opset >= 20 else [4])
    x = b.source(_REALS, low=rank, high=rank, check=lambda s: min(s) > 0)
    grid = b.parameter(
        b.values[x].dtype, [b.of(x)[0], *(b.integer(1, 5) for _ in range(rank - 2)), rank - 2], -1.3, 1.3
    )
    modes = ["linear", "nearest", "cubic"] if b.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    padding = b.pick([None, "zeros", "border", "reflection"])
    corners = b.pick([None, 0, 1])
    return b.add("GridSample", [x, grid], mode=b.pick([None, *modes]), padding_mode=padding, align_corners=corners)


def affine_grid(b: Builder):
    n, rank = b.integer(1, 2), b.pick([2, 3])
    theta = b.source(_REALS, shape=[n, rank, rank + 1])
    size = b.integers([n, b.integer(1, 3), *(b.integer(1, 5) for _ in range(rank))])
    return b.add("AffineGrid", [theta, size], align_corners=b.pick([None, 0, 1]))


def roi_align(b: Builder):
    x = b.source(_REALS, low=4, high=4, check=lambda s: min(s) > 0)
    n, _, h, w = b.of(x)
    count = b.integer(1, 4)
    corners = b.numbers("float32", [count, 4], 0, 1) * np.array([w / 2, h / 2, w / 2, h / 2], "float32")
    corners += np.array([0, 0, w / 2, h / 2], "float32")
    if not b.integer(0, 3):  # some end before they begin
        corners[::2] = np.roll(corners[::2], 2, axis=1)
    boxes = b.pick([b.constant, b.input])(corners.astype(b.values[x].dtype))
    where = b.integers(b.numbers("int64", [count], 0, n - 1))
    how = {
        "mode": b.pick([None, "avg", "max"]),
        "output_height": b.integer(1, 3),
        "output_width": b.integer(1, 3),
        "sampling_ratio": b.pick([None, 0, 2]),
        "spatial_scale": b.pick([None, 0.5, 1.0]),
        "coordinate_transformation_mode": b.pick([None, "half_pixel", "output_half_pixel"]),
    }
    return b.add("RoiAlign", [x, boxes, where], **how)


def max_roi_pool(b: Builder):
    x = b.source(["float32"], low=4, high=4, check=lambda s: min(s) > 0)
    n, _, h, w = b.of(x)
    rows = []
    for _ in range(b.integer(1, 3)):
        left, top = b.integer(0, w - 1), b.integer(0, h - 1)
        rows.append([b.integer(0, n - 1), left, top, b.integer(left, w - 1), b.integer(top, h - 1)])
    rois, scale = b.constant(np.array(rows, "float32")), b.pick([None, None, 0.5])
    return b.add("MaxRoiPool", [x, rois], pooled_shape=[b.integer(1, 3), b.integer(1, 3)], spatial_scale=scale)


def center_crop_pad(b: Builder):
    x = b.source(b.types("CenterCropPad"), low=1)
    axes = b.axes(len(b.of(x)))
    if b.chance(0.3):
        return b.add("CenterCropPad", [x, b.integers([b.integer(1, 6) for _ in b.of(x)])])
    return b.add("CenterCropPad", [x, b.integers([b.integer(1, 6) for _ in axes])], axes=axes)


TABLE = {
    "Resize": resize,
    "Upsample": upsample,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "GridSample": grid_sample,
    "AffineGrid": affine_grid,
    "RoiAlign": roi_align,
    "MaxRoiPool": max_roi_pool,
    "CenterCropPad": center_crop_pad,
}
