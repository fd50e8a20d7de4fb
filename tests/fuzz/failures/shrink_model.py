"""Smaller ONNX models: fewer nodes and outputs, simpler attributes, smaller extents, plainer values."""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..case import ModelCase
from ..generate.builder import _reads


class Reducer:
    """Proposes smaller models.

    Parameters
    ----------
    values : mapping of str to array
        What each tensor of the first model is: where a node goes, its results become inputs.
    case : ModelCase
        The first model. If it is valid, then so are those that are proposed.
    """

    def __init__(self, values: dict[str, np.ndarray], case: ModelCase) -> None:
        self.values = values
        self.valid = _is_valid(case.data)

    def candidates(self, case: ModelCase) -> Iterator[ModelCase]:
        """Smaller cases, the much smaller ones first."""
        try:
            model = onnx.load_from_string(case.data)
        except Exception:
            return
        for smaller, feeds in (*self._parts(case, model), *_attributes(case, model), *_extents(case, model)):
            feeds = _drop_unread(smaller, feeds)
            data = smaller.SerializeToString()
            if not self.valid or _is_valid(data):
                yield ModelCase(case.kind, case.seed, data, feeds)
        for feeds in _plainer(case.feeds):
            yield ModelCase(case.kind, case.seed, case.data, feeds)

    def _parts(
        self, case: ModelCase, model: onnx.ModelProto
    ) -> Iterator[tuple[onnx.ModelProto, dict[str, np.ndarray]]]:
        nodes = list(model.graph.node)
        outputs = [o.name for o in model.graph.output]
        if len(nodes) > 1:
            for node in nodes:
                yield from self._some(case, model, [node], list(node.output))
            for i in range(len(nodes)):
                rest = nodes[:i] + nodes[i + 1 :]
                lost = [n for n in nodes[i].input if n in {o for r in rest for o in r.output}]
                kept = [o for o in outputs if o not in nodes[i].output]
                yield from self._some(case, model, rest, kept or lost)
        if len(outputs) > 1:
            for name in outputs:
                yield from self._some(case, model, nodes, [name])

    def _some(
        self, case: ModelCase, model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]
    ) -> Iterator[tuple[onnx.ModelProto, dict[str, np.ndarray]]]:
        """The model of some nodes, of which those are left that the outputs need."""
        needed, kept = set(outputs), []
        for node in reversed(nodes):
            if needed & set(node.output):
                kept.insert(0, node)
                needed |= set(_reads(node))
        made = {o for node in kept for o in node.output}
        constants = [t for t in model.graph.initializer if t.name in needed]
        wanted = [n for n in sorted(needed - made - {t.name for t in constants} - {""}) if n not in _inner(kept)]
        arrays = {**self.values, **case.feeds}
        known = {i.name: i for i in model.graph.input}
        if not kept or any(n not in arrays and n not in known for n in wanted) or not set(outputs) <= made:
            return
        types = {o.name: o for o in model.graph.output}
        ends = [types[n] if n in types else _info(n, arrays.get(n)) for n in outputs if n]
        graph = helper.make_graph(
            kept, model.graph.name, [known.get(n) or _info(n, arrays[n]) for n in wanted], ends, constants
        )
        smaller = onnx.ModelProto()
        smaller.CopyFrom(model)
        smaller.graph.CopyFrom(graph)
        yield smaller, {n: arrays[n] for n in wanted if n in arrays}


def _drop_unread(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Remove inputs and constants that nothing reads; return what is fed to the others."""
    graph = model.graph
    read = {n for node in graph.node for n in _reads(node)} | {o.name for o in graph.output}
    for some in (graph.input, graph.initializer):
        for i in reversed(range(len(some))):
            if some[i].name not in read:
                del some[i]
    return {n: a for n, a in feeds.items() if n in read}


def _inner(nodes: Sequence[onnx.NodeProto]) -> set[str]:
    """Names that belong to subgraphs."""
    graphs = [a.g for node in nodes for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return {n for g in graphs for n in (*(i.name for i in g.input), *(o for node in g.node for o in node.output))}


def _info(name: str, array: np.ndarray | None) -> onnx.ValueInfoProto:
    if array is None:
        return helper.make_empty_tensor_value_info(name)  # no judge could tell: it need not be valid
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _is_valid(data: bytes) -> bool:
    try:
        onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    except Exception:
        return False
    return True


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _attributes(case: ModelCase, model: onnx.ModelProto) -> Iterator[tuple[onnx.ModelProto, dict[str, np.ndarray]]]:
    """Without an attribute, or without the last input of a node."""
    for i, node in enumerate(model.graph.node):
        for j in range(len(node.attribute)):
            smaller = _copy(model)
            del smaller.graph.node[i].attribute[j]
            yield smaller, case.feeds
        if len(node.input) > 1:
            smaller = _copy(model)
            smaller.graph.node[i].input.pop()
            yield smaller, case.feeds


def _extents(case: ModelCase, model: onnx.ModelProto) -> Iterator[tuple[onnx.ModelProto, dict[str, np.ndarray]]]:
    """All axes of an extent cut to a smaller one, in inputs and constants; results get no shapes."""
    constants = {t.name: t for t in model.graph.initializer}
    try:
        arrays = {n: numpy_helper.to_array(t) for n, t in constants.items()}
    except Exception:
        return
    extents = sorted({d for a in (*arrays.values(), *case.feeds.values()) for d in a.shape if d > 1}, reverse=True)
    for old in extents:
        for new in sorted({1, 2, old // 2, old - 1} & set(range(1, old))):
            cut = {n: _cut(a, old, new) for n, a in arrays.items()}
            smaller = _copy(model)
            feeds = {n: _cut(a, old, new) for n, a in case.feeds.items()}
            for t in smaller.graph.initializer:
                t.CopyFrom(numpy_helper.from_array(cut[t.name], t.name))
            for info in smaller.graph.input:
                if info.name in feeds:
                    info.CopyFrom(_info(info.name, feeds[info.name]))
            for info in smaller.graph.output:
                for i, dim in enumerate(info.type.tensor_type.shape.dim):
                    dim.dim_param = f"{info.name}_{i}"
            yield smaller, feeds


def _cut(array: np.ndarray, old: int, new: int) -> np.ndarray:
    """The first `new` of each axis of extent `old`; a list of sizes names the new extent."""
    if array.dtype == np.int64 and array.ndim == 1 and old in array and len(array) != old:
        return np.where(array == old, new, array)
    return np.ascontiguousarray(array[tuple(slice(new if d == old else None) for d in array.shape)]).reshape(
        [new if d == old else d for d in array.shape]
    )


def _plainer(feeds: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Inputs of zeros, of ones, of few digits."""
    for name, array in feeds.items():
        if array.dtype.kind != "f":
            continue
        with np.errstate(all="ignore"):
            rounded = np.round(array, 1).astype(array.dtype)
        for plain in (np.zeros_like(array), np.ones_like(array), rounded):
            if not np.array_equal(plain, array, equal_nan=True):
                if np.array_equal(array, np.zeros_like(array)) or np.array_equal(array, np.ones_like(array)):
                    break
                yield {**feeds, name: plain}
