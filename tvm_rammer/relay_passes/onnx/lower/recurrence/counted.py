"""What the number of a round decides in the body of a Loop: how often it runs, and which values are known ahead.

Loops of TensorFlow, Keras and TorchScript count for themselves: a state begins at a constant, is one more after each
round, is compared with a constant, and says which row to gather. All that depends on nothing else is computed here,
round by round, by onnx's reference evaluator.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ...emit import Constants
from ...evaluate.evaluator import evaluator
from ...fold import FOLDED
from ...inline import identities
from ...read import elements

MOST_ROUNDS = 1 << 14
"""A loop whose own counter lets it run more often is decided at run time: to count takes some 0.1 ms a round."""

_MOST_STEPS = 1 << 20
"""A loop of more rounds is decided at run time: the table of their numbers would be larger than most models."""

_MOST_ELEMENTS = 64
"""What holds more elements is no counter."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A Loop whose number of rounds is known.

    Parameters
    ----------
    rounds : int
        At least one.
    last : mapping of int to numpy.ndarray
        The states that depend on the round's number alone: their values after the last round.
    tables : mapping of str to numpy.ndarray
        The values of the body that depend on it alone; the first axis is the rounds.
    """

    rounds: int
    last: Mapping[int, np.ndarray] = field(default_factory=dict)
    tables: Mapping[str, np.ndarray] = field(default_factory=dict)


def count(node: onnx.NodeProto, body: onnx.GraphProto, constants: Constants, opset: int) -> Counted | None:
    """Count the rounds of a Loop.

    Parameters
    ----------
    node : onnx.NodeProto
    body : onnx.GraphProto
        Its body, folded.
    constants : mapping of str to onnx.TensorProto
        All that the node can see.
    opset : int

    Returns
    -------
    Counted or None
        None where the number depends on data, or is zero.
    """
    known = {**constants, **{tensor.name: tensor for tensor in body.initializer}}
    limit, goes_on = (_scalar(known, name) for name in node.input[:2])
    if (node.input[0] and limit is None) or (node.input[1] and not goes_on) or (limit is not None and limit < 1):
        return None
    system = _closed(node, body, known)
    condition = body.output[0].name
    if condition in known:
        always = bool(_scalar(known, condition))
    elif condition in system.values:
        always = identities(system.nodes).get(condition, condition) == body.input[1].name
    else:
        return None
    if always and (limit is None or limit > MOST_ROUNDS):
        if limit is None or limit > _MOST_STEPS:
            return None
        return Counted(limit, tables={body.input[0].name: np.arange(limit)})
    return _rounds(system, body, opset, limit, condition)


@dataclass(frozen=True, slots=True)
class _System:
    """The part of a body that depends on constants, on the round's number and on states of this kind alone.

    Parameters
    ----------
    states : mapping of int to numpy.ndarray
        These states, and how they begin.
    nodes : list of onnx.NodeProto
    values : set of str
        What is given to these nodes, and what they compute.
    constants : mapping of str to onnx.TensorProto
    """

    states: Mapping[int, np.ndarray]
    nodes: Sequence[onnx.NodeProto]
    values: frozenset[str]
    constants: Constants


def _scalar(constants: Constants, name: str) -> int | None:
    """A constant of one element."""
    if name not in constants:
        return None
    array = numpy_helper.to_array(constants[name])
    return int(array.item()) if array.size == 1 else None


def _closed(node: onnx.NodeProto, body: onnx.GraphProto, constants: Constants) -> _System:
    """The largest such part."""
    small = {name for name, tensor in constants.items() if elements(tensor.dims) <= _MOST_ELEMENTS}
    states = {
        number: numpy_helper.to_array(constants[name]) for number, name in enumerate(node.input[2:]) if name in small
    }
    while True:
        values = {value.name for value in body.input[:2]} | {body.input[2 + number].name for number in states}
        nodes = []
        for each in body.node:
            read = [name for name in each.input if name]
            inside = all(name in values or name in small for name in read) and not values.isdisjoint(read)
            if inside and each.domain in ("", "ai.onnx") and each.op_type in FOLDED:
                nodes.append(each)
                values.update(each.output)
        after = {number: body.output[1 + number].name for number in states}
        kept = {number: states[number] for number, name in after.items() if name in values or name in small}
        if len(kept) == len(states):
            return _System(states, nodes, frozenset(values), constants)
        states = kept


def _rounds(system: _System, body: onnx.GraphProto, opset: int, limit: int | None, condition: str) -> Counted | None:
    """Run the part, until its condition or the limit ends the loop; None where it takes too long, or cannot be run."""
    number, going = (value.name for value in body.input[:2])
    names = {2 + at: body.input[2 + at].name for at in system.states}
    feeds = {number: np.array(0, np.int64), going: np.array(True)}
    feeds |= {names[2 + at]: first for at, first in system.states.items()}
    run, fixed = _evaluator(system, body, feeds, opset)
    rows: list[dict[str, np.ndarray]] = []
    while limit is None or len(rows) < limit:
        now = run(feeds)
        if now is None or len(rows) == MOST_ROUNDS or any(each.size > _MOST_ELEMENTS for each in now.values()):
            return None
        rows.append(now)
        after = now | fixed
        feeds = {number: feeds[number] + 1, going: after[condition]}
        feeds |= {name: after[body.output[at - 1].name] for at, name in names.items()}
        if not after[condition].all():
            break
    shapes = {name: {row[name].shape for row in rows} for name in rows[0]}
    tables = {name: np.stack([row[name] for row in rows]) for name, some in shapes.items() if len(some) == 1}
    return Counted(len(rows), {at - 2: feeds[name] for at, name in names.items()}, tables)


def _evaluator(
    system: _System, body: onnx.GraphProto, feeds: Mapping[str, np.ndarray], opset: int
) -> tuple[Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray] | None], dict[str, np.ndarray]]:
    """What computes all values of a round from those that it begins with, and the constants."""
    used = {name for each in system.nodes for name in each.input} | {value.name for value in body.output}
    tensors = [system.constants[name] for name in sorted(used) if name in system.constants and name not in feeds]
    made = [name for each in system.nodes for name in each.output if name]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    values = [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph(list(system.nodes), "counter", inputs, values, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])

    def run(given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results = evaluator(model).run(None, dict(given))
        except Exception:  # whatever the evaluator lacks is decided at run time
            return None
        return {**given, **dict(zip(made, map(np.asarray, results), strict=True))}

    return run, {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
