"""What puts the parts of an array side by side again is the array, or a longer part of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import onnx

from ..emit import Emitter, attribute
from .steps import Graph, Part, Types


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a Concat reads, as a part of an array.

    Parameters
    ----------
    name : str
    part : Part
    form : {"kept", "new", "along"}
        Whether the axis of the parts is the Concat's; or the part got that axis, of one entry, before; or it has
        none, and lies along an axis that it has besides.
    """

    name: str
    part: Part
    form: Literal["kept", "new", "along"]

    def follows(self, other: "_Piece | None") -> bool:
        """Whether it is the part behind another one."""
        if other is None or self.form != other.form:
            return False
        part, before = self.part, other.part
        return (part.array, part.axis, part.index) == (before.array, before.axis, before.index + 1)


def put_together(model: onnx.ModelProto, types: Types, opset: int) -> None:
    """Replace Concats of parts that lie side by side in one array by a part of the array, in place.

    Parameters
    ----------
    model : onnx.ModelProto
    types : mapping of str to onnx.TypeProto.Tensor
        Of its values.
    opset : int
    """
    graph = Graph(model.graph, types)
    nodes: list[onnx.NodeProto] = []
    tensors: list[onnx.TensorProto] = []
    for node in graph.nodes:
        emit = _together(graph, node, opset) if node.op_type == "Concat" else None
        nodes += emit.nodes if emit else [node]
        tensors += emit.tensors if emit else []
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(tensors)


def _together(graph: Graph, node: onnx.NodeProto, opset: int) -> Emitter | None:
    """What takes the place of a Concat; None where it stays."""
    dims = graph.dims(node.output[0])
    if dims is None:
        return None
    axis, emit = attribute(node, "axis", 0) % len(dims), Emitter(node, opset, how="whole")
    joined = []
    for name, pieces in _runs(graph, node, axis):
        joined.append(name if len(pieces) < 2 else _whole(graph, emit, pieces, axis))
    if len(joined) == len(node.input):
        return None
    emit.name(emit.join(joined, axis), node.output[0])
    return emit


def _runs(graph: Graph, node: onnx.NodeProto, axis: int) -> Iterator[tuple[str, list[_Piece]]]:
    """What a Concat reads: pieces that lie side by side in one array together, and others by themselves."""
    run: list[_Piece] = []
    for name in node.input:
        piece = _piece(graph, name, axis)
        if run and (piece is None or not piece.follows(run[-1])):
            yield run[0].name, run
            run = []
        if piece is None:
            yield name, []
        else:
            run.append(piece)
    if run:
        yield run[0].name, run


def _piece(graph: Graph, name: str, axis: int) -> _Piece | None:
    part = graph.parts.get(name)
    if part is not None:
        if part.kept:
            return _Piece(name, part, "kept") if part.axis == axis else None
        return _Piece(name, part, "along")
    maker = graph.made.get(name)
    node = graph.nodes[maker[0]] if maker is not None else None
    if node is None or node.op_type not in ("Unsqueeze", "Reshape"):
        return None
    part, dims = graph.parts.get(node.input[0]), graph.dims(node.input[0])
    if part is None or part.kept or dims is None or graph.dims(name) != (*dims[:axis], 1, *dims[axis:]):
        return None
    return _Piece(name, part, "new")


def _whole(graph: Graph, emit: Emitter, pieces: list[_Piece], axis: int) -> str:
    """The part of an array that pieces of it are, in the form that they have."""
    first, count = pieces[0].part, len(pieces)
    dims = graph.dims(first.array) or ()
    value = first.array
    if count < dims[first.axis]:
        value = emit.part(value, first.axis, first.index, first.index + count)
    if pieces[0].form == "kept":
        return value
    order = [a for a in range(len(dims)) if a != first.axis]
    order.insert(axis, first.axis)
    if order != sorted(order):
        value = emit("Transpose", value, perm=order)
    if pieces[0].form == "new":
        return value
    shape = [dims[a] for a in order if a != first.axis]
    shape[axis] *= count
    return emit.reshape(value, shape)
