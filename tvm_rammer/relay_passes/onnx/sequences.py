"""Sequences whose lengths are known when the model is compiled: what reads them reads their elements instead.

Loops that collect into a sequence are unrolled before, so most sequences of real models are of this kind. What makes a
sequence stays, until nobody reads it. A sequence that a model returns becomes its elements: `s` becomes `s[0]`, `s[1]`
and so on.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import onnx

from .emit import Constants, Emitter, NodeView, Types, replace_nodes
from .inline import copy_nodes
from .read import default_opset


def resolve_sequences(model: onnx.ModelProto) -> bool:
    """Put tensors in the place of the elements of sequences, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded, of opset 11 or later.

    Returns
    -------
    bool
        Whether there were any.

    Raises
    ------
    ModelError
        A position is outside of its sequence, or an empty one is joined.
    """
    known = _Known(default_opset(model))

    def replacement(node: onnx.NodeProto, constants: Constants, types: Types) -> Emitter | None:
        known.forget(node.output)
        handler = _HANDLERS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        return handler(known, NodeView(node, constants, types)) if handler else None

    changed = replace_nodes(model, replacement)
    return _return_elements(model.graph, known) or changed


def element_name(sequence: str, position: int) -> str:
    """What an element is called that a model returns in the place of a sequence."""
    return f"{sequence}[{position}]"


def _return_elements(graph: onnx.GraphProto, known: "_Known") -> bool:
    """Return the elements of sequences in their place; of those that are not known the importer says so."""
    outputs: list[onnx.ValueInfoProto] = []
    for value in graph.output:
        elements = known.elements(value.name) if value.type.HasField("sequence_type") else None
        if elements is None:
            outputs.append(value)
            continue
        names = [element_name(value.name, position) for position in range(len(elements))]
        graph.node.extend(onnx.helper.make_node("Identity", [e], [n]) for e, n in zip(elements, names, strict=True))
        element = value.type.sequence_type.elem_type.tensor_type.elem_type
        outputs += [onnx.helper.make_tensor_value_info(name, element, None) for name in names]
    changed = outputs != list(graph.output)
    del graph.output[:]
    graph.output.extend(outputs)
    return changed


class _Known:
    """The elements of the sequences that were met, by their names."""

    def __init__(self, opset: int) -> None:
        self._opset = opset
        self._elements: dict[str, list[str]] = {}

    def of(self, view: NodeView, index: int = 0) -> list[str] | None:
        """The elements of an input; None where they are not known."""
        return self.elements(view.input(index))

    def elements(self, name: str) -> list[str] | None:
        """The elements of a sequence; None where they are not known, or it is none."""
        return self._elements.get(name)

    def forget(self, names: Iterable[str]) -> None:
        """These are other values from here on: another branch of an If may have used the names."""
        for name in names:
            self._elements.pop(name, None)

    def emitter(self, view: NodeView) -> Emitter:
        """Collects what takes the place of a node."""
        return Emitter(view.node, self._opset, how="sequence")

    def keep(self, view: NodeView, elements: Sequence[str]) -> None:
        """Note the elements of a node's result; the node stays."""
        self._elements[view.output] = list(elements)

    def construct(self, emit: Emitter, name: str, elements: Sequence[str]) -> None:
        """Make a sequence of the elements."""
        self._elements[name] = list(elements)
        emit.last("SequenceConstruct", *elements, outputs=[name])


def _position(view: NodeView, index: int, length: int) -> int | None:
    """A position in a sequence of this length; None where it is computed."""
    array = view.array(index)
    if array is None:
        return None
    position = int(array.item())
    view.require(-length <= position < length, f"position {position} in a sequence of {length}")
    return position % length


def _identity(known: _Known, view: NodeView) -> None:
    elements = known.of(view)
    if elements is not None:
        known.keep(view, elements)


def _construct(known: _Known, view: NodeView) -> None:
    known.keep(view, list(view.node.input))


def _empty(known: _Known, view: NodeView) -> None:
    known.keep(view, [])


def _insert(known: _Known, view: NodeView) -> None:
    elements = known.of(view)
    if elements is None:
        return
    array, length = view.array(2), len(elements)
    if array is None:
        position = None if view.input(2) else length
    else:
        position = int(array.item())
        view.require(-length <= position <= length, f"position {position} to insert at in a sequence of {length}")
        position += length if position < 0 else 0
    if position is not None:
        known.keep(view, [*elements[:position], view.input(1), *elements[position:]])


def _erase(known: _Known, view: NodeView) -> None:
    elements = known.of(view)
    position = None if elements is None else _position(view, 1, len(elements)) if view.input(1) else len(elements) - 1
    if elements is not None and position is not None:
        view.require(bool(elements), "nothing to erase in an empty sequence")
        known.keep(view, elements[:position] + elements[position + 1 :])


def _at(known: _Known, view: NodeView) -> Emitter | None:
    elements = known.of(view)
    position = None if elements is None else _position(view, 1, len(elements))
    if elements is None or position is None:
        return None
    emit = known.emitter(view)
    emit.name(elements[position], view.output)
    return emit


def _length(known: _Known, view: NodeView) -> Emitter | None:
    elements = known.of(view)
    if elements is None:
        return None
    emit = known.emitter(view)
    emit.name(emit.constant(np.array(len(elements), np.int64)), view.output)
    return emit


def _concat(known: _Known, view: NodeView) -> Emitter | None:
    elements = known.of(view)
    if elements is None:
        return None
    view.require(bool(elements), "an empty sequence to join")
    emit, axis = known.emitter(view), int(view.attribute("axis", 0))
    parts = [emit.axes("Unsqueeze", name, axis) for name in elements] if view.attribute("new_axis", 0) else elements
    emit.name(emit.join(parts, axis), view.output)
    return emit


def _split(known: _Known, view: NodeView) -> Emitter | None:
    dims, sizes = view.extents(0), view.array(1)
    if dims is None or (view.input(1) and sizes is None):
        return None
    axis = int(view.attribute("axis", 0))
    view.require(-len(dims) <= axis < len(dims), f"axis {axis} for {len(dims)} dimensions")
    axis %= len(dims)
    if (size := dims[axis]) is None:
        return None
    if sizes is None:
        sizes = np.ones(size, np.int64)
    elif sizes.ndim == 0:
        view.require(sizes.item() > 0, f"parts of {sizes.item()} elements")
        sizes = np.diff([*range(0, size, sizes.item()), size])
    view.require(int(sizes.sum()) == size, f"parts of {sizes.tolist()}, where there are {size}")
    emit, ends = known.emitter(view), np.cumsum(sizes)
    parts = [emit.part(view.input(0), axis, int(e - n), int(e)) for n, e in zip(sizes, ends, strict=True)]
    if not view.input(1) and not view.attribute("keepdims", 1):
        parts = [emit.axes("Squeeze", part, axis) for part in parts]
    if not parts:
        return None
    known.construct(emit, view.output, parts)
    return emit


def _map(known: _Known, view: NodeView) -> Emitter | None:
    """The body once for each element of the first sequence, and of the others beside it."""
    given = [known.of(view, index) or view.input(index) for index in range(len(view.node.input))]
    if isinstance(given[0], str):
        return None
    body, emit = view.attribute("body", None), known.emitter(view)
    shared = {tensor.name: emit.copy(tensor) for tensor in body.initializer}
    rows = []
    for number in range(len(given[0])):
        values = [element if isinstance(element, str) else element[number] for element in given]
        names = shared | {inner.name: name for inner, name in zip(body.input, values, strict=True)}
        nodes, results = copy_nodes(body, f"{emit.prefix}{number}/", names)
        emit.nodes += nodes
        rows.append(results)
    for name, elements in zip(view.node.output, zip(*rows, strict=True), strict=True):
        known.construct(emit, name, elements)
    return emit


_HANDLERS: dict[str, Callable[[_Known, NodeView], Emitter | None]] = {
    "ConcatFromSequence": _concat,
    "Identity": _identity,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SequenceMap": _map,
    "SplitToSequence": _split,
}
"""By the operator's name; those that return None leave the node."""
