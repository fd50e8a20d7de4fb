"""Slices that are assigned to, where what is computed says which: x[:, begin:end] = value.

Exporters write such an assignment (of PaddlePaddle, in the decoder of a table's structure) by a ScatterElements whose
indices and updates have the shape of that slice. How many elements it has nobody knows before it runs. A choice between
the value and what was there before has a shape that is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from ...emit import Constants, Emitter, NodeView, Types, replace_nodes
from ...inline import all_graphs
from ...read import default_opset

_SAME_NUMBER = frozenset(["Identity", "Reshape", "Squeeze", "Unsqueeze"])
"""Of one element these make the same one."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """How many elements there are from one computed position to another."""

    begin: str
    end: str


_Dims = Sequence[int | _Extent]


def assign_by_choice(model: onnx.ModelProto) -> bool:
    """Put a choice in the place of each assignment of one value to a slice that is computed, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded, of opset 11 or later.

    Returns
    -------
    bool
        Whether there was any.
    """
    opset, scopes = default_opset(model), _scopes(model.graph)

    def replacement(node: onnx.NodeProto, constants: Constants, types: Types) -> Emitter | None:
        if node.op_type != "ScatterElements" or node.domain not in ("", "ai.onnx"):
            return None
        known = _Known(scopes.get(node.output[0], {}), constants, types)
        return _chosen(NodeView(node, constants, types), known, Emitter(node, opset, how="slice"))

    return bool(scopes) and replace_nodes(model, replacement)


def _scopes(graph: onnx.GraphProto) -> dict[str, dict[str, onnx.NodeProto]]:
    """Of the result of each ScatterElements the nodes of the graph that it is in, by what they make.

    Exporters give names of the model's graph to values in the body of a loop once more.
    """
    found: dict[str, dict[str, onnx.NodeProto]] = {}
    for inner in all_graphs(graph):
        names = [node.output[0] for node in inner.node if node.op_type == "ScatterElements"]
        makers = {name: node for node in inner.node for name in node.output if name} if names else {}
        found |= {name: {} if name in found else makers for name in names}
    return found


def _chosen(node: NodeView, known: "_Known", emit: Emitter) -> Emitter | None:
    """The value where the slice is, and what was there before elsewhere."""
    dims = node.dims(0)
    if dims is None or not dims or node.attribute("reduction", b"none") != b"none":
        return None
    axis = int(node.attribute("axis", 0)) % len(dims)
    index, update = known.view(node.input(1)), known.view(node.input(2))
    if index is None or update is None or (index.node.op_type, update.node.op_type) != ("Tile", "Expand"):
        return None
    whole, value = known.numbers(update.input(1)), update.dims(0)
    extent = whole[axis] if whole is not None and len(whole) == len(dims) else None
    if whole is None or value is None or not isinstance(extent, _Extent):
        return None
    if [*whole[:axis], *whole[axis + 1 :]] != [*dims[:axis], *dims[axis + 1 :]]:
        return None
    along = len(value) - len(dims) + axis
    repeats = [*dims[:axis], 1, *dims[axis + 1 :]]
    if len(value) > len(dims) or (along >= 0 and value[along] != 1) or known.numbers(index.input(1)) != repeats:
        return None
    if not known.counts(index.input(0), extent, axis, len(dims)):
        return None
    here = _here(emit, extent, known.kind(extent.begin), dims, axis)
    emit.name(emit("Where", here, update.input(0), node.input(0)), node.output)
    return emit


def _here(emit: Emitter, extent: _Extent, kind: int, dims: Sequence[int], axis: int) -> str:
    """Which positions of the axis are within; both ends may be counted from its last element."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    count, none = (emit.constant(np.array([n], dtype)) for n in (dims[axis], 0))
    begin, end = (emit.reshape(name, [1]) for name in (extent.begin, extent.end))
    shift = emit("Where", emit("Less", begin, none), count, none)
    places = emit.constant(np.arange(dims[axis], dtype=dtype).reshape([-1] + [1] * (len(dims) - 1 - axis)))
    before = emit("Less", places, emit("Add", begin, shift))
    return emit("And", emit("Not", before), emit("Less", places, emit("Add", end, shift)))


class _Known:
    """What can be said of values that are computed: where they come from, and the numbers in a shape."""

    def __init__(self, makers: Mapping[str, onnx.NodeProto], constants: Constants, types: Types) -> None:
        self._makers, self._constants, self._types = makers, constants, types

    def view(self, name: str) -> NodeView | None:
        """The node of ONNX's own that makes a value."""
        node = self._makers.get(name)
        if node is None or not node.op_type or node.domain not in ("", "ai.onnx"):
            return None
        return NodeView(node, self._constants, self._types)

    def kind(self, name: str) -> int:
        """The element type of a value; 0 where it is not known."""
        return self._types[name].elem_type if name in self._types else 0

    def numbers(self, name: str) -> _Dims | None:
        """The entries of a vector that holds sizes."""
        if name in self._constants:
            array = NodeView(onnx.NodeProto(input=[name]), self._constants, self._types).array(0)
            return [int(n) for n in array] if array is not None and array.ndim == 1 else None
        made = self.view(name)
        if made is None:
            return None
        if made.node.op_type == "Shape" and not made.node.attribute:
            return self._dims(made)
        if made.node.op_type == "Concat":
            parts = [self.numbers(part) for part in made.node.input]
            return None if None in parts else [n for part in parts for n in part or ()]
        whole = self.numbers(made.input(0)) if made.node.op_type == "Slice" else None
        bounds = [made.array(n) for n in (1, 2)]
        if whole is None or any(b is None or b.size != 1 for b in bounds) or _steps(made) != [1]:
            return None
        begin, end = (int(b.item()) for b in bounds if b is not None)
        return list(whole[begin:end])

    def _dims(self, shape: NodeView) -> _Dims | None:
        """The sizes of what a Shape reads; of a slice between computed ends one of them is an extent."""
        if (static := shape.dims(0)) is not None:
            return static
        cut = self.view(shape.input(0))
        dims = cut.dims(0) if cut is not None and cut.node.op_type == "Slice" else None
        axes = cut.array(3) if cut is not None else None
        if cut is None or dims is None or axes is None or axes.size != 1 or _steps(cut) != [1]:
            return None
        found: list[int | _Extent] = list(dims)
        found[int(axes.item())] = _Extent(self._number(cut.input(1)), self._number(cut.input(2)))
        return found

    def counts(self, name: str, extent: _Extent, axis: int, rank: int) -> bool:
        """Whether a value holds the positions of an extent, one after another on an axis."""
        shaped = self.view(name)
        shape = shaped.array(1) if shaped is not None and shaped.node.op_type == "Reshape" else None
        made = self.view(shaped.input(0)) if shaped is not None else None
        if shape is None or made is None or made.node.op_type != "Range":
            return False
        along = [-1 if n == axis else 1 for n in range(rank)]
        step, kind = made.array(2), self.kind(extent.begin)
        ends = _Extent(self._number(made.input(0)), self._number(made.input(1)))
        whole = kind in (TensorProto.INT32, TensorProto.INT64) and kind == self.kind(extent.end)
        return whole and shape.tolist() == along and step is not None and step.item() == 1 and ends == extent

    def _number(self, name: str) -> str:
        """The first name of a number that was only reshaped since."""
        while (made := self.view(name)) is not None and made.node.op_type in _SAME_NUMBER:
            name = made.input(0)
        return name


def _steps(cut: NodeView) -> list[int]:
    """The steps of a Slice; empty where they are computed."""
    if not cut.input(4):
        return [1]
    array = cut.array(4)
    return [] if array is None else [int(n) for n in array]
