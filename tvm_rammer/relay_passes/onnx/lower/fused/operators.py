"""Operators into which ONNX Runtime's optimisers fuse others, and products with weights of few bits, as others again.

The models that those optimisers write, and language models whose weights are in blocks of few bits, are exchanged as
files. What is fused here is decided later, for the kernels at hand; weights become single precision when the model is
compiled.
"""

import math
from collections.abc import Mapping

import numpy as np

from ...emit import Emitter, NodeView
from ..elementwise import in_single

_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_GEMM = ("alpha", "beta", "transA", "transB")
_ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    "": (), "Relu": (), "Sigmoid": (), "Tanh": (), "LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"),
}  # fmt: skip
"""What may follow a product, and which parameters each has, in order."""
_BITS = (2, 4, 8)
"""Of weights that are packed into bytes."""


def _fused_matmul(node: NodeView, emit: Emitter) -> Emitter | None:
    """With factors that are turned, and whose first axis is that of the rows, before those of the batch."""
    dims = [node.dims(0), node.dims(1)]
    if any(d is None for d in dims):
        return None
    factors = []
    for index, side in enumerate("AB"):
        rank = len(dims[index] or ())
        order = list(range(rank))
        if node.attribute(f"transBatch{side}", 0) and rank > 2:
            order = [*order[1:-1], 0, rank - 1]
        if node.attribute(f"trans{side}", 0) and rank > 1:
            order[-2:] = order[:-3:-1]
        same = order == list(range(rank))
        factors.append(node.input(index) if same else emit("Transpose", node.input(index), perm=order))
    value, alpha = emit("MatMul", *factors), node.attribute("alpha", 1.0)
    emit.name(value if alpha == 1.0 else emit("Mul", value, emit.number(alpha)), node.output)
    return emit


def _fused_conv(node: NodeView, emit: Emitter) -> Emitter | None:
    inputs = [name for name in (node.input(i) for i in range(3)) if name]
    value = emit("Conv", *inputs, **node.given(_CONV))
    if node.input(3):
        value = emit("Add", value, node.input(3))
    return _activated(node, emit, value, node.attribute("activation_params", []))


def _fused_gemm(node: NodeView, emit: Emitter) -> Emitter | None:
    inputs = [name for name in (node.input(i) for i in range(3)) if name]
    given = node.given(("activation_alpha", "activation_beta"))
    return _activated(node, emit, emit("Gemm", *inputs, **node.given(_GEMM)), list(given.values()))


def _activated(node: NodeView, emit: Emitter, value: str, parameters: list[float]) -> Emitter | None:
    kind = node.attribute("activation", b"").decode()
    names = _ACTIVATIONS.get(kind)
    if names is None or len(parameters) < len(names):
        return None
    if kind == "Clip":
        value = emit("Clip", value, *map(emit.number, parameters[:2]))
    elif kind:
        value = emit(kind, value, **dict(zip(names, parameters, strict=False)))
    emit.name(value, node.output)
    return emit


def _quick_gelu(node: NodeView, emit: Emitter) -> Emitter:
    x = node.input(0)
    gate = emit("Sigmoid", emit("Mul", x, emit.number(node.attribute("alpha", 1.702))))
    emit.name(emit("Mul", x, gate), node.output)
    return emit


def _gelu(node: NodeView, emit: Emitter) -> Emitter:
    x = _biased(node, emit)
    half = emit("Mul", x, emit.number(0.5))
    curve = emit("Erf", emit("Mul", x, emit.number(math.sqrt(0.5))))
    emit.name(emit("Mul", half, emit("Add", curve, emit.number(1.0))), node.output)
    return emit


def _fast_gelu(node: NodeView, emit: Emitter) -> Emitter:
    """By a hyperbolic tangent of a cubic polynomial (Hendrycks and Gimpel, Gaussian Error Linear Units, 2)."""
    x = _biased(node, emit)
    cubic = emit("Mul", emit("Mul", emit("Mul", x, x), x), emit.number(0.044715))
    curve = emit("Tanh", emit("Mul", emit("Add", x, cubic), emit.number(math.sqrt(2 / math.pi))))
    emit.name(emit("Mul", emit("Mul", x, emit.number(0.5)), emit("Add", curve, emit.number(1.0))), node.output)
    return emit


def _biased(node: NodeView, emit: Emitter) -> str:
    return emit("Add", node.input(0), node.input(1)) if node.input(1) else node.input(0)


def _matmul_nbits(node: NodeView, emit: Emitter) -> Emitter | None:
    """A product with weights that are stored in blocks, each with a scale and a zero point of its own."""
    packed, scales, zeros = node.array(1), node.array(2), node.array(3)
    depth, columns, bits, size = (node.attribute(name, 0) for name in ("K", "N", "bits", "block_size"))
    bits = bits or 4
    if packed is None or scales is None or (node.input(3) and zeros is None) or node.input(4) or bits not in _BITS:
        return None
    blocks = math.ceil(depth / max(1, size))
    node.require(
        size > 0 and packed.size == columns * blocks * size * bits // 8 and scales.size == columns * blocks,
        f"weights of {packed.size} bytes and {scales.size} scales, which do not fit K {depth}, N {columns}, "
        f"bits {bits} and block_size {size}",
    )
    if zeros is not None:
        count = columns * (math.ceil(blocks * bits / 8) if zeros.dtype == np.uint8 else blocks)
        node.require(
            zeros.size == count, f"{zeros.size} zero points, which are {count} for {columns} x {blocks} blocks"
        )
    weights = _numbers(packed.reshape(columns, -1), bits).reshape(columns, blocks, size).astype(np.float32)
    weights = weights - _offsets(zeros, bits, columns, blocks)
    weights = weights * scales.reshape(columns, blocks, 1).astype(np.float32)
    table = weights.reshape(columns, -1)[:, :depth].T.astype(emit.dtype)
    value = emit("MatMul", node.input(0), emit.constant(np.ascontiguousarray(table)))
    emit.name(emit("Add", value, node.input(5)) if node.input(5) else value, node.output)
    return emit


def _gather_blocks(node: NodeView, emit: Emitter) -> Emitter | None:
    """Rows of a table that is stored in blocks, as that of MatMulNBits; on any axis."""
    packed, scales, zeros = node.array(0), node.array(2), node.array(3)
    if packed is None or scales is None or (node.input(3) and zeros is None):
        return None
    bits, size = (node.attribute(name, default) for name, default in (("bits", 4), ("block_size", 128)))
    in_bytes = packed.dtype == np.uint8
    if size <= 0 or (in_bytes and bits not in _BITS) or (not in_bytes and packed.dtype.itemsize > 1):
        return None
    table = _unpacked(packed, bits) if in_bytes else packed
    axis = node.attribute("quantize_axis", 1)
    node.require(-table.ndim <= axis < table.ndim, f"quantize_axis {axis} of the shape {list(table.shape)}")
    blocks = list(table.shape)
    blocks[axis] = math.ceil(blocks[axis] / size)
    offsets = np.full(blocks, 1 << (bits - 1) if in_bytes else 0)
    if zeros is not None:
        offsets = _unpacked(zeros, bits)[..., : blocks[-1]] if in_bytes else zeros
    node.require(
        list(scales.shape) == blocks == list(offsets.shape),
        f"scales of the shape {list(scales.shape)} and zero points of {list(offsets.shape)}, which are to be {blocks}",
    )
    place = np.arange(table.shape[axis]) // size
    numbers = table.astype(np.float32) - offsets.astype(np.float32).take(place, axis)
    numbers = (numbers * scales.astype(np.float32).take(place, axis)).astype(scales.dtype)
    rows = emit("Gather", emit.constant(numbers), node.input(1), axis=node.attribute("gather_axis", 0))
    emit.name(rows, node.output)
    return emit


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """The numbers in the bytes of the last axis."""
    return _numbers(packed.reshape(-1, packed.shape[-1]), bits).reshape(*packed.shape[:-1], -1)


def _offsets(zeros: np.ndarray | None, bits: int, columns: int, blocks: int) -> np.ndarray:
    """The zero point of each block, of the shape [columns, blocks, 1]; half of the range where there are none."""
    if zeros is None:
        return np.full((columns, blocks, 1), 1 << (bits - 1), np.float32)
    if zeros.dtype == np.uint8:
        zeros = _numbers(zeros.reshape(columns, -1), bits)[:, :blocks]
    return zeros.reshape(columns, blocks, 1).astype(np.float32)


def _numbers(packed: np.ndarray, bits: int) -> np.ndarray:
    """Rows of bytes as rows of numbers; of several in a byte the first is in the lowest bits."""
    mask = (1 << bits) - 1
    return np.stack([packed >> shift & mask for shift in range(0, 8, bits)], axis=-1).reshape(len(packed), -1)


FUSED = {
    ("com.microsoft", "BiasGelu"): in_single(_gelu),
    ("com.microsoft", "FastGelu"): in_single(_fast_gelu),
    ("com.microsoft", "FusedConv"): _fused_conv,
    ("com.microsoft", "FusedGemm"): _fused_gemm,
    ("com.microsoft", "FusedMatMul"): _fused_matmul,
    ("com.microsoft", "GatherBlockQuantized"): _gather_blocks,
    ("com.microsoft", "Gelu"): in_single(_gelu),
    ("com.microsoft", "MatMulNBits"): _matmul_nbits,
    ("com.microsoft", "QuickGelu"): in_single(_quick_gelu),
    ("com.microsoft", "TransposeMatMul"): _fused_matmul,
}
"""By domain and name."""
