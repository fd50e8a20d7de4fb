"""Convolutions and pools."""

from ..generate.builder import Builder


def _geometry(b: Builder, shape, ceil=False, dilated=True):
    """Attributes of windows over the spatial extents of a shape, and the kernel's extents."""
    space = shape[2:]
    kernel = [b.integer(1, max(1, min(5, d))) for d in space]
    how = {"kernel_shape": kernel}
    if b.chance(0.6):
        how["strides"] = [b.integer(1, 3) for _ in space]
    if dilated and b.chance(0.3):
        how["dilations"] = [b.integer(1, 1 + (d > 2 * k)) for d, k in zip(space, kernel, strict=True)]
    if b.chance(0.2):
        how["auto_pad"] = b.pick(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    elif b.chance(0.6):
        how["pads"] = [b.integer(0, k - 1) for k in kernel * 2]
    if ceil and b.chance(0.3):
        how["ceil_mode"] = 1
    return how, kernel


def _image(b: Builder, op):
    return b.source(b.types(op), low=3, high=5, check=lambda shape: min(shape) > 0)


def _channels(b: Builder, channels):
    """The number of groups, and of channels that leave."""
    groups = b.pick([1, 1, 1, *(d for d in (2, 3, 4, channels) if channels % d == 0)])
    return groups, groups * b.integer(1, 5)


def conv(b: Builder):
    x = _image(b, "Conv")
    shape, dtype = b.of(x), b.values[x].dtype
    how, kernel = _geometry(b, shape)
    groups, out = _channels(b, shape[1])
    inputs = [x, b.parameter(dtype, [out, shape[1] // groups, *kernel])]
    if b.chance(0.5):
        inputs.append(b.parameter(dtype, [out]))
    return b.add("Conv", inputs, group=groups if groups > 1 or b.chance(0.3) else None, **how)


def conv_transpose(b: Builder):
    x = _image(b, "ConvTranspose")
    shape, dtype = b.of(x), b.values[x].dtype
    how, kernel = _geometry(b, shape)
    groups, out = _channels(b, shape[1])
    strides = how.get("strides", [1] * len(kernel))
    if b.chance(0.3):
        how["output_padding"] = [b.integer(0, s - 1) for s in strides]
    elif b.chance(0.2):
        how.pop("pads", None)
        grown = zip(shape[2:], strides, kernel, strict=True)
        how["output_shape"] = [max(1, (d - 1) * s + k - b.integer(0, 1)) for d, s, k in grown]
    inputs = [x, b.parameter(dtype, [shape[1], out // groups, *kernel])]
    if b.chance(0.5):
        inputs.append(b.parameter(dtype, [out]))
    return b.add("ConvTranspose", inputs, group=groups if groups > 1 else None, **how)


def average_pool(b: Builder):
    x = _image(b, "AveragePool")
    how, _ = _geometry(b, b.of(x), ceil=b.opset >= 10, dilated=b.opset >= 19)
    return b.add("AveragePool", [x], count_include_pad=b.pick([None, 0, 1]), **how)


def max_pool(b: Builder):
    x = _image(b, "MaxPool")
    how, _ = _geometry(b, b.of(x), ceil=b.opset >= 10, dilated=b.opset >= 10)
    order = b.pick([None, None, 1])
    return b.add("MaxPool", [x], 2 if b.opset >= 8 and b.chance(0.3) else 1, storage_order=order, **how)


def lp_pool(b: Builder):
    x = _image(b, "LpPool")
    how, _ = _geometry(b, b.of(x), ceil=b.opset >= 18, dilated=b.opset >= 18)
    return b.add("LpPool", [x], p=b.pick([None, 1, 2, 3]), **how)


def max_unpool(b: Builder):
    x = b.source(["float32"], low=4, high=4, check=lambda s: min(s[2:]) >= 2)
    values, places = b.add("MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2]) or ["", ""]
    return b.add("MaxUnpool", [values, places], kernel_shape=[2, 2], strides=[2, 2]) if values else []


def deform_conv(b: Builder):
    x = b.source(["float32"], low=4, high=4, check=lambda s: min(s) > 0 and min(s[2:]) >= 3)
    n, c, h, w = b.of(x)
    groups, deformed = b.pick([d for d in (1, 2, 3) if c % d == 0]), b.pick([d for d in (1, 2, 3) if c % d == 0])
    filters = groups * b.integer(1, 3)
    weight = b.parameter("float32", [filters, c // groups, 2, 2])
    offset = b.parameter("float32", [n, 2 * 4 * deformed, h - 1, w - 1])
    bias = b.parameter("float32", [filters])
    more = b.pick([[], [bias], [bias, b.parameter("float32", [n, 4 * deformed, h - 1, w - 1])]])
    return b.add("DeformConv", [x, weight, offset, *more], kernel_shape=[2, 2], group=groups, offset_group=deformed)


def col2im(b: Builder):
    h, w, kh, kw = b.integer(3, 6), b.integer(3, 6), b.integer(1, 3), b.integer(1, 3)
    blocks = (h - kh + 1) * (w - kw + 1)
    x = b.source(["float32"], shape=[b.integer(1, 2), b.integer(1, 3) * kh * kw, blocks])
    return b.add("Col2Im", [x, b.integers([h, w]), b.integers([kh, kw])])


TABLE = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "AveragePool": average_pool,
    "MaxPool": max_pool,
    "LpPool": lp_pool,
    "MaxUnpool": max_unpool,
    "DeformConv": deform_conv,
    "Col2Im": col2im,
}
