"""A graph of some rows as a graph of any number: loops over a few rows at a time, between its recurrent loops.

Arrays between these loops have the rows as their first axis. The loops are Scans of the domain `DOMAIN` (`../scan.py`).
"""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ....errors import LengthError
from ..check.inference import infer_shapes
from ..inline import copy_tensor, rename_inputs
from ..read import default_opset, skeleton
from ..scan import ROWS
from .axes import Lowered, Scan, read_within

DOMAIN = "tvm_rammer.length"
"""Of the Scans whose number of steps is known only at run time."""


def cut(lowered: Lowered, most: int, number: str) -> onnx.ModelProto:
    """Make the model of any number of rows.

    Parameters
    ----------
    lowered : Lowered
        Whose axes are found.
    most : int
        How many rows there may be, a multiple of those of `lowered`.
    number : str
        What the input is to be called that says how many there are.

    Returns
    -------
    onnx.ModelProto
        Its inputs and results that hold rows have them as their first axis, `most` of them.

    Raises
    ------
    LengthError
        It has no loop, or a result is not computed.
    """
    return _Cut(lowered, most, number).model()


class _Cut:
    """Nodes by their level: how many loops there are on the longest path to them."""

    def __init__(self, lowered: Lowered, most: int, number: str) -> None:
        self._lowered, self._most, self._number = lowered, most, number
        self._axes, self._shapes = lowered.axes, lowered.shapes
        self._graph = lowered.model.graph
        self._level = dict.fromkeys((*(v.name for v in self._graph.input), *lowered.constants), 0)
        self._same: dict[str, str] = {}
        self._by_rows: dict[int, list[onnx.NodeProto]] = {}
        self._loops: dict[int, list[onnx.NodeProto]] = {}
        self._others: dict[int, list[onnx.NodeProto]] = {}
        self._tensors: dict[str, onnx.TensorProto] = {}
        bare = skeleton(lowered.model, tables=False)
        kinds = infer_shapes(bare, default_opset(bare)).graph
        self._types = {v.name: v.type.tensor_type.elem_type for v in (*kinds.value_info, *kinds.output, *kinds.input)}

    def model(self) -> onnx.ModelProto:
        for node in self._graph.node:
            self._sort(node)
        if not self._loops:
            raise LengthError("no loop goes along the sequence")
        nodes: list[onnx.NodeProto] = []
        for level in range(max(*self._level.values(), *self._loops, *self._by_rows) + 1):
            nodes += self._others.get(level, [])
            nodes += self._some_rows(level)
            nodes += map(self._all_rows, self._loops.get(level, []))
        made = onnx.ModelProto()
        made.CopyFrom(self._lowered.model)
        graph = made.graph
        del graph.node[:], graph.value_info[:], graph.output[:], graph.input[:]
        graph.node.extend(nodes)
        graph.initializer.extend(self._tensors.values())
        for value in self._graph.input:
            graph.input.append(self._declared(value.name) if value.name in self._axes else value)
        graph.input.append(helper.make_tensor_value_info(self._number, TensorProto.INT32, [1]))
        for value in self._graph.output:
            name = self._same.get(value.name, value.name)
            stored = self._stored(name) if name in self._axes else name
            if stored in (v.name for v in graph.input):
                raise LengthError(f"the result {value.name!r} is an input")
            graph.output.append(onnx.ValueInfoProto(name=stored))
        made.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        return made

    def _sort(self, node: onnx.NodeProto) -> None:
        read = {self._same.get(name, name) for name in (*node.input, *read_within(node))}
        level = max((self._level[name] for name in read if name in self._level), default=0)
        by_rows = any(name in self._axes for name in node.input)
        if by_rows and node.op_type == "Identity":
            self._same[node.output[0]] = self._same.get(node.input[0], node.input[0])
            return
        is_loop = by_rows and node.op_type == "Scan"
        sort = self._loops if is_loop else self._by_rows if by_rows else self._others
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [self._same.get(name, name) for name in node.input]
        sort.setdefault(level, []).append(copy)
        self._level |= {name: level + is_loop for name in node.output if name}

    def _some_rows(self, level: int) -> list[onnx.NodeProto]:
        """The loop over a few rows at a time that computes what goes row by row."""
        inside = self._by_rows.get(level, [])
        if not inside:
            return []
        made = {name for node in inside for name in node.output}
        outside = [n for some in (self._by_rows, self._loops) for nodes in some.values() for n in nodes]
        kept = {id(node) for node in inside}
        wanted = {name for node in outside if id(node) not in kept for name in node.input}
        wanted |= {self._same.get(value.name, value.name) for value in self._graph.output}
        reads = dict.fromkeys(n for node in inside for n in node.input if n in self._axes and n not in made)
        writes = [name for name in dict.fromkeys(n for node in inside for n in node.output) if name in wanted]
        if not writes:
            return []
        body = _Body(self, f"rows{level}/")
        inputs = [body.read(name) for name in reads]
        read = {name for node in inside for name in node.input}
        for tensor in (tensor for tensor in self._graph.initializer if tensor.name in read):
            body.hold(tensor)
        body.add(inside)
        outputs = [onnx.ValueInfoProto(name=body.write(name)) for name in writes]
        graph = helper.make_graph(body.nodes, "rows", inputs, outputs, body.tensors)
        given = [*map(self._stored, reads), self._number]
        node = helper.make_node("Scan", given, [self._stored(name) for name in writes], f"rows{level}", domain=DOMAIN)
        attributes = {"body": graph, "num_scan_inputs": len(reads), ROWS: self._lowered.rows}
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        return [node]

    def _all_rows(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """A loop of the model as one over all rows."""
        scan = Scan.of(node, self._shapes)
        made = onnx.NodeProto()
        made.CopyFrom(node)
        made.domain = DOMAIN
        made.input[:] = [*scan.states, *(self._stored(name) for name in scan.reads), self._number]
        made.output[:] = [*scan.lasts, *(self._stored(name) for name in scan.writes)]
        kept = [a for a in node.attribute if a.name not in ("scan_input_axes", "scan_output_axes")]
        del made.attribute[:]
        made.attribute.extend([*kept, helper.make_attribute(ROWS, 1)])
        return made

    def _stored(self, name: str) -> str:
        """The name of the array of all rows of a value."""
        if name not in self._lowered.constants:
            return name if name in {v.name for v in self._graph.input} else f"{name}/all"
        numbers = self._lowered.constants[name]
        stored = f"{name}/all"
        self._tensors[stored] = numpy_helper.from_array(np.arange(self._most, dtype=numbers.dtype), stored)
        return stored

    def rows_first(self, name: str) -> tuple[int, ...]:
        """The shape of a value of few rows with these as the first axis, whatever else lies along theirs behind it."""
        shape, axis, rows = self._shapes[name], self._axes[name], self._lowered.rows
        inner = (shape[axis] // rows,) if shape[axis] > rows else ()
        return (rows, *shape[:axis], *inner, *shape[axis + 1 :])

    def apart(self, name: str) -> tuple[int, ...]:
        """Its shape with what lies along the axis of the rows on an axis of its own."""
        axis = self._axes[name]
        first = self.rows_first(name)
        return (*first[1 : axis + 1], first[0], *first[axis + 1 :])

    def type_of(self, name: str) -> int:
        """Its type of elements, as ONNX numbers them."""
        return int(self._types[name])

    def axis(self, name: str) -> int:
        """Its axis of the rows."""
        return self._axes[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """Its shape, of few rows."""
        return self._shapes[name]

    def _declared(self, name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, self.type_of(name), [self._most, *self.rows_first(name)[1:]])


class _Body:
    """The graph of a step over a few rows, in the making."""

    def __init__(self, owner: _Cut, prefix: str) -> None:
        self._owner, self._prefix = owner, prefix
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self._here: dict[str, str] = {}

    def hold(self, tensor: onnx.TensorProto) -> None:
        """Make a constant one of the step, where it can be a shape, or be folded."""
        self._here[tensor.name] = f"{self._prefix}{tensor.name}"
        self.tensors.append(copy_tensor(tensor, self._here[tensor.name]))

    def add(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Add nodes, which read rows under the names that they have here; changes them."""
        for node in nodes:
            rename_inputs(node, self._here)
        self.nodes += nodes

    def read(self, name: str) -> onnx.ValueInfoProto:
        """Take rows from an array of them, and bring them into the shape that nodes want."""
        first, apart, axis = self._owner.rows_first(name), self._owner.apart(name), self._owner.axis(name)
        given = f"{self._prefix}{name}"
        self._here[name] = self._transpose(given, (*range(1, axis + 1), 0, *range(axis + 1, len(first))), axis)
        if self._owner.shape(name) != apart:
            self._here[name] = self._reshape(self._here[name], self._owner.shape(name), f"{given}/shaped")
        return helper.make_tensor_value_info(given, self._owner.type_of(name), first)

    def write(self, name: str) -> str:
        """Put rows first; the name under which they are then."""
        apart, axis = self._owner.apart(name), self._owner.axis(name)
        result = name
        if self._owner.shape(name) != apart:
            result = self._reshape(name, apart, f"{self._prefix}{name}/apart")
        return self._transpose(result, (axis, *(a for a in range(len(apart)) if a != axis)), axis)

    def _transpose(self, name: str, order: tuple[int, ...], axis: int) -> str:
        if axis == 0:
            return name
        self.nodes.append(helper.make_node("Transpose", [name], [f"{name}/moved"], perm=order))
        return f"{name}/moved"

    def _reshape(self, name: str, shape: Sequence[int], result: str) -> str:
        self.tensors.append(numpy_helper.from_array(np.array(shape, np.int64), f"{result}/shape"))
        self.nodes.append(helper.make_node("Reshape", [name, f"{result}/shape"], [result]))
        return result
