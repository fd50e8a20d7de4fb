"""Recurrence that a file has unrolled becomes Scans."""

from collections.abc import MutableMapping

import onnx

from ..infer import infer_types
from ..lower.recurrence.loops import FEWEST_ITERATIONS
from ..read import default_opset
from .body import RolledUp
from .check import EqualSteps, Others, Read, equal_steps
from .cycle import Step, slots_of
from .order import Order
from .steps import Graph
from .walk import Walk
from .whole import put_together

FEWEST_COLLECTED = 32
"""Steps that read values of their own, which have to be put into one array first: fewer take as long to compile, and to
run, as they are (`./scripts/bench unrolled`)."""


def roll_up(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Replace equal steps, each of which reads what the one before made, by Scans.

    Steps are equal where they have the same operators with the same constants, and where each reads the next slice of
    an array, or a value of its own. Only what reads weights is looked at.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded, of opset 10 or later, with static inputs. Is not changed.

    Returns
    -------
    onnx.ModelProto or None
        None where there are no such steps.
    """
    if not any(len(numbers) >= FEWEST_ITERATIONS for numbers in _alike(Graph(model.graph, {})).values()):
        return None
    types = infer_types(model)
    graph = Graph(model.graph, types)
    order = Order(graph)
    for numbers in _alike(graph).values():
        while len(numbers) >= FEWEST_ITERATIONS and _add_one(model, order, graph, numbers, types):
            numbers = [number for number in numbers if graph.kinds[number] is not None]
    if not order.groups:
        return None
    rolled = onnx.ModelProto()
    rolled.CopyFrom(model)
    del rolled.graph.node[:]
    rolled.graph.node.extend(order.nodes())
    rolled.graph.initializer.extend(tensor for group in order.groups for tensor in group.tensors)
    put_together(rolled, types, default_opset(rolled))
    return rolled


def _alike(graph: Graph) -> dict[object, list[int]]:
    """The nodes that do the same with the same weights."""
    alike: dict[object, list[int]] = {}
    for number, kind in enumerate(graph.kinds):
        if kind is not None and graph.has_weights(number):
            alike.setdefault(kind, []).append(number)
    return alike


def _add_one(
    model: onnx.ModelProto,
    order: Order,
    graph: Graph,
    numbers: list[int],
    types: MutableMapping[str, onnx.TypeProto.Tensor],
) -> bool:
    """Put one Scan into the graph, for steps each of which has one of some nodes, or for what these wait for."""
    # The nodes in the middle, or else the last ones, which may be of another recurrence with the same weights.
    for at in (len(numbers) // 2 - 1, len(numbers) - 2):
        steps = _equal_steps(graph, numbers[at], numbers[at + 1])
        if steps is not None and order.add(RolledUp(model, graph, steps).group(types)):
            return True
    return False


def _equal_steps(graph: Graph, first: int, second: int) -> EqualSteps | None:
    """The steps that are equal if two nodes are what does the same in two of them."""
    walk = Walk(graph)
    walk.begin(first, second)
    found = Step(graph, slots_of(walk, FEWEST_ITERATIONS)).recurrence()
    steps = equal_steps(graph, *found, FEWEST_ITERATIONS) if found is not None else None
    if steps is None:
        return None
    kinds = {type(operand) for operands in steps.operands for operand in operands}
    if Others in kinds:
        return steps if steps.end - steps.first >= FEWEST_COLLECTED else None
    return steps if Read in kinds else None
