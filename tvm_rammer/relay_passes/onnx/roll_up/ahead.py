"""Products of what the steps of a Scan read with weights, for all steps at once, ahead of it."""

import onnx
from onnx import helper

from ..emit import Constants, Emitter, Types, attribute
from ..fold import drop_unused, used_names
from ..inline import subgraphs
from ..lower.elementwise import BY_ELEMENT
from ..open_length.axes import Scan
from .scans import ScanChange, emit_again, replace_scans

_SHAPED = frozenset(["Flatten", "Reshape", "Squeeze", "Unsqueeze"])
"""Operators that give the same elements another shape."""

_MOVES = _SHAPED | {"Concat", "Split", "Transpose"}


def goes_ahead(node: onnx.NodeProto) -> bool:
    """Whether a node can be one for all steps, by its operator."""
    return node.domain in ("", "ai.onnx") and node.op_type in BY_ELEMENT | _MOVES | {"Gemm", "MatMul"}


def move_ahead(model: onnx.ModelProto) -> bool:
    """Compute ahead of Scans, in place, what needs no state: products, and what lies between them and what is read.

    A product reads its weights once then, not in each step.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded, of opset 10 or later.

    Returns
    -------
    bool
        Whether there were any.
    """
    return replace_scans(model, lambda *scan: _Ahead(*scan).moved())


class _Ahead(ScanChange):
    """A Scan, and what goes ahead of it; parameters as there."""

    def __init__(self, node: onnx.NodeProto, constants: Constants, types: Types, opset: int) -> None:
        super().__init__(node, constants, types, opset, how="ahead")
        made = {name for each in self.body.node for name in each.output}
        self._inside = {value.name for value in self.body.input} | made
        self._lifted: dict[str, str] = {}
        self._backward: dict[str, bool] = {}

    def moved(self) -> Emitter | None:
        """The Scan, and the nodes ahead of it; None where there are none."""
        names = (*self.node.input, *self.node.output)
        shapes = {name: tuple(dims) for name in names if (dims := self.dims(name)) is not None}
        if any(name not in shapes for name in names):
            return None
        scan = Scan.of(self.node, shapes)
        directions = attribute(self.node, "scan_input_directions", ()) or (0,) * len(scan.reads)
        self._steps = shapes[scan.reads[0]][scan.read_axes[0]]
        values = list(self.body.input)[len(scan.states) :]
        arrays = list(zip(scan.reads, scan.read_axes, map(bool, directions), strict=True))
        for value, (_, _, backward) in zip(values, arrays, strict=True):
            self._backward[value.name] = backward
        ahead = self._ahead()
        if not ahead:
            return None
        read = {name for each in ahead for name in each.input}
        for value, (array, axis, _) in zip(values, arrays, strict=True):
            if value.name in read:
                rank = len(shapes[array])
                order = [axis, *(a for a in range(rank) if a != axis)]
                self._lifted[value.name] = self.emit("Transpose", array, perm=order) if axis else array
        for each in ahead:
            self._lift(each)
        self._finish(scan, list(zip(values, arrays, strict=True)), ahead)
        return self.emit

    def _ahead(self) -> list[onnx.NodeProto]:
        """The nodes that go ahead, in their order: products, what these read, and what reads them."""
        results = {value.name for value in self.body.output}
        free = [each for each in self.body.node if results.isdisjoint(each.output) and self._is_free(each)]
        wanted: set[str] = set()
        after: set[str] = set()
        for each in free:
            if each.op_type == "MatMul" or not after.isdisjoint(each.input):
                after.update(each.output)
        chosen = []
        for each in reversed(free):
            if not after.isdisjoint(each.output) or not wanted.isdisjoint(each.output):
                wanted.update(each.input)
                chosen.append(each)
        return chosen[::-1]

    def _is_free(self, node: onnx.NodeProto) -> bool:
        """Whether a node can be one for all steps; remembers it for its readers."""
        read = [name for name in node.input if name]
        moving = [name for name in read if name in self._backward]
        known = all(self.dims(name) is not None for name in (*read, *node.output) if name)
        if not moving or not known or not goes_ahead(node) or any(True for _ in subgraphs(node)):
            return False
        if any(name in self._inside and name not in self._backward for name in read):
            return False
        if len({self._backward[name] for name in moving}) > 1 or not self._has_form(node, moving):
            return False
        self._backward.update((name, self._backward[moving[0]]) for name in node.output)
        return True

    def _has_form(self, node: onnx.NodeProto, moving: list[str]) -> bool:
        if node.op_type == "MatMul":
            return moving == [node.input[0]] and len(self.dims(node.input[1]) or ()) == 2
        if node.op_type == "Concat":
            return len(moving) == len(node.input)
        return node.op_type in BY_ELEMENT or (node.op_type in _MOVES and moving == [node.input[0]])

    def _outer(self, name: str) -> str:
        """What a step knows as a constant of its own, in the graph around it."""
        if name not in self.own:
            return name
        if name not in self._lifted:
            self._lifted[name] = self.emit.copy(self.own[name])
        return self._lifted[name]

    def _lift(self, node: onnx.NodeProto) -> None:
        """Add a node for all steps: its results have the steps as their first axis."""
        emit, steps, kind = self.emit, self._steps, node.op_type
        result = [steps, *(self.dims(node.output[0]) or ())]
        given = [self._lifted[name] if name in self._backward else self._outer(name) for name in node.input]
        rank = len(self.dims(node.input[0]) or ())
        if kind == "MatMul":
            rows = emit.reshape(given[0], [-1, (self.dims(node.input[1]) or [0])[0]])
            self._lifted[node.output[0]] = emit.reshape(emit("MatMul", rows, given[1]), result)
        elif kind in _SHAPED:
            self._lifted[node.output[0]] = emit.reshape(given[0], result)
        elif kind == "Transpose":
            order = attribute(node, "perm", None) or range(rank)[::-1]
            self._lifted[node.output[0]] = emit("Transpose", given[0], perm=[0, *(a + 1 for a in order)])
        else:
            if kind in BY_ELEMENT:
                given = [self._aligned(*each, len(result) - 1) for each in zip(node.input, given, strict=True)]
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.input[:], copy.output[:] = given, [name and f"{emit.prefix}{name}" for name in node.output]
            if kind in ("Concat", "Split"):
                axis = attribute(node, "axis", 0) % rank + 1
                kept = [a for a in node.attribute if a.name != "axis"]
                del copy.attribute[:]
                copy.attribute.extend([*kept, helper.make_attribute("axis", axis)])
            emit.nodes.append(copy)
            self._lifted |= {name: f"{emit.prefix}{name}" for name in node.output if name}

    def _aligned(self, name: str, given: str, rank: int) -> str:
        """An operand of which each step has as many axes as the result."""
        dims = self.dims(name) or []
        if name not in self._backward or len(dims) == rank:
            return given
        return self.emit.reshape(given, [self._steps, *[1] * (rank - len(dims)), *dims])

    def _finish(
        self,
        scan: Scan,
        reads: list[tuple[onnx.ValueInfoProto, tuple[str, int, bool]]],
        ahead: list[onnx.NodeProto],
    ) -> None:
        """Add the Scan, whose steps read what was computed ahead."""
        body = self.body
        gone = {name for each in ahead for name in each.output if name}
        kept = [each for each in body.node if gone.isdisjoint(each.output)]
        del body.node[:]
        body.node.extend(kept)
        used = used_names(body)
        reads = [each for each in reads if each[0].name in used]
        for name in sorted(gone & used):
            kind = helper.make_tensor_type_proto(self.types[name].elem_type, self.dims(name))
            reads.append((helper.make_value_info(name, kind), (self._lifted[name], 0, self._backward[name])))
        states = list(body.input)[: len(scan.states)]
        del body.input[:]
        body.input.extend([*states, *(value for value, _ in reads)])
        drop_unused(body)
        emit_again(
            self.emit,
            self.node,
            *scan.states,
            *(array for _, (array, _, _) in reads),
            body=body,
            num_scan_inputs=len(reads),
            scan_input_axes=[axis for _, (_, axis, _) in reads],
            scan_input_directions=[int(backward) for _, (_, _, backward) in reads],
        )
