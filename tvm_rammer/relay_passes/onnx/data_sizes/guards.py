"""What converters have checked before they read by numbers that only the data say."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tvm import relax, tirx

from ....errors import DATA_MARK
from ...bindings import dtype_of
from ...passes.indices.index_guard import GuardKind, Relation, index_guard, size_guard
from ...passes.indices.messages import literal, origin_so_far
from .names import DESCRIBED


def between(
    bb: relax.BlockBuilder, vector: relax.Expr, bounds: tuple[int, int], attributes: Mapping[str, Any], what: str
) -> relax.Expr:
    """A copy of a vector, made where all of its numbers lie between two bounds; else the call ends.

    Parameters
    ----------
    bb : relax.BlockBuilder
    vector : relax.Expr
        Of int64.
    bounds : tuple of int
        The least number and the greatest.
    attributes : mapping
        Of the node that the error speaks of.
    what : str
        What is wrong otherwise.
    """
    kind = GuardKind(1, dtype_of(vector.ty), 1, 0, _message(bb, vector, attributes, what))
    guard = bb.add_func(index_guard(kind), "number_guard")
    arguments = relax.Tuple([vector, *(tirx.const(bound, "int64") for bound in bounds)])
    return bb.emit(relax.call_tir(guard, arguments, vector.ty))


def related(
    bb: relax.BlockBuilder,
    vector: relax.Expr,
    pairs: Sequence[tuple[Any, Any]],
    relation: Relation,
    attributes: Mapping[str, Any],
    what: str,
) -> relax.Expr:
    """A copy of a vector, made where the extents of each pair have a relation; else the call ends.

    Parameters
    ----------
    bb : relax.BlockBuilder
    vector : relax.Expr
        What comes next reads it.
    pairs : sequence of pairs of tirx.Expr
        Of int64.
    relation : Relation
    attributes : mapping
        Of the node that the error speaks of.
    what : str
        What is wrong otherwise.
    """
    if not pairs:
        return vector
    message = _message(bb, vector, attributes, what)
    guard = bb.add_func(size_guard(1, dtype_of(vector.ty), len(pairs), message, relation), "size_guard")
    arguments = relax.Tuple([vector, *(extent for pair in pairs for extent in pair)])
    return bb.emit(relax.call_tir(guard, arguments, vector.ty))


def resized(
    bb: relax.BlockBuilder, data: relax.Expr, shape: Sequence[Any], attributes: Mapping[str, Any], what: str
) -> relax.Expr:
    """A tensor of another shape with the same elements, made where it has as many; else the call ends.

    Parameters
    ----------
    bb : relax.BlockBuilder
    data : relax.Expr
        Whose shape has expressions for its extents.
    shape : sequence of int or tirx.Expr
    attributes : mapping
        Of the node that the error speaks of.
    what : str
        What is wrong otherwise.
    """
    there, wanted = _count(data.ty.shape), _count(shape)
    row = bb.emit(relax.op.reshape(data, [there]))
    message = _message(bb, data, attributes, what)
    guard = bb.add_func(size_guard(1, dtype_of(data.ty), 1, message, Relation.EQUAL), "size_guard")
    ty = relax.TensorType([wanted], dtype_of(data.ty))
    return bb.emit(relax.op.reshape(bb.emit(relax.call_tir(guard, relax.Tuple([row, there, wanted]), ty)), shape))


def _count(shape: Sequence[Any]) -> tirx.Expr:
    return math.prod(shape, start=tirx.IntImm("int64", 1))


def _message(bb: relax.BlockBuilder, vector: relax.Expr, attributes: Mapping[str, Any], what: str) -> str:
    return DATA_MARK + literal(f"{attributes[DESCRIBED]} {what}") + origin_so_far(bb, vector)
