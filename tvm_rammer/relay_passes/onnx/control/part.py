"""An If or a Loop in the making of a call: what it reads from outside, and its graphs as models of their own."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import tvm
from onnx import TensorProto, helper, numpy_helper

from ....errors import UnsupportedOperatorError
from ..check.names import name_of
from ..infer import infer_types, static_dims
from ..inline import subgraphs

Kind = onnx.TypeProto.Tensor
Types = Mapping[str, Kind]
Load = Callable[[onnx.ModelProto], tvm.IRModule]


@dataclass(frozen=True, slots=True)
class Reader:
    """A value of a graph, and what is known of the others there."""

    graph: onnx.GraphProto
    name: str
    types: Types


class Part:
    """A node of a model that becomes a call.

    Parameters
    ----------
    model : onnx.ModelProto
    node : onnx.NodeProto
    load : callable
        Imports a model whose inputs have static shapes.
    keeps_loops : bool
        Whether loops may become loops of an rProgram.

    Attributes
    ----------
    text : str
        The node, for messages.
    inputs, outputs : list of str
        Of the call.
    before, after : list of onnx.NodeProto
        What computes the call's inputs, and what reads its results.
    tensors : list of onnx.TensorProto
        Constants that these need.
    open_sizes : dict of str to sequence of int or None
        Of those results whose sizes only the data say what is known of them.
    """

    def __init__(self, model: onnx.ModelProto, node: onnx.NodeProto, load: Load, *, keeps_loops: bool = False) -> None:
        self.node, self.load, self.keeps_loops = node, load, keeps_loops
        self.text = f"{node.op_type} {name_of(node)!r}"
        self.prefix = f"{next(filter(None, node.output), 'none')}/outlined/"
        self.inputs: list[str] = []
        self.outputs: list[str] = list(node.output)
        self.before: list[onnx.NodeProto] = []
        self.after: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.open_sizes: dict[str, Sequence[int | None]] = {}
        self._model, self._types = model, dict(infer_types(model))
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}

    def graph(self, name: str) -> onnx.GraphProto:
        """A graph among the node's attributes."""
        found: onnx.GraphProto = next(a.g for a in self.node.attribute if a.name == name)
        return found

    def model_of(self, graph: onnx.GraphProto, inputs: Types) -> onnx.ModelProto:
        """A graph as a model with these inputs, and with the constants that it sees from outside."""
        made = onnx.ModelProto(ir_version=max(self._model.ir_version, 4))
        made.opset_import.extend(self._model.opset_import)
        made.graph.CopyFrom(graph)
        made.graph.name = graph.name or "part"
        del made.graph.value_info[:], made.graph.input[:], made.graph.output[:]
        made.graph.input.extend(onnx.ValueInfoProto(name=name, type=_type_of(kind)) for name, kind in inputs.items())
        made.graph.output.extend(helper.make_empty_tensor_value_info(value.name) for value in graph.output)
        self.add_constants(made, free_names(graph))
        return made

    def add_constants(self, made: onnx.ModelProto, names: Iterable[str]) -> None:
        """Give a model those of the named values that are constants outside of it."""
        known = {value.name for value in (*made.graph.input, *made.graph.initializer)}
        wanted = dict.fromkeys(name for name in names if name in self._constants and name not in known)
        made.graph.initializer.extend(self._constants[name] for name in wanted)

    def variables(self, names: Iterable[str]) -> dict[str, Kind]:
        """Those of the names that are no constants, with their types; sizes that only the data say are open."""
        wanted = [name for name in dict.fromkeys(names) if name not in self._constants]
        return {name: self.open_type(name, name) for name in wanted}

    def open_type(self, name: str, called: str) -> Kind:
        """The type of a value, with a name for each size that only the data say.

        Parameters
        ----------
        name : str
        called : str
            What these names begin with.

        Raises
        ------
        UnsupportedOperatorError
            Nobody knows how many axes it has.
        """
        kind = self._types.get(name)
        if kind is None or not kind.HasField("shape") or not kind.elem_type or static_dims(kind) is not None:
            return self.type(name)
        return named_sizes(kind, sizes_of(kind), called)

    def reader(self, name: str) -> Reader:
        """A value of the model, as those see it that read it there."""
        return Reader(self._model.graph, name, self._types)

    def value(self, name: str) -> np.ndarray | None:
        """The value of a constant; None for what is computed."""
        return numpy_helper.to_array(self._constants[name]) if name in self._constants else None

    def type(self, name: str) -> Kind:
        """The static type of a value.

        Raises
        ------
        UnsupportedOperatorError
            It is not known.
        """
        if name in self._constants:
            return tensor_type(self._constants[name].data_type, self._constants[name].dims)
        kind = self._types.get(name)
        if kind is None or static_dims(kind) is None or not kind.elem_type:
            raise UnsupportedOperatorError(
                f"{self.text} reads {name!r}, whose shape is not known before it runs; give the model's inputs static "
                f"shapes, or make a constant of what the shape depends on (tvm_rammer.fix_inputs)"
            )
        return kind

    def scalar(self, name: str, kind: int) -> str:
        """A value of one element, without its axes."""
        if name in self._constants:
            return self.constant(f"{name}/alone", numpy_helper.to_array(self._constants[name]).reshape(()))
        known = self._types.get(name)
        if known is not None and static_dims(known) == []:
            return name
        return self.compute("Reshape", [name, self.constant("axes", NO_AXES)], f"{name}/alone", kind)

    def constant(self, name: str, array: np.ndarray) -> str:
        """A constant beside the call."""
        full = self.prefix + name
        if full not in self._constants:
            self.tensors.append(numpy_helper.from_array(array, full))
            self._constants[full] = self.tensors[-1]
        return full

    def compute(self, kind: str, inputs: Sequence[str], name: str, elements: int) -> str:
        """A number or truth value that is computed before the call."""
        full = self.prefix + name
        self.before.append(helper.make_node(kind, list(inputs), [full]))
        self._types[full] = tensor_type(elements, ())
        return full


_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_.]")
"""What TVM's frontend may take for arithmetic in the name of a size; a name that begins with a digit for a number."""

NO_AXES = np.array([], np.int64)
"""The shape of a single number."""

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64


def free_names(graph: onnx.GraphProto) -> Iterator[str]:
    """The names that a graph reads and does not define: those of the graphs around it."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        yield from (name for name in node.input if name and name not in own)
        for inner in subgraphs(node):
            yield from (name for name in free_names(inner) if name not in own)
    yield from (value.name for value in graph.output if value.name not in own)


def tensor_type(kind: int, dims: Sequence[int]) -> Kind:
    """The type of a tensor of static shape."""
    return helper.make_tensor_type_proto(kind, list(dims)).tensor_type


def sizes_of(kind: Kind) -> tuple[int | None, ...]:
    """The sizes of a tensor; None for those that only the data say."""
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim)


def named_sizes(kind: Kind, sizes: Sequence[int | None], called: str) -> Kind:
    """A type of these sizes, with a name for each that is not known."""
    plain = _NOT_PLAIN.sub(lambda found: f"%{ord(found[0]):x}%", called)
    named = [f"of_{plain}_{axis}" if size is None else size for axis, size in enumerate(sizes)]
    return helper.make_tensor_type_proto(kind.elem_type, named).tensor_type


def _type_of(kind: Kind) -> onnx.TypeProto:
    made = onnx.TypeProto()
    made.tensor_type.CopyFrom(kind)
    return made
