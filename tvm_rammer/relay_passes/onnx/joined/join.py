"""One Scan in the place of several."""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from ..emit import Emitter, attribute
from ..fold import drop_unused
from ..inline import copy_nodes, copy_tensor, rename_inputs
from ..open_length.axes import Scan, read_within
from ..read import default_opset
from ..scan import JOINED
from .chains import Chain, Chains


def join_loops(model: onnx.ModelProto) -> None:
    """Replace Scans of as many steps by one wherever what they read of each other they read step by step, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Lowered: its recurrent layers are Scans.
    """
    while chain := (chains := Chains(model)).find():
        _Joined(model, chains, chain).replace()
        drop_unused(model.graph)


@dataclass(frozen=True, slots=True)
class _Slices:
    """An array of which each step reads, or writes, a slice: the axis and the direction, and the slice in the body."""

    array: str
    axis: int
    backward: bool
    value: onnx.ValueInfoProto


class _Joined:
    """The Scan that is all of a chain, in the making."""

    def __init__(self, model: onnx.ModelProto, chains: Chains, chain: Chain) -> None:
        self._graph, self._shapes, self._chain = model.graph, chains.shapes, chain
        self._emit = Emitter(chain.scans[-1], default_opset(model), how="joined")
        self._body = self._emit.inner()
        self._rows: dict[str, str] = {}
        self._states: list[tuple[str, onnx.ValueInfoProto, onnx.ValueInfoProto, str]] = []
        self._reads: list[_Slices] = []
        self._writes: list[_Slices] = []

    def replace(self) -> None:
        """Put it into the graph: behind all that does not depend on it, and before what does."""
        inside = {id(node): node for node in (*self._chain.scans, *self._chain.between)}
        before, after, made = [], [], {name for scan in self._chain.scans for name in scan.output}
        for number, node in enumerate(self._graph.node):
            if id(node) in inside:
                (self._add_scan if node.op_type == "Scan" else self._add_between)(node, f"{self._body.prefix}{number}/")
            if node.op_type == "Scan" and id(node) in inside:
                continue
            if made.isdisjoint((*node.input, *read_within(node))):
                before.append(node)
            else:
                made |= set(node.output)
                after.append(node)
        self._add_node()
        nodes = [*before, *self._emit.nodes, *after]
        del self._graph.node[:]
        self._graph.node.extend(nodes)
        self._graph.initializer.extend(self._emit.tensors)

    def _add_scan(self, node: onnx.NodeProto, prefix: str) -> None:
        """A step of a Scan, which reads what is there of this step already where there is."""
        scan, graph = Scan.of(node, self._shapes), attribute(node, "body", None)
        tensors = [copy_tensor(tensor, f"{prefix}{tensor.name}") for tensor in graph.initializer]
        self._body.tensors += tensors
        names = {old.name: new.name for old, new in zip(graph.initializer, tensors, strict=True)}
        given = dict(zip((value.name for value in graph.input), graph.input, strict=True))
        renamed = {name: f"{prefix}{name}" for name in given}
        read = zip(list(given)[len(scan.states) :], scan.reads, scan.read_axes, scan.reads_backward, strict=True)
        for value, array, axis, backward in read:
            if array in self._rows:
                renamed[value] = self._body.axes("Squeeze", self._rows[array], axis)
            else:
                self._reads.append(_Slices(array, axis, backward, _renamed(given[value], renamed[value])))
        nodes, results = copy_nodes(graph, prefix, names | renamed)
        self._body.nodes += nodes
        outputs = [_renamed(value, self._name(name)) for value, name in zip(graph.output, results, strict=True)]
        for state, value, result, last in zip(scan.states, list(given), outputs, scan.lasts, strict=False):
            self._states.append((state, _renamed(given[value], renamed[value]), result, last))
        written = results[len(scan.states) :], outputs[len(scan.states) :]
        for name, axis, backward, made, result in zip(
            scan.writes, scan.write_axes, scan.writes_backward, *written, strict=True
        ):
            self._writes.append(_Slices(name, axis, backward, result))
            if not backward:
                self._rows[name] = self._body.axes("Unsqueeze", made, axis)

    def _name(self, value: str) -> str:
        """A name of its own for a result of the step."""
        name = f"{self._body.prefix}result{len(self._body.nodes)}"
        self._body.name(value, name)
        return name

    def _add_between(self, node: onnx.NodeProto, prefix: str) -> None:
        """What lies between two Scans, of one row; it stays in the graph, too, for whoever else reads it."""
        own = onnx.NodeProto()
        own.CopyFrom(node)
        rename_inputs(own, self._rows)
        own.output[:] = [name and f"{prefix}{name}" for name in node.output]
        if node.op_type == "Reshape":
            axis, shape = self._chain.axes[node.output[0]], list(self._shapes[node.output[0]])
            shape[axis] //= self._chain.steps
            own.input[1] = self._body.constant(np.array(shape, np.int64))
        self._body.nodes.append(own)
        self._rows |= {name: own.output[at] for at, name in enumerate(node.output) if name}

    def _add_node(self) -> None:
        inputs = [*(value for _, value, _, _ in self._states), *(read.value for read in self._reads)]
        outputs = [*(result for _, _, result, _ in self._states), *(write.value for write in self._writes)]
        body = helper.make_graph(self._body.nodes, "step", inputs, outputs, self._body.tensors)
        drop_unused(body)
        self._emit.last(
            "Scan",
            *(state for state, *_ in self._states),
            *(read.array for read in self._reads),
            outputs=[*(last for *_, last in self._states), *(write.array for write in self._writes)],
            body=body,
            num_scan_inputs=len(self._reads),
            scan_input_axes=[read.axis for read in self._reads],
            scan_input_directions=[int(read.backward) for read in self._reads],
            scan_output_axes=[write.axis for write in self._writes],
            scan_output_directions=[int(write.backward) for write in self._writes],
            **{JOINED: 1},
        )


def _renamed(value: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(value)
    copy.name = name
    return copy
