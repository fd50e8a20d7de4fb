"""Linear models, and ensembles of trees."""

from typing import Any

from ...generate.builder import ML, Builder, Value, words

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ")
_OF_NODES = words("treeids nodeids featureids values truenodeids falsenodeids modes")
_OF_LEAVES = words("treeids nodeids ids weights")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC")


def _rows(b: Builder) -> str:
    return b.source(["float32", "float32", "int64"], low=2, high=2, check=lambda s: min(s) > 0)


def _numbers(b: Builder, count: int) -> list[float]:
    return [float(v) for v in b.numbers("float32", [count], -1, 1)]


def linear_regressor(b: Builder):
    x, targets = b.source(["float32"], low=2, high=2, check=lambda s: min(s) > 0), b.integer(1, 3)
    how = {
        "coefficients": _numbers(b, targets * b.of(x)[1]),
        "intercepts": b.pick([None, _numbers(b, targets)]),
        "post_transform": b.pick([None, *_TRANSFORMS]) if targets > 1 else None,
    }
    told = [Value("float32", (b.of(x)[0], targets))]
    return b.add("LinearRegressor", [x], domain=ML, told=told, targets=targets, **how)


def linear_classifier(b: Builder):
    x, classes = _rows(b), b.integer(2, 4)
    how = {
        "coefficients": _numbers(b, classes * b.of(x)[1]),
        "intercepts": _numbers(b, classes),
        "post_transform": b.pick([None, *_TRANSFORMS]),
    }
    return b.add("LinearClassifier", [x], 2, domain=ML, classlabels_ints=_labels(b, classes), **how)


def _labels(b: Builder, classes: int) -> list[int]:
    return b.rng.sample(range(10), classes)


def _trees(b: Builder, side: str, columns: int, results: int) -> dict[str, Any]:
    """Nodes of some trees, and what their leaves add to the results."""
    nodes: dict[str, list[Any]] = {name: [] for name in _OF_NODES}
    leaves: dict[str, list[Any]] = {name: [] for name in _OF_LEAVES}
    mode = b.pick(_MODES) if b.chance(0.7) else None
    for tree in range(b.integer(1, 4)):
        depth, waiting, number = b.integer(0, 3), [(0, 0)], 1
        while waiting:
            node, level = waiting.pop(0)
            ends = level == depth or b.chance(0.2)
            after = (0, 0) if ends else (number, number + 1)
            row = (
                tree, node, b.integer(0, columns - 1), float(b.integer(-4, 4)) / 2, *after,
                "LEAF" if ends else mode or b.pick(_MODES),
            )  # fmt: skip
            for values, value in zip(nodes.values(), row, strict=True):
                values.append(value)
            if ends:
                for result in range(results) if b.chance(0.5) else [b.integer(0, results - 1)]:
                    weight = b.integer(-8, 8) / 4
                    for values, value in zip(leaves.values(), (tree, node, result, weight), strict=True):
                        values.append(value)
            else:
                waiting += [(n, level + 1) for n in after]
                number += 2
    named = {f"nodes_{k}": v for k, v in nodes.items()} | {f"{side}_{k}": v for k, v in leaves.items()}
    return named | {"base_values": b.pick([None, _numbers(b, results)])}


def tree_regressor(b: Builder):
    x, targets = _rows(b), b.integer(1, 3)
    trees = _trees(b, "target", b.of(x)[1], targets)
    together = b.pick([None, "SUM", "AVERAGE", "MIN", "MAX"])
    return b.add("TreeEnsembleRegressor", [x], domain=ML, n_targets=targets, aggregate_function=together, **trees)


def tree_classifier(b: Builder):
    x, classes = _rows(b), b.integer(2, 4)
    trees = _trees(b, "class", b.of(x)[1], classes)
    how = {"post_transform": b.pick([None, *_TRANSFORMS]), "classlabels_int64s": _labels(b, classes)}
    return b.add("TreeEnsembleClassifier", [x], 2, domain=ML, **how, **trees)


TABLE = {
    "LinearRegressor": linear_regressor,
    "LinearClassifier": linear_classifier,
    "TreeEnsembleRegressor": tree_regressor,
    "TreeEnsembleClassifier": tree_classifier,
}
