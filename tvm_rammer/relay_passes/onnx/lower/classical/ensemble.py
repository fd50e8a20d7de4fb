"""The attributes of an ensemble of trees -> tables of its nodes."""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from ...emit import NodeView

_MODES = {
    b"BRANCH_LT": (True, False, False),
    b"BRANCH_LEQ": (True, True, False),
    b"BRANCH_EQ": (False, True, False),
    b"BRANCH_GTE": (False, True, True),
    b"BRANCH_GT": (False, False, True),
}
"""Whether the first branch is taken where an element is less than the node's value, equal to it, greater."""

_NUMBERED = (b"BRANCH_LEQ", b"BRANCH_LT", b"BRANCH_GTE", b"BRANCH_GT", b"BRANCH_EQ")
"""The same modes by their numbers in a TreeEnsemble, which has others, too."""

_BOTH = ("true", "false")


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The nodes of all trees, of each tree from its root on; a leaf is its own successor.

    Parameters
    ----------
    roots : numpy.ndarray
        The root of each tree.
    leaf : numpy.ndarray
        Which nodes are leaves.
    columns, values : numpy.ndarray
        Which column a node reads, and the number that it compares with.
    first, second : numpy.ndarray
        The nodes after it, where the comparison holds and where not.
    less, equal, greater, missing : numpy.ndarray
        Whether it holds where the element is less, equal, greater, and where it is NaN.
    depth : int
        The most branches from a root to a leaf.
    weights, has_weight : numpy.ndarray
        Of the shape [nodes, results]: what a leaf adds to each result, and whether it says anything of it.
    """

    roots: np.ndarray
    leaf: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    first: np.ndarray
    second: np.ndarray
    less: np.ndarray
    equal: np.ndarray
    greater: np.ndarray
    missing: np.ndarray
    depth: int
    weights: np.ndarray
    has_weight: np.ndarray


def ensemble_of(node: NodeView, side: str, results: int) -> Ensemble:
    """Read the attributes of a TreeEnsembleClassifier or TreeEnsembleRegressor.

    Parameters
    ----------
    node : NodeView
    side : str
        How the attributes of leaves begin: "class" or "target".
    results : int

    Raises
    ------
    ModelError
        They do not describe trees.
    UnsupportedOperatorError
        A comparison is not known.
    """
    trees, numbers = node.attribute("nodes_treeids", []), node.attribute("nodes_nodeids", [])
    modes, count = node.attribute("nodes_modes", []), len(trees)
    place = {key: at for at, key in enumerate(zip(trees, numbers, strict=False))}
    values = np.array(node.attribute("nodes_values", []), np.float32)
    columns = np.array(node.attribute("nodes_featureids", []), np.int64)
    named = [node.attribute(f"nodes_{name}nodeids", []) for name in _BOTH]
    missing = np.array(node.attribute("nodes_missing_value_tracks_true", []) or [0] * count, bool)
    lists = (numbers, modes, values, columns, missing, *named)
    node.require(count > 0 and all(len(each) == count for each in lists), "lists of nodes that are not of one length")
    node.require(len(place) == count, "the same node of a tree twice")
    leaf = np.array([mode == b"LEAF" for mode in modes])
    for mode in sorted(set(modes) - _MODES.keys() - {b"LEAF"}):
        node.refuse(f"has nodes of the mode {mode.decode()}", "export trees of BRANCH_LEQ, _LT, _EQ, _GTE and _GT")
    own = np.arange(count)
    after = [np.array([place.get(key, -1) for key in zip(trees, ids, strict=True)]) for ids in named]
    following = [np.where(leaf, own, each) for each in after]
    node.require(min(each.min() for each in following) >= 0, "a branch to a node that is not there")
    roots = _roots(node, trees, np.concatenate([each[~leaf] for each in following]))
    holds = np.array([_MODES.get(mode, (True, True, True)) for mode in modes])
    weights, has_weight = _weights(node, side, place, results)
    return Ensemble(
        roots=roots,
        leaf=leaf,
        columns=np.where(leaf, 0, columns),
        values=values,
        first=following[0],
        second=following[1],
        less=holds[:, 0],
        equal=holds[:, 1],
        greater=holds[:, 2],
        missing=missing,
        depth=_depth(node, roots, leaf, following),
        weights=weights,
        has_weight=has_weight,
    )


def ensemble_with_leaves(node: NodeView, results: int) -> Ensemble:
    """Read the attributes of a TreeEnsemble, which lists leaves apart: here they come after all other nodes.

    Parameters
    ----------
    node : NodeView
    results : int

    Raises
    ------
    ModelError
        They do not describe trees.
    UnsupportedOperatorError
        A comparison is not known.
    """
    splits, leaf_weights, modes = (
        numpy_helper.to_array(node.attribute(name, onnx.TensorProto(data_type=1, dims=[0])))
        for name in ("nodes_splits", "leaf_weights", "nodes_modes")
    )
    columns, targets, roots = (
        np.array(node.attribute(name, []), np.int64) for name in ("nodes_featureids", "leaf_targetids", "tree_roots")
    )
    inner, leaves = len(splits), len(leaf_weights)
    missing = np.array(node.attribute("nodes_missing_value_tracks_true", []) or [0] * inner, bool)
    branches = [
        [np.array(node.attribute(f"nodes_{b}{of}", []), np.int64) for of in ("nodeids", "leafs")] for b in _BOTH
    ]
    lists = (columns, modes, missing, *branches[0], *branches[1])
    node.require(inner > 0 and all(len(each) == inner for each in lists), "lists of nodes that are not of one length")
    node.require(leaves == len(targets), "lists of leaves that are not of one length")
    for to, is_leaf in branches:
        limits = np.where(is_leaf != 0, leaves, inner)
        node.require(bool(((to >= 0) & (to < limits)).all()), "a branch to a node that is not there")
    node.require(bool(len(roots) and ((roots >= 0) & (roots < inner)).all()), "a root that is not there")
    node.require(bool(((targets >= 0) & (targets < results)).all()), f"a leaf of another target than its {results}")
    if modes.max() >= len(_NUMBERED):
        node.refuse(f"has nodes of the mode {modes.max()}", f"export trees of the modes 0 to {len(_NUMBERED) - 1}")
    leaf, own = np.arange(inner + leaves) >= inner, np.arange(inner, inner + leaves)
    following = [np.concatenate([np.where(is_leaf != 0, inner + to, to), own]) for to, is_leaf in branches]
    holds = np.array([_MODES[_NUMBERED[mode]] for mode in modes] + [(True, True, True)] * leaves)
    weights = np.zeros((inner + leaves, results), leaf_weights.dtype)
    weights[own, targets] = leaf_weights
    return Ensemble(
        roots=roots,
        leaf=leaf,
        columns=np.concatenate([columns, np.zeros(leaves, np.int64)]),
        values=np.concatenate([splits, np.zeros(leaves, splits.dtype)]),
        first=following[0],
        second=following[1],
        less=holds[:, 0],
        equal=holds[:, 1],
        greater=holds[:, 2],
        missing=np.concatenate([missing, np.zeros(leaves, bool)]),
        depth=_depth(node, roots, leaf, following),
        weights=weights,
        has_weight=weights != 0,
    )


def _roots(node: NodeView, trees: list[int], children: np.ndarray) -> np.ndarray:
    """The first node of each tree, which comes after no other."""
    first: dict[int, int] = {}
    for at, tree in enumerate(trees):
        first.setdefault(tree, at)
    roots = np.array(list(first.values()))
    node.require(not np.isin(roots, children).any(), "a tree whose first node is not its root")
    return roots


def _depth(node: NodeView, roots: np.ndarray, leaf: np.ndarray, following: list[np.ndarray]) -> int:
    """The most branches from a root to a leaf."""
    level, depth = roots, 0
    while (inner := level[~leaf[level]]).size:
        depth += 1
        node.require(depth <= len(leaf), "a node that is its own ancestor")
        level = np.unique(np.concatenate([each[inner] for each in following]))
    return depth


def _weights(
    node: NodeView, side: str, place: dict[tuple[int, int], int], results: int
) -> tuple[np.ndarray, np.ndarray]:
    """What each node adds to each result, and whether it says anything of it."""
    trees, numbers = node.attribute(f"{side}_treeids", []), node.attribute(f"{side}_nodeids", [])
    ids, given = node.attribute(f"{side}_ids", []), node.attribute(f"{side}_weights", [])
    node.require(len(trees) == len(numbers) == len(ids) == len(given), "lists of leaves that are not of one length")
    weights, has_weight = np.zeros((len(place), results), np.float32), np.zeros((len(place), results), bool)
    for key, result, weight in zip(zip(trees, numbers, strict=True), ids, given, strict=True):
        node.require(key in place and 0 <= result < results, f"a weight of the node {key} and the result {result}")
        weights[place[key], result] += np.float32(weight)
        has_weight[place[key], result] = True
    return weights, has_weight
