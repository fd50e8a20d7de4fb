"""Convolutions and pools."""

import math

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
    if b.chance(0.2):
        del how["kernel_shape"]  # the weights say it
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
    if b.chance(0.2):
        del how["kernel_shape"]
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
    x = b.source(["float32", "float32", "float64"], low=3, high=5, check=lambda s: min(s[2:]) >= 2 and min(s) > 0)
    shape = b.of(x)
    how = {"kernel_shape": [2] * (len(shape) - 2), "strides": [2] * (len(shape) - 2)}
    values, places = b.add("MaxPool", [x], 2, **how) or ["", ""]
    size = [b.integers(shape)] if b.chance(0.3) else []
    return b.add("MaxUnpool", [values, places, *size], **how) if values else []


def deform_conv(b: Builder):
    x = b.source(["float32"], low=4, high=4, check=lambda s: min(s) > 0 and min(s[2:]) >= 3)
    n, c, h, w = b.of(x)
    groups, deformed = b.pick([d for d in (1, 2, 3) if c % d == 0]), b.pick([d for d in (1, 2, 3) if c % d == 0])
    filters, kernel = groups * b.integer(1, 3), [b.integer(1, 3), b.integer(1, 3)]
    pads, strides = [b.integer(0, 1) for _ in range(4)], [b.integer(1, 2), b.integer(1, 2)]
    ends = zip((h, w), pads, pads[2:], kernel, strides, strict=False)
    places = [(d + p + q - k) // s + 1 for d, p, q, k, s in ends]
    taps = deformed * math.prod(kernel)
    weight = b.parameter("float32", [filters, c // groups, *kernel])
    offset = b.parameter("float32", [n, 2 * taps, *places])
    bias, mask = b.parameter("float32", [filters]), b.parameter("float32", [n, taps, *places])
    more = b.pick([[], [bias], [bias, mask], ["", mask]])
    how = {"kernel_shape": b.pick([None, kernel]), "pads": pads, "strides": strides}
    return b.add("DeformConv", [x, weight, offset, *more], group=groups, offset_group=deformed, **how)


def col2im(b: Builder):
    image = [b.integer(3, 6) for _ in range(b.pick([1, 2, 2, 3]))]
    block = [b.integer(1, 3) for _ in image]
    strides, dilations = ([b.pick([1, 1, 2]) for _ in image] for _ in range(2))
    pads = [b.integer(0, 1) * b.chance(0.4) for _ in range(2 * len(image))]
    room = [d + p + q for d, p, q in zip(image, pads, pads[len(image) :], strict=False)]
    counts = [(d - s * (k - 1) - 1) // step + 1 for d, s, k, step in zip(room, dilations, block, strides, strict=True)]
    shape = [b.integer(1, 2), b.integer(1, 3) * math.prod(block), math.prod(counts)]
    x = b.source(["float32", "float32", "float64"], shape=shape)
    how = {"strides": strides, "dilations": dilations, "pads": pads}
    return b.add("Col2Im", [x, b.integers(image), b.integers(block)], **how)


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
