"""Sizes that only the data say become tensors where TVM's frontend does not understand them.

To the frontend the result of a Shape is a shape, and an element of it a number, which are no tensors. It refuses them
in most places, compares them without knowing their values, and slices by them beyond the end of what there is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

import onnx

from ..emit import Constants, Emitter, NodeView, Types, replace_nodes
from ..read import default_opset


class Kind(Enum):
    """What a value is to the frontend: several sizes, one of them, a value that it computes itself, or a tensor."""

    SHAPE = auto()
    NUMBER = auto()
    CONSTANT = auto()
    TENSOR = auto()


@dataclass(frozen=True, slots=True)
class Value:
    """What a value is to the frontend, under which name, and how many sizes a shape has."""

    kind: Kind
    name: str
    count: int


_SIZES = {Kind.SHAPE, Kind.NUMBER}

Kinds = Sequence[Kind]
"""Of a node's inputs."""

Rule = Callable[[NodeView, Kinds], Kind | None]
"""What the frontend makes of a node that reads sizes; None where it does not understand them there."""


def make_tensors_of_sizes(model: onnx.ModelProto) -> None:
    """Put a Reshape, of which the frontend makes a tensor, before each node that must not read sizes, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        As `import_onnx` takes it. Its graphs have to be sorted.
    """
    values: dict[str, Value] = {}
    outputs = {value.name for value in model.graph.output}
    replace_nodes(model, partial(_replaced, default_opset(model), outputs, values))


def _replaced(
    opset: int,
    outputs: set[str],
    values: dict[str, Value],
    node: onnx.NodeProto,
    constants: Constants,
    types: Types,
) -> Emitter | None:
    kinds = [values[name].kind if name in values else _kind(name, constants) for name in node.input]
    if node.op_type != "Shape" and not _SIZES & set(kinds):
        return None
    result, made = node.output[0], _made(NodeView(node, constants, types), kinds)
    count = _count(types.get(result))
    if made is Kind.SHAPE and not count:
        made = None
    emit = Emitter(node, opset, how="sizes")
    again = onnx.NodeProto()
    again.CopyFrom(node)
    for at, (name, kind) in enumerate(zip(node.input, kinds, strict=True)):
        if kind in _SIZES:
            again.input[at] = values[name].name if made is not None else _tensor(emit, values[name])
    emit.nodes.append(again)
    if made is not None and made is not Kind.TENSOR:
        values[result] = Value(made, result, count)
    if made in _SIZES and result in outputs:
        values[result] = Value(made, f"{emit.prefix}size", count)
        again.output[0] = values[result].name
        emit.name(_tensor(emit, values[result]), result)
    return emit


def _kind(name: str, constants: Constants) -> Kind:
    return Kind.CONSTANT if not name or name in constants else Kind.TENSOR


def _count(ty: onnx.TypeProto.Tensor | None) -> int:
    """How many elements a vector has; 0 where that is not known."""
    return int(ty.shape.dim[0].dim_value) if ty is not None and len(ty.shape.dim) == 1 else 0


def _made(view: NodeView, kinds: Kinds) -> Kind | None:
    rule = _RULES.get(view.node.op_type) if view.node.domain in ("", "ai.onnx") else None
    return None if rule is None else rule(view, kinds)


def _tensor(emit: Emitter, value: Value) -> str:
    if value.kind is Kind.NUMBER:
        return emit.reshape(emit.axes("Unsqueeze", value.name, 0), [])
    return emit.reshape(value.name, [value.count])


def _of_shape(_view: NodeView, _kinds: Kinds) -> Kind | None:
    """A Shape: nobody knew it when the model was folded."""
    return Kind.SHAPE


def _takes_shape(at: int) -> Rule:
    """What an operator makes of a shape that is one of its inputs."""
    return lambda _view, kinds: Kind.TENSOR if _only_shape(kinds, at) else None


def _only_shape(kinds: Kinds, at: int) -> bool:
    return kinds[at] is Kind.SHAPE and not _SIZES & {*kinds[:at], *kinds[at + 1 :]}


def _reshape(view: NodeView, kinds: Kinds) -> Kind | None:
    """A shape as a vector stays one; in another shape it becomes a tensor."""
    shape = view.array(1)
    if kinds[0] is Kind.SHAPE and shape is not None:
        return Kind.SHAPE if shape.tolist() == [-1] else Kind.TENSOR
    return Kind.TENSOR if _only_shape(kinds, 1) else None


def _gather(view: NodeView, kinds: Kinds) -> Kind | None:
    """One size is a number, several are a tensor."""
    index = view.array(1)
    if kinds[0] is not Kind.SHAPE or index is None:
        return None
    return Kind.TENSOR if index.ndim else Kind.NUMBER


def _slice(_view: NodeView, kinds: Kinds) -> Kind | None:
    """A part of a shape. Bounds that are sizes may be beyond the end, where the frontend reads what lies there."""
    return Kind.SHAPE if kinds[0] is Kind.SHAPE and set(kinds[1:]) <= {Kind.CONSTANT} else None


def _squeeze(view: NodeView, kinds: Kinds) -> Kind | None:
    """The size of a shape that has one; its axes are constants."""
    if kinds[0] is not Kind.SHAPE or set(kinds[1:]) - {Kind.CONSTANT}:
        return None
    return Kind.NUMBER if view.dims(0) == [1] else Kind.SHAPE


def _unsqueeze(view: NodeView, kinds: Kinds) -> Kind | None:
    axes = view.array(1)
    found = view.attribute("axes", ()) if axes is None else axes.tolist()
    return Kind.SHAPE if kinds[0] is Kind.NUMBER and list(found) in ([0], [-1]) else None


def _concat(view: NodeView, kinds: Kinds) -> Kind | None:
    """Several shapes are one; so are constants."""
    are_sizes = all(
        kind is Kind.SHAPE or (kind is Kind.CONSTANT and array is not None and array.ndim == 1)
        for kind, array in ((kind, view.array(at)) for at, kind in enumerate(kinds))
    )
    return Kind.SHAPE if are_sizes else None


def _cast(view: NodeView, kinds: Kinds) -> Kind | None:
    """Of a shape it makes a tensor; a number stays one."""
    if kinds[0] is Kind.SHAPE:
        return Kind.TENSOR
    return Kind.NUMBER if view.attribute("to", 0) == onnx.TensorProto.INT64 else None


def _arithmetic(view: NodeView, kinds: Kinds) -> Kind | None:
    """With numbers, and constants without an axis, a number."""
    for at, kind in enumerate(kinds):
        array = view.array(at)
        if kind is not Kind.NUMBER and (kind is not Kind.CONSTANT or array is None or array.ndim):
            return None
    return Kind.NUMBER


def _range(_view: NodeView, kinds: Kinds) -> Kind | None:
    return None if Kind.SHAPE in kinds else Kind.TENSOR


def _equal(view: NodeView, kinds: Kinds) -> Kind | None:
    """No size is negative; else nobody knows whether one is a number before the data are there."""
    for shape, constant in ((0, 1), (1, 0)):
        array = view.array(constant)
        if kinds[shape] is Kind.SHAPE and array is not None and array.ndim == 1 and (array < 0).all():
            return Kind.CONSTANT if view.dims(shape) == [array.size] else None
    return None


def _where(view: NodeView, kinds: Kinds) -> Kind | None:
    """By a condition that is known, a shape of shapes and constants."""
    are_sizes = kinds[0] is Kind.CONSTANT and set(kinds[1:]) <= {Kind.SHAPE, Kind.CONSTANT}
    vectors = all(array is None or array.ndim == 1 for array in map(view.array, range(3)))
    return Kind.SHAPE if are_sizes and vectors else None


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), _arithmetic),
    "Cast": _cast,
    "Concat": _concat,
    "ConstantOfShape": _takes_shape(0),
    "Equal": _equal,
    "Expand": _takes_shape(1),
    "Gather": _gather,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _of_shape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
"""By the operator's name; any other reads tensors only."""
