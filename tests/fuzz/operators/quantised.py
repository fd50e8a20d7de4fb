"""Quantised operators, integer products, and signals."""

import numpy as np

from ..generate.builder import Builder, onnx_type


def _scale(b: Builder, shape=(), dtype="float32"):
    return b.constant(np.maximum(b.numbers("float32", shape, 0.01, 0.2), np.float32(0.01)), dtype)


def _bytes(b: Builder, dtype, shape):
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)
    array = b.numbers(dtype, shape, low, high)
    return b.input(array) if b.chance(0.6) else b.constant(array)


def _zero(b: Builder, dtype, shape=()):
    return b.constant(b.numbers(dtype, shape, 0, 20))


def _spread(b: Builder, shape):
    """The shape of scales and zero points: one, or one for each place of an axis or for each block of it."""
    if b.opset < 13 or not shape or 0 in shape or b.chance(0.6):
        return (), {}
    axis = b.axis(len(shape))
    if b.opset < 21 or b.chance(0.5):
        return (shape[axis],), {"axis": axis}
    block, each = b.integer(2, 4), list(shape)
    each[axis] = -(-shape[axis] // block)
    return each, {"axis": axis, "block_size": block}


def quantize(b: Builder):
    x = b.source(["float32", "float32", "float16"] if b.opset >= 19 else ["float32"])
    dtype = b.pick(["uint8", "int8", *(["uint16", "int16"] * (b.opset >= 21))])
    shape, how = _spread(b, b.of(x))
    rest = [_zero(b, dtype, shape)] if b.chance(0.7) or (dtype != "uint8" and b.opset < 21) else []
    named = None if rest or dtype == "uint8" else onnx_type(dtype)
    return b.add("QuantizeLinear", [x, _scale(b, shape, b.values[x].dtype), *rest], output_dtype=named, **how)


def dequantize(b: Builder):
    x = b.source(["uint8", "int8", *(["int32"] * b.chance(0.2)), *(["int16", "uint16"] * (b.opset >= 21))])
    shape, how = _spread(b, b.of(x))
    dtype, wanted = b.values[x].dtype, "float16" if b.opset >= 19 and b.chance(0.2) else "float32"
    rest = [_zero(b, dtype, shape)] if b.chance(0.7) and dtype != "int32" else []
    return b.add("DequantizeLinear", [x, _scale(b, shape, wanted), *rest], **how)


def dynamic(b: Builder):
    return b.add("DynamicQuantizeLinear", [b.source(["float32"])], 3)


def _matrices(b: Builder):
    m, k, n = b.integer(1, 6), b.integer(1, 9), b.integer(1, 6)
    kinds = b.pick([("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8")])
    batch = list(b.shape(0, 2))
    of_both = batch if b.chance(0.3) else []
    return kinds, _bytes(b, kinds[0], [*batch, m, k]), _bytes(b, kinds[1], [*of_both, k, n])


def _of_columns(b: Builder, weights, kind):
    """A scale and a zero point of a matrix, or of each of its columns."""
    shape = b.of(weights)[-1:] if len(b.of(weights)) == 2 and b.chance(0.4) else ()
    return _scale(b, shape), _zero(b, kind, shape)


def matmul_integer(b: Builder):
    kinds, x, w = _matrices(b)
    zeros = [_zero(b, kinds[0]) if b.chance(0.7) else "", _of_columns(b, w, kinds[1])[1]]
    return b.add("MatMulInteger", [x, w, *zeros[: b.integer(0, 2)]])


def qlinear_matmul(b: Builder):
    kinds, x, w = _matrices(b)
    out = [_scale(b), _zero(b, kinds[0])]
    return b.add("QLinearMatMul", [x, _scale(b), _zero(b, kinds[0]), w, *_of_columns(b, w, kinds[1]), *out])


def _images(b: Builder):
    channels, kernel, size, axes = b.integer(1, 4), b.integer(1, 3), b.integer(3, 7), b.pick([1, 2, 2, 2, 3])
    groups = b.pick([1, 1, channels, *([2] * (channels % 2 == 0))])
    out = groups * b.integer(1, 3)
    kinds = b.pick([("uint8", "uint8"), ("uint8", "int8"), ("uint8", "int8"), ("int8", "int8")])
    x = _bytes(b, kinds[0], [b.integer(1, 2), channels, *([size] * axes)])
    w = _bytes(b, kinds[1], [out, channels // groups, *([kernel] * axes)])
    how = {
        "pads": [b.integer(0, kernel - 1) for _ in range(2 * axes)],
        "strides": b.pick([None, [2] * axes]),
        "dilations": b.pick([None, None, [1 + (2 * kernel < size)] * axes]),
        "group": groups,
    }
    if b.chance(0.2):
        del how["pads"]
        how["auto_pad"] = b.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    return x, w, kinds, out, how


def conv_integer(b: Builder):
    x, w, kinds, out, how = _images(b)
    zeros = [_zero(b, kinds[0]), _zero(b, kinds[1], b.pick([(), (), (out,)]))]
    return b.add("ConvInteger", [x, w, *zeros[: b.integer(0, 2)]], **how)


def qlinear_conv(b: Builder):
    x, w, kinds, out, how = _images(b)
    shape = b.pick([(), (out,)])
    inputs = [x, _scale(b), _zero(b, kinds[0]), w, _scale(b, shape), _zero(b, kinds[1], shape)]
    inputs += [_scale(b), _zero(b, kinds[0])]
    bias = [b.constant(b.numbers("int32", [out], -500, 500))] * b.integer(0, 1)
    return b.add("QLinearConv", [*inputs, *bias], **how)


def dft(b: Builder):
    complex_ = b.chance(0.3)
    rows = [b.integer(1, 3)] * b.integer(0, 1)
    kind = b.pick(["float32", "float32", "float64"])
    x = b.source([kind], shape=[b.integer(1, 2), b.integer(1, 9), *rows, 2 if complex_ else 1])
    axis = b.pick([1, 1 - len(b.of(x))])
    length = [b.integers(b.integer(2, 8))] if b.chance(0.3) else []
    how = {"onesided": b.pick([None, 1]) if not complex_ else None, "inverse": b.pick([None, 1]) if complex_ else None}
    if b.opset >= 20:
        return b.add("DFT", [x, *(length or [""]), b.integers(axis)], **how)
    return b.add("DFT", [x, *length], axis=b.pick([None, axis]), **how)


def stft(b: Builder):
    frame, step = b.integer(2, 6), b.integer(1, 4)
    x = b.source(["float32"], shape=[b.integer(1, 2), b.integer(8, 16), 1])
    window = b.constant(b.numbers("float32", [frame], 0, 1)) if b.chance(0.6) else ""
    last = [b.integers(frame)] if not window or b.chance(0.5) else []
    return b.add("STFT", [x, b.integers(step), window, *last], onesided=b.pick([None, 0, 1]))


def window(op):
    def make(b: Builder):
        return b.add(
            op, [b.integers(b.integer(1, 9))], periodic=b.pick([None, 0, 1]), output_datatype=b.pick([None, 1, 11])
        )

    return make


def mel(b: Builder):
    numbers = [b.integers(8), b.integers(16), b.integers(8000)]
    return b.add("MelWeightMatrix", [*numbers, *(b.constant(np.float32(f)) for f in (0, 4000))])


TABLE = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic,
    "MatMulInteger": matmul_integer,
    "QLinearMatMul": qlinear_matmul,
    "ConvInteger": conv_integer,
    "QLinearConv": qlinear_conv,
    "DFT": dft,
    "STFT": stft,
    "MelWeightMatrix": mel,
} | {op: window(op) for op in ("HannWindow", "HammingWindow", "BlackmanWindow")}
