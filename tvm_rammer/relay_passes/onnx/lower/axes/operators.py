"""Axes that are broadcast, begun before they begin, or chosen when the model runs."""

from collections import Counter
from typing import Any

import numpy as np

from ...emit import Emitter, NodeView


def _einsum(node: NodeView, emit: Emitter) -> Emitter | None:
    """A letter that is 1 in one term and more in another one: it is left out of the first term."""
    equation = node.attribute("equation", b"").decode().replace(" ", "")
    left, arrow, right = equation.partition("->")
    found = [_letters(term, node.dims(i)) for i, term in enumerate(left.split(","))]
    terms = [term for term in found if term is not None]
    if not len(terms) == len(found) == len(node.node.input):
        return None
    most: dict[str, int] = {}
    for letter, size in (pair for term in terms for pair in term):
        most[letter] = max(size, most.get(letter, size))
    broadcast = [[letter != "." and size == 1 < most[letter] for letter, size in term] for term in terms]
    if not any(map(any, broadcast)):
        return None
    if any(
        len({size for own, size in term if own == letter}) > 1 for term in terms for letter, _ in term if letter != "."
    ):
        return None  # a diagonal of what is no square
    if not arrow:
        counts = Counter(left.replace(".", "").replace(",", ""))
        right = "..." * ("..." in left) + "".join(sorted(letter for letter, count in counts.items() if count == 1))
    kept, values, factors = [], [], []
    for text, term, dropped, name in zip(left.split(","), terms, broadcast, node.node.input, strict=True):
        gone = {letter for (letter, _), is_dropped in zip(term, dropped, strict=True) if is_dropped}
        rest = [size for letter, size in term if letter not in gone]
        value = emit.reshape(name, rest) if gone else name
        text = "".join(letter for letter in text if letter not in gone)
        if text:
            kept.append(text)
            values.append(value)
        else:
            factors.append(value)
    made = emit("Einsum", *values, equation=f"{','.join(kept)}->{right}")
    for factor in factors:
        made = emit("Mul", made, factor)
    emit.name(made, node.output)
    return emit


def _letters(term: str, dims: list[int] | None) -> list[tuple[str, int]] | None:
    """The letter and size of each axis of a term, dots for those of an ellipsis; None where it does not fit."""
    spread = len(dims or []) - len(term.replace("...", ""))
    if dims is None or spread < 0 or (spread and "..." not in term):
        return None
    return list(zip(term.replace("...", "." * spread), dims, strict=True))


def _slice(node: NodeView, emit: Emitter) -> Emitter | None:
    """Backwards from before an axis: ONNX begins at its first element then, where Python has none."""
    dims, (begins, axes, steps) = node.dims(0), (node.array(i) for i in (1, 3, 4))
    if dims is None or begins is None or steps is None or (node.input(3) and axes is None):
        return None
    places = np.arange(begins.size) if axes is None else axes
    if not begins.shape == places.shape == steps.shape or (np.abs(places + 0.5) > len(dims)).any():
        return None  # it says something impossible
    sizes = np.array(dims, begins.dtype)[places]
    before = (steps < 0) & (begins < -sizes)
    if not before.any():
        return None
    moved, rest = emit.constant(np.where(before, -sizes, begins)), list(node.node.input)[2:]
    emit.last("Slice", node.input(0), moved, *rest, outputs=node.node.output)
    return emit


def _running(node: NodeView, emit: Emitter) -> Emitter | None:
    """Along every axis there is, of which the one is chosen that is asked for; for an axis that is computed."""
    dims = node.dims(0)
    if dims is None or not dims or node.array(1) is not None or not node.last:
        return None
    how: dict[str, Any] = {name: node.attribute(name, 0) for name in ("exclusive", "reverse")}
    along = [
        emit(node.node.op_type, node.input(0), emit.constant(np.array(axis, np.int64)), **how)
        for axis in range(len(dims))
    ]
    every = emit.join([emit.axes("Unsqueeze", value, 0) for value in along], 0)
    emit.name(emit("Gather", every, emit.reshape(node.input(1), []), axis=0), node.output)
    return emit


AXES = {
    ("", "CumProd"): _running,
    ("", "CumSum"): _running,
    ("", "Einsum"): _einsum,
    ("", "Slice"): _slice,
}
"""By domain and name."""
