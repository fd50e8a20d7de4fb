"""The attributes of an ensemble of trees -> tables of its nodes."""

from dataclasses import dataclass

import numpy as np

from ...emit import NodeView

_MODES = {
    b"BRANCH_LT": (True, False, False),
    b"BRANCH_LEQ": (True, True, False),
    b"BRANCH_EQ": (False, True, False),
    b"BRANCH_GTE": (False, True, True),
    b"BRANCH_GT": (False, False, True),
}
"""Whether the first branch is taken where an element is less than the node's value, equal to it, greater."""


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
    named = [node.attribute(f"nodes_{name}nodeids", []) for name in ("true", "false")]
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
