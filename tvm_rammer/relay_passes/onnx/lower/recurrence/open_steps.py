"""Layers and Scans of as many steps as only the data say become Loops, whose rounds are one step each.

Layers of a known number of steps are unrolled where only the data say of how many sequences they are.

Speech synthesis has them: it repeats what it says as often as it computes. A round has static shapes, and looks up what
it reads of the sequence.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from ...control.outline import is_control
from ...emit import Constants, Emitter, NodeView, Types, replace_nodes
from ...read import default_opset
from .cells import CELLS
from .layer import OPEN, Sizes
from .recurrent import MOST_STEPS
from .unrolled import Unrolled

_END = np.iinfo(np.int64).min
"""Where a slice backwards ends that takes the first element, too."""


def loop_open_steps(model: onnx.ModelProto) -> bool:
    """Replace layers and Scans whose number of steps only the data say by Loops, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded and lowered. What comes after a branch or a loop stays, since its sizes may yet become known.

    Returns
    -------
    bool
        Whether there were any.
    """
    before = takewhile(lambda node: not is_control(node), model.graph.node)
    known = {name for node in before if _is_recurrent(node) for name in node.output if name}
    opset = default_opset(model)

    def replacement(node: onnx.NodeProto, constants: Constants, types: Types) -> Emitter | None:
        if known.isdisjoint(node.output):
            return None
        view = NodeView(node, constants, types)
        emit = Emitter(node, opset, view.float_dtype(), "looped")
        if node.op_type == "Scan":
            return _scan(view, emit)
        return _layer(view, emit) or _of_open_batch(view, opset)

    return bool(known) and replace_nodes(model, replacement)


def _is_recurrent(node: onnx.NodeProto) -> bool:
    return node.domain in ("", "ai.onnx") and (node.op_type in CELLS or node.op_type == "Scan")


def _layer(node: NodeView, emit: Emitter) -> Emitter | None:
    """A Loop for each direction of a layer; a round is the layer of one step."""
    sizes, weights = node.extents(0), node.dims(2)
    if sizes is None or weights is None or [size is None for size in sizes] != [True, False, False]:
        return None
    parameters = any(node.attribute(f"activation_{name}", None) for name in ("alpha", "beta"))
    if node.attribute("layout", 0) or (parameters and weights[0] > 1):
        return None
    directions = [_direction(node, emit, at, sizes[1:], weights) for at in range(weights[0])]
    for number, result in enumerate(node.node.output):
        if result:
            emit.name(emit.join([results[number] for results in directions], 1 if number == 0 else 0), result)
    return emit


def _direction(
    node: NodeView, emit: Emitter, at: int, row: Sequence[int | None], weights: Sequence[int]
) -> Sequence[str]:
    """The results of one direction: all states, with an axis for it, and the last ones."""
    backwards = at == 1 or node.attribute("direction", b"forward") == b"reverse"
    zeros = np.zeros((1, row[0] or 0, weights[2]), emit.dtype)
    places = [5, 6] if node.node.op_type == "LSTM" else [5]
    first = [_of_direction(node, emit, place, at) or emit.constant(zeros) for place in places]
    if node.input(4):
        first = [_where_it_runs(emit, emit, node, emit.constant(np.array(0, np.int32)), state, "") for state in first]
    w, r, bias, peephole = (_of_direction(node, emit, place, at) for place in (1, 2, 3, 7))
    rounds = _Rounds(emit, node.input(0), f"{emit.prefix}{at}/")
    x = rounds.inner.axes("Unsqueeze", rounds.row(node.input(0), backwards), 0)
    states = [f"{rounds.prefix}state{n}" for n in range(len(first))]
    given = [x, w, r, bias, "", *states, *([peephole] if len(first) == 2 else [])]
    results = [f"{rounds.prefix}{name}" for name in ("all", "last", "cell")[: 1 + len(first)]]
    rounds.inner.last(node.node.op_type, *given, outputs=results, **_attributes(node, at, weights[0]))
    made, after = results[0], results[1:]
    if node.input(4):
        step = rounds.inner("Cast", rounds.place(backwards), to=TensorProto.INT32)
        made = rounds.inner.axes("Squeeze", made, 0)
        made = _where_it_runs(rounds.inner, emit, node, step, made, "")
        after = [_where_it_runs(rounds.inner, emit, node, step, *pair) for pair in zip(after, states, strict=True)]
    collected = rounds.inner.reshape(made, [row[0] or 0, weights[2]])
    lasts, (rows,) = rounds.looped(states, first, after, [collected])
    return [emit.axes("Unsqueeze", _backwards(emit, rows) if backwards else rows, 1), *lasts]


def _where_it_runs(emit: Emitter, outer: Emitter, node: NodeView, step: str, value: str, other: str) -> str:
    """A value, [1, batch, hidden], of sequences that have a step, and another one, or zeros, of those that ended."""
    runs = emit.axes("Unsqueeze", emit("Less", step, node.input(4)), 1)
    return emit("Where", runs, value, other or outer.number(0.0))


def _of_open_batch(node: NodeView, opset: int) -> Emitter | None:
    """All steps of a layer of as many sequences as only the data say."""
    extents, weights = node.extents(0), node.dims(2)
    if extents is None or weights is None or len(extents) != 3 or len(weights) != 3:
        return None
    steps, batch = extents[1::-1] if node.attribute("layout", 0) else extents[:2]
    if batch is not None or not steps or extents[2] is None:
        return None
    if steps * weights[0] > MOST_STEPS:
        told = f"has {steps} steps of as many sequences as only the data say, and {MOST_STEPS} at most are unrolled"
        node.refuse(told, "make what the batch depends on a constant (tvm_rammer.fix_inputs)")
    sizes = Sizes(steps, OPEN, extents[2], weights[2], weights[0], node.float_dtype())
    layer = Unrolled(node.node, sizes, node.constants, opset, {})
    layer.expand()
    return layer.emit


def _of_direction(node: NodeView, emit: Emitter, place: int, at: int) -> str:
    """What an input has for one direction."""
    return emit.part(node.input(place), 0, at, at + 1) if node.input(place) else ""


def _attributes(node: NodeView, at: int, directions: int) -> dict[str, Any]:
    """Those of one direction, whose single step goes forward."""
    given = {a.name: helper.get_attribute_value(a) for a in node.node.attribute if a.name != "direction"}
    if "activations" in given:
        each = len(given["activations"]) // directions
        given["activations"] = given["activations"][at * each : (at + 1) * each]
    return given


def _scan(node: NodeView, emit: Emitter) -> Emitter | None:
    """A Loop over the rows of the one sequence that a Scan reads."""
    states = len(node.node.input) - 1
    sizes = node.extents(states)
    along = [*node.attribute("scan_input_axes", []), *node.attribute("scan_output_axes", [])]
    if node.attribute("num_scan_inputs", 0) != 1 or any(along) or not sizes or sizes[0] is not None:
        return None
    body, sequence = node.attribute("body", None), node.input(states)
    rounds = _Rounds(emit, sequence, emit.prefix)
    row = rounds.row(sequence, bool(sum(node.attribute("scan_input_directions", []))))
    rounds.inner.name(row, body.input[states].name)
    rounds.inner.nodes += body.node
    rounds.inner.tensors += body.initializer
    names = [[value.name for value in values] for values in (body.input[:states], body.output)]
    first = list(node.node.input[:states])
    lasts, rows = rounds.looped(names[0], first, names[1][:states], names[1][states:])
    turned = [*node.attribute("scan_output_directions", []), *[0] * len(rows)]
    ordered = [_backwards(emit, made) if back else made for made, back in zip(rows, turned, strict=False)]
    for result, value in zip(node.node.output, [*lasts, *ordered], strict=True):
        if result:
            emit.name(value, result)
    return emit


class _Rounds:
    """A Loop in the making: as many rounds as a sequence has rows.

    Parameters
    ----------
    emit : Emitter
        Of what is around it.
    sequence : str
    prefix : str
        All names within begin with it.
    """

    def __init__(self, emit: Emitter, sequence: str, prefix: str) -> None:
        self._emit, self.prefix = emit, prefix
        self.inner = emit.inner()
        self.inner.prefix = f"{prefix}step/"
        self._count = emit("Gather", emit("Shape", sequence), emit.constant(np.array(0, np.int64)), axis=0)
        self._number = f"{prefix}number"

    def place(self, backwards: bool) -> str:
        """Which row a round reads."""
        if not backwards:
            return self._number
        last = self.inner("Sub", self._count, self.inner.constant(np.array(1, np.int64)))
        return self.inner("Sub", last, self._number)

    def row(self, sequence: str, backwards: bool) -> str:
        """The row that a round reads."""
        return self.inner("Gather", sequence, self.place(backwards), axis=0)

    def looped(
        self, states: Sequence[str], first: Sequence[str], after: Sequence[str], rows: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """The last states, and what all rounds made.

        Parameters
        ----------
        states, first, after : sequence of str
            Of the states, what a round reads, what the first one reads, and what a round makes.
        rows : sequence of str
            What else it makes.
        """
        going, goes_on = f"{self.prefix}going", f"{self.prefix}goes_on"
        self.inner.last("Identity", going, outputs=[goes_on])
        described = [(self._number, TensorProto.INT64), (going, TensorProto.BOOL)]
        inputs = [helper.make_tensor_value_info(name, kind, []) for name, kind in described]
        inputs += [helper.make_empty_tensor_value_info(name) for name in states]
        outputs = [helper.make_empty_tensor_value_info(name) for name in (goes_on, *after, *rows)]
        body = helper.make_graph(self.inner.nodes, "step", inputs, outputs, self.inner.tensors)
        results = [f"{self.prefix}result{n}" for n in range(len(after) + len(rows))]
        on = self._emit.constant(np.array(True))
        self._emit.last("Loop", self._count, on, *first, outputs=results, body=body)
        return results[: len(after)], results[len(after) :]


def _backwards(emit: Emitter, rows: str) -> str:
    return emit("Slice", rows, *(emit.constant(np.array([n], np.int64)) for n in (-1, _END, 0, -1)))
