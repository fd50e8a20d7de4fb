"""Sums -> scores and labels, where ONNX Runtime and ONNX's reference evaluator agree on them."""

import numpy as np
import onnx
from onnx import TensorProto

from ...emit import Emitter, NodeView


def transformed(node: NodeView, emit: Emitter, sums: str) -> str:
    """What `post_transform` makes of sums of the shape [rows, classes], of two classes or more."""
    kind = node.attribute("post_transform", b"NONE").decode()
    if kind == "NONE":
        return sums
    if kind == "LOGISTIC":
        return emit("Sigmoid", sums)
    if kind == "SOFTMAX":
        return emit("Softmax", sums, axis=1)
    node.refuse(f"has the post_transform {kind}", "compute it outside of the model, or export with SOFTMAX or LOGISTIC")


def name_label(node: NodeView, emit: Emitter, place: str, labels: str, unclear: str = "") -> None:
    """Name the label: the first result of a classifier.

    Where it cannot be had, a copy of the node that returns nothing else makes it. Nobody may read the label: then the
    copy is dropped, else it is refused when it is seen.

    Parameters
    ----------
    place : str
        Which class it is, by its place among all.
    labels : str
        Name of the attribute with the classes' numbers.
    unclear : str, optional
        Why nobody can say which class it is.
    """
    if not node.node.output[0]:
        return
    unclear = "returns strings as labels" if node.attribute("classlabels_strings", []) else unclear
    if not unclear:
        emit.name(emit("Gather", emit.constant(np.array(node.attribute(labels, []), np.int64)), place), node.output)
    elif not any(node.node.output[1:]):
        node.refuse(unclear, "give the classes numbers, or take the scores alone (onnx.utils.extract_model)")
    else:
        copy = onnx.NodeProto()
        copy.CopyFrom(node.node)
        copy.output[1] = ""
        emit.nodes.append(copy)


def class_count(node: NodeView, labels: str) -> int:
    """How many classes a classifier has."""
    count = len(node.attribute(labels, []) or node.attribute("classlabels_strings", []))
    node.require(count > 0, "no class labels")
    return count


def name_scores(node: NodeView, emit: Emitter, scores: str) -> None:
    """Name the scores: the second result of a classifier."""
    if len(node.node.output) > 1 and node.node.output[1]:
        emit.name(scores, node.node.output[1])


def second_of_two(emit: Emitter, sums: str, limit: float) -> str:
    """The place of the label, where sums of the shape [rows, 1] above a limit are for the second of two classes."""
    above = emit("Greater", emit.reshape(sums, [-1]), emit.constant(np.array(limit, np.float32)))
    return emit("Cast", above, to=TensorProto.INT64)


def both_of_two(emit: Emitter, sums: str) -> str:
    """Logistic scores of two classes, of sums of the shape [rows, 1] for the second one."""
    return emit("Sigmoid", emit.join([emit("Neg", sums), sums], 1))
