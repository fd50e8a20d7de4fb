"""Ensembles of trees: in all trees at once, one level after another, the next node is looked up."""

import numpy as np

from ...emit import Emitter, NodeView
from ..elementwise import element, numpy_type
from .ensemble import Ensemble, ensemble_of, ensemble_with_leaves
from .features import as_float
from .scores import both_of_two, class_count, name_label, name_scores, second_of_two, transformed

_ELSEWHERE = "compute the trees outside of the model"
_AVERAGE, _SUM = 0, 1
"""What a TreeEnsemble may make of the weights of its leaves, by the number of its attribute."""


def _tree_ensemble_regressor(node: NodeView, emit: Emitter) -> Emitter | None:
    targets, aggregate = node.attribute("n_targets", 0), node.attribute("aggregate_function", b"SUM").decode()
    dims = _table(node)
    if dims is None:
        return None
    node.require(targets > 0, f"{targets} targets")
    if aggregate not in ("SUM", "AVERAGE"):
        node.refuse(f"has the aggregate_function {aggregate}", _ELSEWHERE)
    if targets == 1 and node.attribute("post_transform", b"NONE") != b"NONE":
        node.refuse("has a post_transform of a single target", "compute it outside of the model")
    trees = ensemble_of(node, "target", targets)
    sums = _added(emit, trees.weights, _leaves(node, emit, trees, dims))
    if aggregate == "AVERAGE":
        sums = emit("Div", sums, emit.constant(np.array(len(trees.roots), np.float32)))
    emit.name(transformed(node, emit, _with_base(node, emit, sums, targets)), node.output)
    return emit


def _tree_ensemble(node: NodeView, emit: Emitter) -> Emitter | None:
    """Of ai.onnx.ml 5, in single or double precision."""
    targets, dims = node.attribute("n_targets", 0), _table(node)
    if dims is None or not element(node, 0):
        return None
    node.require(targets > 0, f"{targets} targets")
    aggregate, transform = node.attribute("aggregate_function", 1), node.attribute("post_transform", 0)
    if aggregate not in (_AVERAGE, _SUM) or transform:
        node.refuse(f"has the aggregate_function {aggregate} and the post_transform {transform}", _ELSEWHERE)
    trees = ensemble_with_leaves(node, targets)
    kinds = {np.dtype(numpy_type(element(node, 0))), trees.values.dtype, trees.weights.dtype}
    node.require(len(kinds) == 1, f"numbers of the types {', '.join(sorted(map(str, kinds)))}, which are to be one")
    sums = _added(emit, trees.weights, _leaves(node, emit, trees, dims, node.input(0)))
    if aggregate == _AVERAGE:
        sums = emit("Div", sums, emit.constant(np.array(len(trees.roots), trees.weights.dtype)))
    emit.name(sums, node.output)
    return emit


def _tree_ensemble_classifier(node: NodeView, emit: Emitter) -> Emitter | None:
    classes, dims = class_count(node, "classlabels_int64s"), _table(node)
    if dims is None:
        return None
    ids, base = set(node.attribute("class_ids", [])), node.attribute("base_values", [])
    if classes == 1 or (classes == 2 and (len(base) == 2 or ids == {1})):
        node.refuse("has classes, weights and base values that not all readers take for the same", _ELSEWHERE)
    trees = ensemble_of(node, "class", classes)
    leaves = _leaves(node, emit, trees, dims)
    if classes == 2 and ids == {0}:
        _of_two(node, emit, _with_base(node, emit, _added(emit, trees.weights[:, :1], leaves), 1), trees)
        return emit
    node.require(len(base) in (0, classes), f"{len(base)} base values for {classes} classes")
    sums = _with_base(node, emit, _added(emit, trees.weights, leaves), classes)
    place = emit("ArgMax", _spoken_of(emit, sums, trees, leaves, bool(base)), axis=1, keepdims=0)
    unclear = "has weights of both of two classes, of which not all readers make the same label" if classes == 2 else ""
    name_label(node, emit, place, "classlabels_int64s", unclear)
    name_scores(node, emit, transformed(node, emit, sums))
    return emit


def _of_two(node: NodeView, emit: Emitter, sums: str, trees: Ensemble) -> None:
    """Two classes of which the leaves have one number: a probability where none is negative."""
    positive = bool((trees.weights >= 0).all())
    kind = node.attribute("post_transform", b"NONE")
    if kind == b"LOGISTIC":
        scores = both_of_two(emit, sums)
    elif kind == b"NONE":
        other = emit("Sub", emit.constant(np.array(1, np.float32)), sums) if positive else emit("Neg", sums)
        scores = emit.join([other, sums], 1)
    else:
        node.refuse(f"has the post_transform {kind.decode()} of one number for two classes", _ELSEWHERE)
    name_label(node, emit, second_of_two(emit, sums, 0.5 if positive else 0.0), "classlabels_int64s")
    name_scores(node, emit, scores)


def _table(node: NodeView) -> list[int] | None:
    """The shape of the input; None where it is not known."""
    if any(attribute.name.endswith("_as_tensor") for attribute in node.node.attribute):
        node.refuse("has numbers of double precision", "export the trees in single precision")
    dims = node.dims(0)
    if dims is None:
        return None
    node.require(len(dims) == 2, f"an input of the shape {dims}, which is no table")
    return dims


def _leaves(node: NodeView, emit: Emitter, trees: Ensemble, dims: list[int], table: str = "") -> str:
    """The leaf that each row comes to in each tree: numbers of nodes of the shape [rows, trees]."""
    outside = trees.columns[(trees.columns < 0) | (trees.columns >= dims[1])]
    node.require(not outside.size, f"a node that reads the column {outside[:1].tolist()} of {dims[1]}")
    table = table or as_float(node, emit)
    at = emit.constant(np.tile(trees.roots, (dims[0], 1)))
    for _ in range(trees.depth):
        seen = emit("GatherElements", table, _looked_up(emit, trees.columns, at), axis=1)
        holds = _holds(emit, trees, at, seen)
        at = emit("Where", holds, _looked_up(emit, trees.first, at), _looked_up(emit, trees.second, at))
    return at


def _holds(emit: Emitter, trees: Ensemble, at: str, seen: str) -> str:
    """Whether the comparisons of nodes hold for the elements that they read."""
    value = _looked_up(emit, trees.values, at)
    kinds = {"Less": trees.less, "Equal": trees.equal, "Greater": trees.greater}
    inner = ~trees.leaf
    terms = []
    for kind, applies in kinds.items():
        if applies[inner].all():
            terms.append(emit(kind, seen, value))
        elif applies[inner].any():
            terms.append(emit("And", emit(kind, seen, value), _looked_up(emit, applies, at)))
    if trees.missing.any():
        terms.append(emit("And", emit("IsNaN", seen), _looked_up(emit, trees.missing, at)))
    holds = terms[0]
    for term in terms[1:]:
        holds = emit("Or", holds, term)
    return holds


def _looked_up(emit: Emitter, of_nodes: np.ndarray, at: str) -> str:
    """What a table says of nodes."""
    return emit("Gather", emit.constant(of_nodes), at)


def _added(emit: Emitter, weights: np.ndarray, leaves: str) -> str:
    """The sums over all trees of what their leaves say, of the shape [rows, results]."""
    return emit.axes("Squeeze", emit.sums(_looked_up(emit, weights, leaves), 1), 1)


def _with_base(node: NodeView, emit: Emitter, sums: str, results: int) -> str:
    """Sums that begin with the base values."""
    base = np.array(node.attribute("base_values", []), np.float32)
    node.require(len(base) in (0, results), f"{len(base)} base values for {results} results")
    return emit("Add", sums, emit.constant(base)) if len(base) else sums


def _spoken_of(emit: Emitter, sums: str, trees: Ensemble, leaves: str, based: bool) -> str:
    """The sums of which a label is chosen: those that some leaf says something of, or that have a base value."""
    if based or trees.has_weight[trees.leaf].all():
        return sums
    count = _added(emit, trees.has_weight.astype(np.float32), leaves)
    said = emit("Greater", count, emit.constant(np.array(0, np.float32)))
    return emit("Where", said, sums, emit.constant(np.array(-np.inf, np.float32)))


TREES = {
    "TreeEnsemble": _tree_ensemble,
    "TreeEnsembleClassifier": _tree_ensemble_classifier,
    "TreeEnsembleRegressor": _tree_ensemble_regressor,
}
