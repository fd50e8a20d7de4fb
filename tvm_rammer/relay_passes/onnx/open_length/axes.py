"""The axis of the rows in every value of a graph, from the inputs on: operator by operator, and across its loops."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ....errors import LengthError
from ..check.names import describe
from ..inline import subgraphs
from .rows import Node, rows_axis


@dataclass(slots=True)
class Lowered:
    """A model of so many rows, without the operators that TVM lacks.

    Parameters
    ----------
    model : onnx.ModelProto
    rows : int
    axes : dict of str to int
        The axis of the rows in each value that holds some; at first of the inputs.
    shapes : mapping of str to tuple of int
    """

    model: onnx.ModelProto
    rows: int
    axes: dict[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    constants: dict[str, np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in self.model.graph.initializer}

    def find_axes(self) -> None:
        """Find the axis of the rows in all values.

        Raises
        ------
        LengthError
            An operator does not compute each row by itself, or no loop reads rows.
        """
        opset = next(o.version for o in self.model.opset_import if o.domain in ("", "ai.onnx"))
        for node in self.model.graph.node:
            if any(name in self.axes for name in read_within(node)):
                raise LengthError(f"{describe(node)} reads the whole sequence in each of its steps")
            if not any(name in self.axes for name in node.input):
                continue
            known = Node(node, self.shapes, self.axes, self.rows, self.constants, opset)
            if unknown := [name for name in (*node.input, *node.output) if name and name not in self.shapes]:
                raise known.refuse(f"has {unknown[0]!r}, whose shape is not known")
            if node.op_type == "Scan":
                self.axes |= _scanned(known)
            else:
                axis = rows_axis(known)
                self.axes |= {name: axis for name in node.output if name}
        for name, axis in self.axes.items():
            if self.shapes[name][axis] % self.rows:
                raise LengthError(f"{name!r} has {self.shapes[name][axis]} rows, of {self.rows}")
        loops = (node for node in self.model.graph.node if node.op_type == "Scan")
        if not any(name in self.axes for node in loops for name in node.input):
            raise LengthError("none of its loops goes along it")


def read_within(node: onnx.NodeProto) -> Iterator[str]:
    """What the graphs in a node read, of the graph around it and of their own."""
    for graph in subgraphs(node):
        yield from (value.name for value in graph.output)
        for inner in graph.node:
            yield from inner.input
            yield from read_within(inner)


@dataclass(frozen=True, slots=True)
class Scan:
    """What a Scan node reads and writes, by name.

    Parameters
    ----------
    states, reads, lasts, writes : tuple of str
        Initial states, arrays, last states, results of all steps.
    read_axes, write_axes : tuple of int
    reads_backward, writes_backward : tuple of bool
        Whether the first step has the last row.
    """

    states: tuple[str, ...]
    reads: tuple[str, ...]
    lasts: tuple[str, ...]
    writes: tuple[str, ...]
    read_axes: tuple[int, ...]
    write_axes: tuple[int, ...]
    reads_backward: tuple[bool, ...]
    writes_backward: tuple[bool, ...]

    @classmethod
    def of(cls, node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> "Scan":
        """Read a node."""
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        count = attributes["num_scan_inputs"]
        states = len(node.input) - count
        reads, writes = tuple(node.input[states:]), tuple(node.output[states:])

        def axes(side: str, names: Sequence[str]) -> tuple[int, ...]:
            given = attributes.get(f"scan_{side}_axes") or [0] * len(names)
            return tuple(a % len(shapes[name]) for a, name in zip(given, names, strict=True))

        def backward(side: str, names: Sequence[str]) -> tuple[bool, ...]:
            return tuple(map(bool, attributes.get(f"scan_{side}_directions") or [0] * len(names)))

        return cls(
            tuple(node.input[:states]), reads, tuple(node.output[:states]), writes,
            axes("input", reads), axes("output", writes), backward("input", reads), backward("output", writes),
        )  # fmt: skip


def _scanned(node: Node) -> dict[str, int]:
    """The axes of a loop's results."""
    if "" in node.node.output:
        raise node.refuse("has results without a name")
    scan = Scan.of(node.node, node.shapes)
    if any(name in node.axes for name in scan.states):
        raise node.refuse("begins with a state that holds rows")
    for name, axis in zip(scan.reads, scan.read_axes, strict=True):
        counts = _counts(node.constants.get(name), node.rows)
        if (node.axes.get(name) != axis and not counts) or node.shapes[name][axis] != node.rows:
            raise node.refuse(f"reads {name!r}, which is no sequence along the axis of its steps")
    return dict(zip(scan.writes, scan.write_axes, strict=True))


def _counts(array: np.ndarray | None, rows: int) -> bool:
    """Whether a constant numbers the rows."""
    return array is not None and array.shape == (rows,) and np.array_equal(array, np.arange(rows))
