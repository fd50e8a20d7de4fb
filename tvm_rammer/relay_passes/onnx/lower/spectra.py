"""Fourier transforms of a known length, as products with constant matrices; windows, as constants.

The frames of speech are short, and one product serves all of them; a fast transform would be many small operators.
"""

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from ..emit import Emitter, NodeView
from .elementwise import numpy_type

_LONGEST = 1 << 20
"""Elements of a window that is a constant; others are computed, where they can be addressed."""


def _dft(node: NodeView, emit: Emitter) -> Emitter | None:
    """ONNX's DFT of one axis: a signal [..., n, ..., 1 or 2] becomes [..., m, ..., 2], or a spectrum a real one."""
    dims, length = node.dims(0), node.array(1)
    given = node.array(2)
    if dims is None or (node.input(1) and length is None) or (node.input(2) and given is None):
        return None
    inverse, onesided = bool(node.attribute("inverse", 0)), bool(node.attribute("onesided", 0))
    default = -2 if emit.opset >= 20 else 1
    axis = int(given) if given is not None else node.attribute("axis", default)
    rank, parts = len(dims), dims[-1]
    node.require(-rank <= axis < rank and axis not in (-1, rank - 1), f"axis {axis} of the shape {dims}")
    axis %= rank
    n = dims[axis]
    whole = 2 * (n - 1) if inverse and onesided else n
    size = int(length) if length is not None else whole
    node.require(size > 0 and parts in (1, 2), f"length {size} and shape {dims}")
    basis = (_real_basis(size) if inverse and onesided else _basis(size, onesided, inverse))[:, :parts]
    rows = np.zeros((n, *basis.shape[1:]), emit.dtype)
    rows[: len(basis)] = basis[:n]
    order = [*(a for a in range(rank - 1) if a != axis), axis, rank - 1]
    lead = [dims[a] for a in order[:-2]]
    value = emit.reshape(emit("Transpose", node.input(0), perm=order), [*lead, n * parts])
    value = emit("MatMul", value, emit.constant(rows.reshape(n * parts, -1)))
    value = emit.reshape(value, [*lead, *basis.shape[2:]])
    emit.name(emit("Transpose", value, perm=[int(i) for i in np.argsort(order)]), node.output)
    return emit


def _stft(node: NodeView, emit: Emitter) -> Emitter | None:
    """ONNX's STFT: a signal [batch, n, 1 or 2] becomes [batch, frames, m, 2], by a convolution with windowed waves."""
    dims, window, step, length = node.dims(0), node.dims(2), node.array(1), node.array(3)
    if dims is None or step is None or (node.input(3) and length is None) or (node.input(2) and window is None):
        return None
    if length is not None:
        size = int(length)
    elif window:
        size = window[0]
    else:
        return None
    parts = dims[2] if len(dims) == 3 else 1
    node.require(
        0 < size <= dims[1] and int(step) > 0 and parts in (1, 2),
        f"frames of {size} samples every {int(step)} of a signal of the shape {dims}",
    )
    node.require(not window or window == [size], f"a window of the shape {window} for frames of {size}")
    onesided = bool(node.attribute("onesided", 1))
    basis = _basis(size, onesided, False)[:, :parts]
    waves = emit.constant(basis.transpose(2, 3, 1, 0).reshape(-1, parts, size).astype(emit.dtype))
    if window:
        waves = emit("Mul", waves, emit.reshape(node.input(2), [1, 1, size]))
    signal = emit.reshape(node.input(0), [dims[0], dims[1], parts])
    frames = emit("Conv", emit("Transpose", signal, perm=[0, 2, 1]), waves, strides=[int(step)])
    frames = emit("Transpose", frames, perm=[0, 2, 1])
    count = (dims[1] - size) // int(step) + 1
    emit.name(emit.reshape(frames, [dims[0], count, basis.shape[2], 2]), node.output)
    return emit


def _basis(length: int, onesided: bool, inverse: bool) -> np.ndarray:
    """What each sample adds to each frequency, by their parts, real first: [length, 2, frequencies, 2]."""
    frequencies = length // 2 + 1 if onesided else length
    turns = np.outer(np.arange(length), np.arange(frequencies)) % length / length
    angle = (2 if inverse else -2) * np.pi * turns
    cos, sin = np.cos(angle), np.sin(angle)
    basis = np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], 1)
    return basis / (length if inverse else 1)


def _real_basis(length: int) -> np.ndarray:
    """What each frequency of a real signal adds to its samples: [frequencies, 2, length, 1].

    Those that are left out are conjugates of others, and add as much as these.
    """
    basis = _basis(length, False, True)[: length // 2 + 1, :, :, :1]
    frequency = np.arange(len(basis))
    alone = (frequency == 0) | (2 * frequency == length)
    return basis * np.where(alone, 1, 2).reshape(-1, 1, 1, 1)


def _window(*factors: float) -> Callable[[NodeView, Emitter], Emitter | None]:
    """A sum of cosines (Harris, On the use of windows, 1978): as exact as its type. ONNX's definition is of float32."""

    def lower(node: NodeView, emit: Emitter) -> Emitter | None:
        size = node.array(0)
        count = 0 if size is None else int(size.item())
        steps = count if node.attribute("periodic", 1) else count - 1
        if steps <= 0 or count > _LONGEST:
            return None
        turn = 2 * np.pi * np.arange(count) / steps
        window = sum((-1) ** n * factor * np.cos(n * turn) for n, factor in enumerate(factors))
        dtype = numpy_type(node.attribute("output_datatype", TensorProto.FLOAT))
        emit.name(emit.constant(np.asarray(window, dtype)), node.output)
        return emit

    return lower


SPECTRA = {
    ("", "BlackmanWindow"): _window(0.42, 0.5, 0.08),
    ("", "DFT"): _dft,
    ("", "HammingWindow"): _window(25 / 46, 21 / 46),
    ("", "HannWindow"): _window(0.5, 0.5),
    ("", "STFT"): _stft,
}
"""By domain and name."""
