"""Refuse nodes that ONNX does not allow, once the shapes of what they read are known."""

from collections.abc import Callable

import onnx

from ....errors import ModelError, first_line
from ..emit import NodeView
from ..infer import infer_types
from ..inline import subgraphs
from ..read import default_opset
from .inference import has_impossible, infer_node
from .names import name_of
from .rules import RULES

_TOO_STRICT = frozenset(["Range"])
"""Operators that onnx refuses where others do not: its own AffineGrid gives Range vectors of one element."""


def check_nodes(model: onnx.ModelProto, waits: Callable[[onnx.NodeProto], bool]) -> ModelError | None:
    """Refuse nodes whose attributes and sizes do not fit what they read.

    Those of subgraphs are left out: they are asked about when their graph is a model of its own, since a branch may be
    of no use for the shapes at hand, and never be chosen.

    Parameters
    ----------
    model : onnx.ModelProto
        Its inputs have static shapes; what depends on shapes alone is folded.
    waits : callable
        Whether someone else will say what is wrong with a node, and more exactly than onnx does.

    Returns
    -------
    ModelError or None
        What onnx says of the first node that waits, to be raised if nobody else said anything.

    Raises
    ------
    ModelError
        Names the node, what it reads, and what is wrong.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    types, opset = infer_types(model), default_opset(model)
    waiting: ModelError | None = None
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx") or any(True for _ in subgraphs(node)):
            continue
        view = NodeView(node, constants, types)
        if (rule := RULES.get(node.op_type)) is not None:
            rule(view)
        if (error := _inferred(view, opset)) is None:
            continue
        if not waits(node):
            raise error
        waiting = waiting or error
    return waiting


def _inferred(view: NodeView, opset: int) -> ModelError | None:
    """What is wrong with a node where onnx infers the types of its results: of a whole model it tells no error."""
    node = view.node
    if node.op_type in _TOO_STRICT:
        return None
    try:
        made = infer_node(node, view.types, view.constants, opset)
    except onnx.shape_inference.InferenceError as error:
        return _illegal(view, _plain(error))
    sizes = [[dim.dim_value for dim in kind.tensor_type.shape.dim] for kind in made.values() if has_impossible(kind)]
    if not sizes:
        return None
    return _illegal(view, f"it makes the shape {sizes[0]}: its window or its pads are too large for what it reads")


def _illegal(view: NodeView, why: str) -> ModelError:
    node = view.node
    read = ", ".join(f"{name!r} of the shape {view.dims(number)}" for number, name in enumerate(node.input) if name)
    return ModelError(
        f"{node.op_type} {name_of(node)!r} is not legal for what it reads, {read}: {why}; "
        "give the model's inputs the shapes that it was made for, or export it again"
    )


def _plain(error: Exception) -> str:
    """What onnx says, without the kind of the error that stands before it."""
    return first_line(error).rpartition("InferenceError] ")[2].rstrip(".")
