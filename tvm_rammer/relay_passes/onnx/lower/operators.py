"""Put operators that TVM's ONNX frontend has into the place of some that it lacks."""

import math

import numpy as np
import onnx
from onnx import TensorProto

from ..emit import Constants, Emitter, NodeView, Types, replace_nodes
from ..read import MICROSOFT, default_opset
from .axes.operators import AXES
from .boxes import BOXES
from .classical import CLASSICAL
from .elementwise import ELEMENTWISE, element, in_single, numpy_type
from .fused.attention import ATTENTION
from .fused.diffusion import DIFFUSION
from .fused.early import EARLY
from .fused.norms import NORMS
from .fused.operators import FUSED
from .fused.withdrawn import WITHDRAWN
from .indexing.choose import INDEXING, windows
from .indexing.scatter import SCATTER
from .layers import LAYERS
from .norms.plain import PLAIN_NORMS
from .quantised.linear import LINEAR
from .quantised.operators import QUANTISED
from .reductions import REDUCTIONS
from .resize import RESIZES
from .spectra import SPECTRA

_FLOATS = {getattr(TensorProto, name) for name in ("FLOAT", "FLOAT16", "DOUBLE")}
_NARROW = {getattr(TensorProto, name) for name in ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32")}


MAY_WAIT = frozenset(
    [
        *("CumProd", "CumSum", "Det", "GroupQueryAttention", "MaxUnpool", "OneHot", "ReverseSequence"),
        *(name for _, name in QUANTISED),
    ]
)
"""Operators that need a constant, or sizes. Where there are none in the end they are computed, or refused
(`refuse_at_last`)."""


def lower_missing(model: onnx.ModelProto, *, last: bool = False) -> bool:
    """Replace integer products, quantised operators, spectra and the like by plain operators, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded, of opset 10 or later where it has any of them.
    last : bool
        Whether what then stays for want of a constant is refused.

    Returns
    -------
    bool
        Whether there were any. What depends on sizes or weights that are not known stays.
    """
    return replace_nodes(model, _Lowering(default_opset(model), last).replacement)


def is_lowered(node: onnx.NodeProto) -> bool:
    """Whether `lower_missing` may replace a node; it refuses what is impossible."""
    return _key(node) in _LOWERED


class _Lowering:
    """What takes the place of nodes, and which of their integer results are there in floating point, too."""

    def __init__(self, opset: int, last: bool) -> None:
        self._opset = opset
        self._last = last
        self._reals: dict[str, str] = {}

    def replacement(self, node: onnx.NodeProto, constants: Constants, types: Types) -> Emitter | None:
        """What takes a node's place, as `replace_nodes` wants it."""
        view = NodeView(node, constants, types, self._last)
        emit = self._in_floating_point(view) or self._lowered(view)
        for name in node.output:  # another branch of an If may have used the name
            self._reals.pop(name, None)
        self._reals.update(emit.reals if emit else {})
        return emit

    def _lowered(self, node: NodeView) -> Emitter | None:
        lower = _LOWERED.get(_key(node.node))
        # What comes of an operator that onnx does not know has no type before that is lowered.
        if lower is None or (node.node.domain == MICROSOFT and node.types and node.input(0) not in node.types):
            return None
        return lower(node, Emitter(node.node, self._opset, node.float_dtype(), "lowered"))

    def _in_floating_point(self, node: NodeView) -> Emitter | None:
        """Integers become numbers of floating point that they have been, and biases are added to these, too."""
        kind, known = node.node.op_type, [self._reals.get(name) for name in node.node.input]
        if not any(known):
            return None
        emit = Emitter(node.node, self._opset, how="lowered")
        if kind == "Cast" and known[0] and node.attribute("to", 0) == TensorProto.FLOAT:
            emit.name(known[0], node.output)
        elif kind == "Add":
            emit.last("Add", *node.node.input, outputs=node.node.output)
            terms = [r or emit("Cast", n, to=TensorProto.FLOAT) for r, n in zip(known, node.node.input, strict=True)]
            emit.reals[node.output] = emit("Add", *terms)
        else:
            return None
        return emit


def _key(node: onnx.NodeProto) -> tuple[str, str]:
    return "" if node.domain == "ai.onnx" else node.domain, node.op_type


def _cast(node: NodeView, emit: Emitter) -> Emitter | None:
    """To a narrow integer by way of int64: what is too large wraps around, as by the many steps of TVM's frontend."""
    kind = node.types.get(node.input(0))
    if kind is None or kind.elem_type not in _FLOATS or node.attribute("to", 0) not in _NARROW:
        return None
    wide = emit("Cast", node.input(0), to=TensorProto.INT64)
    emit.last("Cast", wide, outputs=node.node.output, to=node.attribute("to", 0))
    return emit


def _reverse_sequence(node: NodeView, emit: Emitter) -> Emitter | None:
    """Each sequence of a batch backwards, as far as it goes."""
    sizes = node.extents(0) if node.last else node.dims(0)
    if sizes is None or emit.opset < 12:
        return None
    time, batch = node.attribute("time_axis", 0), node.attribute("batch_axis", 1)
    node.require({time, batch} == {0, 1}, f"axes {batch} and {time} of batch and time, which are 0 and 1")
    order = [batch, time, *range(2, len(sizes))]
    one = emit.constant(np.array(1, np.int64))
    length = emit.axes("Unsqueeze", node.input(1), 1)
    steps = _steps(emit, node.input(0), time, sizes[time])
    index = emit("Where", emit("Less", steps, length), emit("Sub", emit("Sub", length, one), steps), steps)
    index = emit.axes("Unsqueeze", index, 2)
    value = emit("GatherND", emit("Transpose", node.input(0), perm=order), index, batch_dims=1)
    emit.name(emit("Transpose", value, perm=[int(i) for i in np.argsort(order)]), node.output)
    return emit


def _steps(emit: Emitter, value: str, axis: int, size: int | None) -> str:
    """The positions of an axis, as a row."""
    if size is not None:
        return emit.constant(np.arange(size, dtype=np.int64)[None])
    none, one = (emit.constant(np.array(n, np.int64)) for n in (0, 1))
    count = emit("Gather", emit("Shape", value), emit.constant(np.array(axis, np.int64)), axis=0)
    return emit.axes("Unsqueeze", emit("Range", none, count, one), 0)


def _lp_normalization(node: NodeView, emit: Emitter) -> Emitter | None:
    """Each element by the norm of its axis; zeros stay zeros."""
    dims, power = node.extents(0), node.attribute("p", 2)
    if dims is None or power not in (1, 2):
        return None
    axis, elem = node.attribute("axis", -1), element(node, 0)
    node.require(-len(dims) <= axis < len(dims), f"axis {axis} of {len(dims)} axes")
    half = elem == TensorProto.BFLOAT16
    value = emit("Cast", node.input(0), to=TensorProto.FLOAT) if half else node.input(0)
    if emit.opset < 18:
        norm = emit(f"ReduceL{power}", value, axes=[axis])
    else:
        norm = emit(f"ReduceL{power}", value, emit.constant(np.array([axis], np.int64)))
    zero = emit("Equal", norm, emit.number(0.0))
    normal = emit("Div", value, emit("Where", zero, emit.number(1.0), norm))
    emit.name(emit("Cast", normal, to=elem) if half else normal, node.output)
    return emit


def _lrn(node: NodeView, emit: Emitter) -> Emitter | None:
    """Of another type than float32, which TVM's frontend has its constants in: the mean of squares is a pool."""
    dims, elem = node.dims(0), element(node, 0)
    if dims is None or len(dims) < 3 or elem in (None, TensorProto.FLOAT):
        return None
    wide = TensorProto.DOUBLE if elem == TensorProto.DOUBLE else TensorProto.FLOAT
    size, before = node.attribute("size", 1), (node.attribute("size", 1) - 1) // 2
    value = emit("Cast", node.input(0), to=wide)
    squares = emit.reshape(emit("Mul", value, value), [dims[0], 1, dims[1], math.prod(dims[2:])])
    pads = [before, 0, size - 1 - before, 0]
    mean = emit("AveragePool", squares, kernel_shape=[size, 1], pads=pads, count_include_pad=1)
    alpha, beta, bias = (
        emit.constant(np.array(node.attribute(name, default), numpy_type(wide)))
        for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    power = emit("Pow", emit("Add", bias, emit("Mul", alpha, emit.reshape(mean, dims))), beta)
    emit.name(emit("Cast", emit("Div", value, power), to=elem), node.output)
    return emit


def _col2im(node: NodeView, emit: Emitter) -> Emitter | None:
    """Blocks added up where they lie in the image: each of its elements is a sum of some that are gathered."""
    image, block, dims = node.array(1), node.array(2), node.dims(0)
    if image is None or block is None or dims is None:
        return None
    size, spatial = math.prod(block.tolist()), len(block)
    strides = node.attribute("strides", [1] * spatial)
    dilations = node.attribute("dilations", [1] * spatial)
    pads = node.attribute("pads", [0] * 2 * spatial)
    padded = [n + pads[i] + pads[i + spatial] for i, n in enumerate(image.tolist())]
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, block.tolist(), strict=True)]
    blocks = [(n - r) // s + 1 for n, r, s in zip(padded, reach, strides, strict=True)]
    index, lies = windows(image.tolist(), block.tolist(), strides, pads, dilations, blocks)
    terms = _terms(index.T.ravel(), lies.T.ravel(), math.prod(image.tolist()))
    channels = dims[1] // size
    inside = terms >= 0
    value = emit.reshape(node.input(0), [dims[0], channels, size * math.prod(blocks)])
    value = emit("Gather", value, emit.constant(np.where(inside, terms, 0)), axis=2)
    value = emit("Where", emit.constant(inside), value, emit.constant(np.zeros((), numpy_type(element(node, 0)))))
    value = emit("ReduceSum", value, emit.constant(np.array([3], np.int64)), keepdims=0)
    emit.name(emit.reshape(value, [dims[0], channels, *image.tolist()]), node.output)
    return emit


def _terms(places: np.ndarray, lies: np.ndarray, count: int) -> np.ndarray:
    """Which elements go to each of `count` places, -1 where they are fewer; what does not lie in any is left out.

    Its shape is [places, elements].
    """
    given = np.flatnonzero(lies)
    order = given[np.argsort(places[given], kind="stable")]
    counts = np.bincount(places[given], minlength=count)
    terms = np.full((count, max(1, counts.max(initial=0))), -1, np.int64)
    terms[places[order], np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)] = order
    return terms


_LOWERED = {
    ("", "Cast"): _cast,
    ("", "ReverseSequence"): _reverse_sequence,
    ("", "LpNormalization"): _lp_normalization,
    ("", "LRN"): _lrn,
    ("", "Col2Im"): _col2im,
    **ATTENTION,
    **AXES,
    **BOXES,
    **CLASSICAL,
    **DIFFUSION,
    **EARLY,
    **ELEMENTWISE,
    **FUSED,
    **INDEXING,
    **LAYERS,
    **LINEAR,
    **NORMS,
    **PLAIN_NORMS,
    **REDUCTIONS,
    **RESIZES,
    **SCATTER,
    **SPECTRA,
    **QUANTISED,
    **WITHDRAWN,
}

_SUMS = ("CumProd", "CumSum", "Einsum", "GlobalLpPool", "LpNormalization", "LpPool", "LRN", "ReduceL2")
_LOWERED |= {("", kind): in_single(_LOWERED.get(("", kind))) for kind in _SUMS}
