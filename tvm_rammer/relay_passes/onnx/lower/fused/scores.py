"""How well queries fit keys, as nodes: in single precision where they are of half, for it is beyond 65504 soon."""

import numpy as np

from ...emit import Emitter
from ..norms.moments import widened


def scaled_product(emit: Emitter, queries: str, keys: str, scale: float) -> tuple[Emitter, str]:
    """The product of queries and keys times a scale.

    Parameters
    ----------
    emit : Emitter
    queries, keys : str
        Matrices: a row for each query, a column for each key.
    scale : float

    Returns
    -------
    Emitter
        For what is made of the scores: of the type that they have.
    str
    """
    if not emit.is_half:
        return emit, emit("MatMul", emit("Mul", queries, emit.number(scale)), keys)
    wide = emit.in_type(np.float32)
    return wide, wide("Mul", wide("MatMul", widened(emit, queries), widened(emit, keys)), wide.number(scale))


def weighted(emit: Emitter, weights: str, values: str) -> str:
    """What queries get of values, [..., keys, size], in the values' type: a softmax of scores has the weights."""
    if emit.is_half:
        weights = emit("Cast", weights, to=emit.elem)
    return emit("MatMul", weights, values)
