"""Put other ONNX nodes into the place of one."""

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import helper, numpy_helper

from ...errors import LongLoopError, ModelError, UnsupportedOperatorError
from .check.file import left_out
from .check.names import name_of
from .fold import infer_types, static_dims
from .inline import copy_tensor, subgraphs
from .read import default_opset

Constants = Mapping[str, onnx.TensorProto]
Types = Mapping[str, onnx.TypeProto.Tensor]


def attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """An attribute of a node, or what it is by default: in float32, as ONNX keeps numbers."""
    default = float(np.float32(default)) if isinstance(default, float) else default
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node, and what is known of its inputs.

    Parameters
    ----------
    node : onnx.NodeProto
    constants : mapping of str to onnx.TensorProto
        All that it can see.
    types : mapping of str to onnx.TypeProto.Tensor
        Of the model's values, as far as they are known.
    last : bool
        Whether no more constants will become known.
    """

    node: onnx.NodeProto
    constants: Constants
    types: Types
    last: bool = False

    def input(self, index: int) -> str:
        """The name of an input; empty where it is left out."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def array(self, index: int) -> np.ndarray | None:
        """The values of an input that is a constant, else None."""
        tensor = self.constants.get(self.input(index))
        return None if tensor is None else numpy_helper.to_array(tensor)

    def dims(self, index: int) -> list[int] | None:
        """The static shape of an input; None where it is not known."""
        tensor = self.constants.get(self.input(index))
        return list(tensor.dims) if tensor is not None else static_dims(self.types.get(self.input(index)))

    def extents(self, index: int) -> list[int | None] | None:
        """The shape of an input, with None for what only the data say; None where not even its rank is known."""
        if (dims := self.dims(index)) is not None:
            return list(dims)
        ty = self.types.get(self.input(index))
        if ty is None or not ty.HasField("shape"):
            return None
        return [dim.dim_value if dim.HasField("dim_value") else None for dim in ty.shape.dim]

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute, or what it is by default."""
        return attribute(self.node, name, default)

    def given(self, names: Iterable[str]) -> dict[str, Any]:
        """Those of some attributes that the node has."""
        found = {name: self.attribute(name, None) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def float_dtype(self) -> np.dtype[Any]:
        """The type of the first input that is a floating one, else float32."""
        elements = [kind.elem_type for kind in map(self.types.get, self.node.input) if kind and kind.elem_type]
        dtypes = [np.dtype(helper.tensor_dtype_to_np_dtype(element)) for element in elements]
        return next((dtype for dtype in dtypes if dtype.kind == "f"), np.dtype(np.float32))

    def require(self, holds: bool, what: str) -> None:
        """Refuse a node that says something impossible.

        Raises
        ------
        ModelError
        """
        if not holds:
            self.deny(what)

    def deny(self, what: str) -> NoReturn:
        """Refuse a node that says something impossible, as `require` does where it does not hold."""
        raise ModelError(f"{self._told} has {what}; export the model again")

    def refuse(self, what: str, remedy: str) -> NoReturn:
        """Refuse a node that is legal, and that cannot be compiled.

        Raises
        ------
        UnsupportedOperatorError
        """
        raise UnsupportedOperatorError(f"{self._told} {what}; {remedy}")

    def refuse_at_last(self, what: str, remedy: str) -> None:
        """Refuse a node as `refuse` does, but not while what it lacks may become known: it may be made of shapes."""
        if self.last:
            self.refuse(what, remedy)

    @property
    def output(self) -> str:
        """The name of the first result."""
        return str(self.node.output[0])

    @property
    def _told(self) -> str:
        return f"{self.node.op_type} {name_of(self.node)!r}"


class Emitter:
    """Collects the nodes and constants that take a node's place. Equal nodes are one.

    Whatever adds a node returns the name of its result.

    Parameters
    ----------
    node : onnx.NodeProto
        Has at least one result that has a name; all new names begin with it, and go on with `how`.
    opset : int
        Of the model, 10 or later.
    dtype : numpy.dtype
        Of constants that are numbers.
    how : str
        Another one for each pass, since what a pass makes of a node may have the same results.

    Attributes
    ----------
    opset : int
    dtype : numpy.dtype
    nodes, tensors : list
        What was added.
    reals : dict of str to str
        Integer results, and under which names they are there as floating-point numbers.
    """

    def __init__(self, node: onnx.NodeProto, opset: int, dtype: DTypeLike = np.float32, how: str = "unrolled") -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.reals: dict[str, str] = {}
        # A node that took the place of another has the same results: count, or the names within would be the same, too.
        self._depth = int(node.doc_string) if node.doc_string.isdecimal() else 0
        self.prefix = f"{next(name for name in node.output if name)}/:{how}{self._depth or ''}/"
        self.opset, self.dtype = opset, dtype
        self._made: dict[object, str] = {}

    def inner(self) -> "Emitter":
        """Another one, for the nodes of a subgraph."""
        inner = copy(self)
        inner.nodes, inner.tensors, inner.reals, inner._made = [], [], {}, {}
        inner.prefix = f"{self.prefix}step/"
        return inner

    def in_type(self, dtype: DTypeLike) -> "Emitter":
        """The same one for numbers of another type: what either adds, both have."""
        other = copy(self)
        other.dtype = dtype
        return other

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of one result."""
        key = (kind, inputs, repr(attributes))
        if key not in self._made:
            self._made[key] = f"{self.prefix}{kind}{len(self.nodes)}"
            self.nodes.append(helper.make_node(kind, list(inputs), [self._made[key]], **attributes))
        return self._made[key]

    def number(self, value: float) -> str:
        """A constant scalar of the type that all is computed in."""
        return self.constant(np.array(value, self.dtype))

    def constant(self, array: np.ndarray) -> str:
        """A constant."""
        key = (str(array.dtype), array.shape, array.tobytes())
        if key not in self._made:
            self._made[key] = f"{self.prefix}constant{len(self.tensors)}"
            self.tensors.append(numpy_helper.from_array(array, self._made[key]))
        return self._made[key]

    def copy(self, tensor: onnx.TensorProto) -> str:
        """A constant that is one already, under a new name."""
        self.tensors.append(copy_tensor(tensor, f"{self.prefix}body/{tensor.name}"))
        return self.tensors[-1].name

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        """The same elements in another shape."""
        return self("Reshape", value, self.constant(np.array(shape, np.int64)))

    def part(self, value: str, axis: int, begin: int, end: int) -> str:
        """`value[..., begin:end, ...]` on one axis."""
        bounds = [self.constant(np.array([n], np.int64)) for n in (begin, end, axis)]
        return self("Slice", value, *bounds)

    def axes(self, kind: str, value: str, axis: int) -> str:
        """Squeeze or Unsqueeze one axis: an input since opset 13."""
        if self.opset < 13:
            return self(kind, value, axes=[axis])
        return self(kind, value, self.constant(np.array([axis], np.int64)))

    def sums(self, value: str, axis: int) -> str:
        """Sums along one axis, which stays with one element: an input since opset 13."""
        if self.opset < 13:
            return self("ReduceSum", value, axes=[axis], keepdims=1)
        return self("ReduceSum", value, self.constant(np.array([axis], np.int64)), keepdims=1)

    def join(self, values: Sequence[str], axis: int) -> str:
        """Values side by side on one axis."""
        return values[0] if len(values) == 1 else self("Concat", *values, axis=axis)

    def last(self, kind: str, *inputs: str, outputs: Sequence[str], **attributes: Any) -> None:
        """Add a node whose results have names already."""
        again = str(self._depth + 1)
        self.nodes.append(helper.make_node(kind, list(inputs), list(outputs), doc_string=again, **attributes))

    def name(self, value: str, name: str) -> None:
        """Give a value one more name."""
        self.last("Identity", value, outputs=[name])


@dataclass(frozen=True, slots=True)
class _Replacing:
    """The walk of `replace_nodes`. A function in there that calls itself would keep the model until it is collected."""

    replacement: Callable[[onnx.NodeProto, Constants, Types], "Emitter | None"]
    types: Types
    opset: int

    def over(self, graph: onnx.GraphProto, outer: ChainMap[str, onnx.TensorProto], *, chosen: bool) -> bool:
        """Replace nodes of a graph, which may be one that is `chosen`; whether any was."""
        constants = outer.new_child({tensor.name: tensor for tensor in graph.initializer})
        nodes: list[onnx.NodeProto] = []
        tensors: list[onnx.TensorProto] = []
        changed = False
        for node in graph.node:
            emit = self._of(node, constants, chosen)
            if emit is None:
                nodes.append(node)
                for inner in subgraphs(node):
                    changed |= self.over(inner, constants, chosen=chosen or node.op_type == "If")
            else:
                nodes += emit.nodes
                tensors += emit.tensors
                changed = True
        del graph.node[:]
        graph.node.extend(nodes)
        graph.initializer.extend(tensors)
        return changed

    def _of(self, node: onnx.NodeProto, constants: Constants, chosen: bool) -> "Emitter | None":
        try:
            emit = self.replacement(node, constants, self.types)
            if emit and any(left_out(made, self.opset) is not None for made in emit.nodes):
                raise ModelError(f"{node.op_type} {name_of(node)!r} leaves out an input that it needs; export it again")
            return emit
        except LongLoopError:  # it asks for another way to compile the model, not for another branch
            raise
        except ModelError:
            if chosen:
                return None
            raise


def replace_nodes(
    model: onnx.ModelProto, replacement: Callable[[onnx.NodeProto, Constants, Types], Emitter | None]
) -> bool:
    """Replace nodes of a model and of its subgraphs, in place.

    What is wrong in a branch of an If is no error yet, for the branch may never be chosen: the node stays, and is asked
    for again when the branch is a graph of its own (`control.branches`).

    Parameters
    ----------
    model : onnx.ModelProto
    replacement : callable
        Gets a node, the constants that it can see, and the types of the model's values, as far as they are known.
        Returns what takes the node's place, or None for a node that stays.

    Returns
    -------
    bool
        Whether any node was replaced.
    """
    walk = _Replacing(replacement, infer_types(model), default_opset(model))
    return walk.over(model.graph, ChainMap(), chosen=False)
