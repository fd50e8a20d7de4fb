"""A graph as the search for equal steps sees it: which nodes do the same, and what is a part of which array."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from ..emit import attribute
from ..infer import static_dims
from ..inline import subgraphs
from ..open_length.axes import read_within
from ..read import SMALL_ELEMENTS, elements

_RANDOM = ("Bernoulli", "Dropout", "Multinomial", "Random")
"""How the names of operators begin that do not always compute the same."""

_DOMAINS = frozenset(["", "ai.onnx", "com.microsoft"])

Types = Mapping[str, onnx.TypeProto.Tensor]


@dataclass(frozen=True, slots=True)
class Part:
    """A value that is one slice of an array.

    Parameters
    ----------
    array : str
    axis, index : int
    kept : bool
        Whether the value still has the axis, of one entry.
    """

    array: str
    axis: int
    index: int
    kept: bool


class Graph:
    """The nodes of a graph by their numbers, in its order.

    Parameters
    ----------
    graph : onnx.GraphProto
        Folded: constants are initializers.
    types : mapping of str to onnx.TypeProto.Tensor
        Of its values.

    Attributes
    ----------
    nodes : list of onnx.NodeProto
    made : dict of str to (int, int)
        Of each value the node that makes it, and as which result.
    readers : dict of str to list of int
        Which nodes read a value, or hold a graph that does; -1 stands for the outputs of the graph.
    kinds : list of object
        Equal for nodes that do the same with what they read: constants are compared by value. None for those of which
        it is not known.
    parts : dict of str to Part
    """

    def __init__(self, graph: onnx.GraphProto, types: Types) -> None:
        self._types = types
        self.nodes = list(graph.node)
        self._same = _same_constants(graph.initializer)
        small = (tensor for tensor in graph.initializer if elements(tensor.dims) <= SMALL_ELEMENTS)
        self._constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in small}
        self._ranks = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
        self.made: dict[str, tuple[int, int]] = {}
        self.readers: dict[str, list[int]] = {}
        for number, node in enumerate(self.nodes):
            self.made.update((name, (number, at)) for at, name in enumerate(node.output) if name)
            for name in {*node.input, *read_within(node)}:
                self.readers.setdefault(name, []).append(number)
        for value in graph.output:
            self.readers.setdefault(value.name, []).append(-1)
        self.kinds = [self._kind(node) for node in self.nodes]
        self.parts: dict[str, Part] = {}
        for node in self.nodes:
            self._add_parts(node)

    def take(
        self, numbers: Collection[int], instead: Iterable[onnx.NodeProto], tensors: Iterable[onnx.TensorProto]
    ) -> None:
        """Take nodes for replaced: they do nothing that others do, and what they make is a part of what others make."""
        self._constants |= {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
        for number in numbers:
            self.kinds[number] = None
            for name in self.nodes[number].output:
                self.made.pop(name, None)
        for node in instead:
            self._add_parts(node)

    def is_constant(self, name: str) -> bool:
        """Whether a value is a constant, or left out."""
        return not name or name in self._same

    def has_weights(self, number: int) -> bool:
        """Whether a node reads a constant of two axes or more."""
        return any(self._ranks.get(name, 0) > 1 for name in self.nodes[number].input)

    def dims(self, name: str) -> tuple[int, ...] | None:
        """The static shape of a value."""
        known = static_dims(self._types.get(name))
        return None if known is None else tuple(known)

    def elem_type(self, name: str) -> int:
        """The type of a value's elements, as ONNX numbers them; 0 where it is not known."""
        return int(self._types[name].elem_type) if name in self._types else 0

    def _kind(self, node: onnx.NodeProto) -> object:
        if node.domain not in _DOMAINS or node.op_type.startswith(_RANDOM) or any(True for _ in subgraphs(node)):
            return None
        attributes = sorted(a.SerializeToString(deterministic=True) for a in node.attribute)
        read = tuple(self._same.get(name, name and None) for name in node.input)
        return node.domain, node.op_type, tuple(attributes), read, tuple(map(bool, node.output))

    def _add_parts(self, node: onnx.NodeProto) -> None:
        """What a node makes that is a slice of what it reads, or of what that is a slice of."""
        if node.domain not in ("", "ai.onnx") or not node.input or node.input[0] in self._same:
            return
        part, dims = self.parts.get(node.input[0]), self.dims(node.input[0])
        if part is not None and node.op_type == "Identity":
            self.parts[node.output[0]] = part
        elif part is not None and part.kept and node.op_type in ("Squeeze", "Reshape"):
            dims = self.dims(part.array) or ()
            if self.dims(node.output[0]) == dims[: part.axis] + dims[part.axis + 1 :]:
                self.parts[node.output[0]] = Part(part.array, part.axis, part.index, False)
        elif dims is not None and node.op_type in ("Gather", "Slice"):
            found = self._gathered(node, dims) if node.op_type == "Gather" else self._sliced(node, dims)
            self.parts.update({node.output[0]: found} if found is not None else {})
        elif dims and node.op_type == "Split":
            axis = attribute(node, "axis", 0) % len(dims)
            if len(node.output) == dims[axis] and all(self._is_one(name, axis) for name in node.output if name):
                parts = {name: Part(node.input[0], axis, at, True) for at, name in enumerate(node.output) if name}
                self.parts.update(parts)

    def _is_one(self, name: str, axis: int) -> bool:
        dims = self.dims(name)
        return dims is not None and dims[axis] == 1

    def _gathered(self, node: onnx.NodeProto, dims: tuple[int, ...]) -> Part | None:
        index, axis = self._constants.get(node.input[1]), attribute(node, "axis", 0)
        if index is None or index.shape not in ((), (1,)) or not -len(dims) <= axis < len(dims):
            return None
        axis, at = axis % len(dims), int(index.item())
        if not -dims[axis] <= at < dims[axis]:
            return None
        return Part(node.input[0], axis, at % dims[axis], index.ndim == 1)

    def _sliced(self, node: onnx.NodeProto, dims: tuple[int, ...]) -> Part | None:
        given = [self._constants.get(name) for name in node.input[1:]]
        values = [int(array[0]) for array in given if array is not None and array.shape == (1,)]
        if not 2 <= len(values) == len(given):
            return None
        begin, end, axis, step = (*values, *(0, 1)[len(values) - 2 :])
        if step != 1 or not -len(dims) <= axis < len(dims):
            return None
        axis %= len(dims)
        begin, end, _ = slice(begin, end).indices(dims[axis])
        return Part(node.input[0], axis, begin, True) if end - begin == 1 else None


def _same_constants(tensors: Sequence[onnx.TensorProto]) -> dict[str, str]:
    """Of each constant the first one of the same type, shape and bytes."""
    alike: dict[object, list[onnx.TensorProto]] = {}
    for tensor in tensors:
        alike.setdefault((tensor.data_type, tuple(tensor.dims), _bytes(tensor)[:64]), []).append(tensor)
    same: dict[str, str] = {}
    for some in alike.values():
        if len(some) == 1:
            same[some[0].name] = some[0].name
            continue
        first: dict[bytes, str] = {}
        for tensor in some:
            same[tensor.name] = first.setdefault(_bytes(tensor), tensor.name)
    return same


def _bytes(tensor: onnx.TensorProto) -> bytes:
    if tensor.HasField("raw_data"):
        return bytes(tensor.raw_data)
    array = numpy_helper.to_array(tensor)
    return repr(array.tolist()).encode() if array.dtype == np.dtype(object) else array.tobytes()
