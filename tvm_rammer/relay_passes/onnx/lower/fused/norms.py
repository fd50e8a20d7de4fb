"""Norms of rows as ONNX Runtime's optimisers write them: of sums, by the root of the mean square, before opset 17."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from onnx import TensorProto

from ...emit import Emitter, NodeView
from ..elementwise import element
from ..norms.moments import deviation, mean_over, moments, wide_dtype, widened

_SKIP_EPSILON = 1e-12
_PLAIN_EPSILON = 1e-5
_SINCE = 17
"""The first opset with LayerNormalization."""


def layer_norm(emit: Emitter, value: str, parameters: list[str], epsilon: float, axes: list[int] | None = None) -> str:
    """Normalise rows; before opset 17 by other operators.

    Parameters
    ----------
    emit : Emitter
    value : str
    parameters : list of str
        The scale, and perhaps what is added.
    epsilon : float
    axes : list of int, optional
        All from one on, counted from the last; the last one by default.
    """
    axes = axes or [-1]
    if emit.opset >= _SINCE:
        return emit("LayerNormalization", value, *parameters, axis=axes[0], epsilon=epsilon)
    return _Rows.of(emit, value, epsilon, axes).scaled(emit, parameters)


def root_mean_square(emit: Emitter, value: str, scale: str, epsilon: float) -> str:
    """Divide rows by the root of their mean square."""
    return _Rows.of(emit, value, epsilon, [-1], centred=False).scaled(emit, [scale])


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows as they are normalised, in single precision where they are of half.

    Parameters
    ----------
    mean : str
        Empty where it is not taken away.
    rest : str
        What is left of each number without it.
    root : str
        Of the mean square of that.
    """

    mean: str
    rest: str
    root: str

    @classmethod
    def of(cls, emit: Emitter, value: str, epsilon: float, axes: list[int], *, centred: bool = True) -> Self:
        """By nodes for the moments."""
        x, mean = widened(emit, value), ""
        if centred:
            mean, rest, square = moments(emit, x, axes)
        else:
            rest, square = x, mean_over(emit, emit("Mul", x, x), axes)
        return cls(mean, rest, deviation(emit, square, epsilon, wide_dtype(emit)))

    def scaled(self, emit: Emitter, parameters: list[str], elem: int = 0) -> str:
        """Multiply by the first parameter, add the second; of the rows' type, or the one that is asked for."""
        made, half = emit("Div", self.rest, self.root), emit.is_half
        for kind, parameter in zip(("Mul", "Add"), parameters, strict=False):
            made = emit(kind, made, emit("Cast", parameter, to=TensorProto.FLOAT) if half else parameter)
        return emit("Cast", made, to=elem or emit.elem) if half else made

    def name_moments(self, emit: Emitter, mean: str, inverse: str) -> None:
        """Give names to the mean and to the inverse of the root; none where they are empty."""
        for value, name in ((self.mean, mean), (emit("Reciprocal", self.root) if inverse else "", inverse)):
            if name:
                emit.name(value, name)


def _layer_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    return _plain(node, emit, centred=True)


def _simplified_layer_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    """By the root of the mean square; what else it gives is the inverse of that."""
    return _plain(node, emit, centred=False)


def _plain(node: NodeView, emit: Emitter, *, centred: bool) -> Emitter | None:
    dims, axis = node.dims(0), node.attribute("axis", -1)
    if dims is None:
        return None
    node.require(-len(dims) <= axis < len(dims), f"axis {axis} of the shape {dims}")
    axes = list(range(axis % len(dims) - len(dims), 0))
    parameters = [name for name in (node.input(1), node.input(2)) if name]
    rows = _Rows.of(emit, node.input(0), node.attribute("epsilon", _PLAIN_EPSILON), axes, centred=centred)
    emit.name(rows.scaled(emit, parameters, element(node, 1)), node.output)
    further = [*node.node.output[1:], "", ""]
    rows.name_moments(emit, *(further[:2] if centred else ("", further[0])))
    return emit


def _skip_layer_norm(node: NodeView, emit: Emitter) -> Emitter:
    total, parameters = _summed(node, emit, [0, 1, 4]), [name for name in (node.input(2), node.input(3)) if name]
    epsilon = node.attribute("epsilon", _SKIP_EPSILON)
    if not any(node.node.output[1:3]):
        emit.name(layer_norm(emit, total, parameters, epsilon), node.output)
        return emit
    names = [*node.node.output[1:3], "", ""][:2]
    return _skipped(node, emit, _Rows.of(emit, total, epsilon, [-1]), parameters, names)


def _skip_simplified_layer_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    """These rows keep their mean: as a result it is 0."""
    dims, (mean, inverse) = node.dims(0), [*node.node.output[1:3], "", ""][:2]
    if mean and dims is None:
        return None
    if mean:
        emit.name(emit.constant(np.zeros([*(dims or [])[:-1], 1], np.float32)), mean)
    total, epsilon = _summed(node, emit, [0, 1, 3]), node.attribute("epsilon", _SKIP_EPSILON)
    return _skipped(node, emit, _Rows.of(emit, total, epsilon, [-1], centred=False), [node.input(2)], ["", inverse])


def _skipped(node: NodeView, emit: Emitter, rows: _Rows, parameters: list[str], names: list[str]) -> Emitter:
    """Rows of a sum, and their moments, as results."""
    emit.name(rows.scaled(emit, parameters), node.output)
    rows.name_moments(emit, *names)
    return emit


def _summed(node: NodeView, emit: Emitter, terms: list[int]) -> str:
    """The sum that is normalised, which is the fourth result, too."""
    first, *others = (node.input(i) for i in terms if node.input(i))
    for other in others:
        first = emit("Add", first, other)
    if any(node.node.output[3:4]):
        emit.name(first, node.node.output[3])
    return first


NORMS = {
    ("com.microsoft", "LayerNormalization"): _layer_norm,
    ("com.microsoft", "SimplifiedLayerNormalization"): _simplified_layer_norm,
    ("com.microsoft", "SkipLayerNormalization"): _skip_layer_norm,
    ("com.microsoft", "SkipSimplifiedLayerNormalization"): _skip_simplified_layer_norm,
}
"""By domain and name."""
