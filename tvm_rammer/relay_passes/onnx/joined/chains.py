"""Which Scans can be one: a step of one reads of another what that wrote in the same step, or nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import numpy_helper

from ....errors import LengthError
from ..infer import infer_types, static_dims
from ..open_length.axes import Scan, read_within
from ..open_length.rows import Node, rows_axis
from ..read import SMALL_ELEMENTS, default_opset, elements


@dataclass(slots=True)
class Chain:
    """Scans that can be one, and what computes, row by row, what one of them reads of another.

    Some may read nothing of the others, as the two directions of a layer do.

    Parameters
    ----------
    steps : int
    scans : list of onnx.NodeProto
        In their order in the graph.
    between : list of onnx.NodeProto
        In their order, too.
    axes : dict of str to int
        Of each value that is made of a row for each step, the first one in the first step, the axis of the rows.
    """

    steps: int
    scans: list[onnx.NodeProto] = field(default_factory=list)
    between: list[onnx.NodeProto] = field(default_factory=list)
    axes: dict[str, int] = field(default_factory=dict)


class Chains:
    """Finds chains in a graph.

    Parameters
    ----------
    model : onnx.ModelProto
        Lowered: its recurrent layers are Scans.

    Attributes
    ----------
    shapes : dict of str to tuple of int
        Of all values whose shapes are static.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._graph = model.graph
        known = {name: static_dims(kind) for name, kind in infer_types(model).items()}
        self.shapes = {name: tuple(dims) for name, dims in known.items() if dims is not None}
        small = (tensor for tensor in model.graph.initializer if elements(tensor.dims) <= SMALL_ELEMENTS)
        self._constants: Mapping[str, np.ndarray] = {tensor.name: numpy_helper.to_array(tensor) for tensor in small}
        self._opset = default_opset(model)

    def find(self) -> Chain | None:
        """A chain of at least two Scans; None where there is none."""
        nodes = list(self._graph.node)
        for at, node in enumerate(nodes):
            if (steps := self._steps(node)) and len((chain := self._from(nodes[at:], steps)).scans) > 1:
                return chain
        return None

    def _steps(self, node: onnx.NodeProto) -> int:
        """The steps of a Scan, all of whose values have static shapes; 0 for any other node."""
        if node.op_type != "Scan" or node.domain not in ("", "ai.onnx") or "" in node.output:
            return 0
        if any(name not in self.shapes for name in (*node.input, *node.output)):
            return 0
        scan = Scan.of(node, self.shapes)
        return self.shapes[scan.reads[0]][scan.read_axes[0]]

    def _from(self, nodes: list[onnx.NodeProto], steps: int) -> Chain:
        """The chain that begins with the first of some nodes."""
        chain, others, rowwise = Chain(steps), set[str](), list[onnx.NodeProto]()
        for node in nodes:
            if not chain.scans or self._joins(node, chain, others):
                chain.scans.append(node)
                scan = Scan.of(node, self.shapes)
                made = zip(scan.writes, scan.write_axes, scan.writes_backward, strict=True)
                forward = {name: axis for name, axis, backward in made if not backward}
                chain.axes |= forward
                others |= set(node.output) - forward.keys()
                continue
            read = set(_read(node))
            if read.isdisjoint(chain.axes) and read.isdisjoint(others):
                continue
            axis = self._axis(node, chain) if read.isdisjoint(others) else None
            if axis is None:
                others |= set(node.output)
            else:
                chain.axes |= dict.fromkeys((name for name in node.output if name), axis)
                rowwise.append(node)
        wanted = {name for scan in chain.scans[1:] for name in scan.input}
        for node in reversed(rowwise):
            if not wanted.isdisjoint(node.output):
                wanted |= set(node.input)
                chain.between.insert(0, node)
        return chain

    def _joins(self, node: onnx.NodeProto, chain: Chain, others: set[str]) -> bool:
        """Whether a node is a Scan of as many steps that reads of a chain nothing but rows of its step."""
        if self._steps(node) != chain.steps:
            return False
        scan = Scan.of(node, self.shapes)
        elsewhere = {*scan.states, *read_within(node)}
        if not elsewhere.isdisjoint(others) or not elsewhere.isdisjoint(chain.axes):
            return False
        read = zip(scan.reads, scan.read_axes, scan.reads_backward, strict=True)
        return (
            others.isdisjoint(scan.reads)
            and all(not backward and chain.axes[n] == a for n, a, backward in read if n in chain.axes)
            and all(self.shapes[n][a] == chain.steps for n, a in zip(scan.reads, scan.read_axes, strict=True))
        )

    def _axis(self, node: onnx.NodeProto, chain: Chain) -> int | None:
        """The axis of the rows in the results of a node that computes each row by itself; None for any other node."""
        if any(name not in self.shapes for name in (*node.input, *node.output) if name):
            return None
        if not set(read_within(node)).isdisjoint(chain.axes):
            return None
        known = Node(node, self.shapes, chain.axes, chain.steps, self._constants, self._opset)
        if node.op_type == "Squeeze" and known.ints("axes", 1) is None:
            return None  # of one row it would take the axis of the rows, too
        try:
            axis = rows_axis(known)
        except LengthError:
            return None
        return axis if all(self.shapes[name][axis] % chain.steps == 0 for name in node.output if name) else None


def _read(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    yield from read_within(node)
