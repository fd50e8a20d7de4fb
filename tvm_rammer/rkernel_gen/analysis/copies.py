"""Functions that do nothing but copy, proven: each contiguous piece that they move, from where to where.

A block of such a function stores one element of another buffer, or chooses by its axes of which. In each such case the
axes form a box. The elements that a box writes are contiguous where the coefficients of the flat index are those of a
mixed radix, and the copy keeps their order where the flat indices of both sides differ by a constant. Then a function
that reshapes, concatenates, splits or slices needs no rTasks: its output can lie where its input is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, Range, TensorLoad

from ...ir import ITEM_BYTES, Move, RGraph
from .affine import linear
from .claims import false_claim
from .work import shape_of

Box = Mapping[tirx.Var, tuple[int, int]]
"""For each axis its first value and the one past its last."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Elements that a block copies, in flat order: from `start` of a buffer to `target` of the one it writes."""

    source: tirx.Var
    start: int
    target: int
    length: int


def find_copies(graphs: Sequence[RGraph], functions: Mapping[str, tirx.PrimFunc]) -> dict[str, tuple[Move, ...]]:
    """The moves of each function in some graphs that is proven to do nothing but copy.

    Parameters
    ----------
    graphs : sequence of RGraph
    functions : mapping of str to tirx.PrimFunc
        By the names that `ROperator.function` uses.
    """
    num_inputs = {op.function: len(op.inputs) for graph in graphs for op in graph.operators}
    found = {name: moves_of(functions[name], count) for name, count in num_inputs.items()}
    return {name: moves for name, moves in found.items() if moves}


def moves_of(func: tirx.PrimFunc, num_inputs: int) -> tuple[Move, ...] | None:
    """What a function moves, if it is proven to do nothing else.

    Parameters
    ----------
    func : tirx.PrimFunc
        Not scheduled.
    num_inputs : int
        So many of its parameters, the first ones, are inputs.

    Returns
    -------
    tuple of Move or None
        None where a value is computed, elements change their order, or that they do not is not proven. The moves
        together write each byte of each output once.
    """
    pieces = _pieces_of(func)
    if pieces is None:
        return None
    inputs, outputs = list(func.params[:num_inputs]), list(func.params[num_inputs:])
    moves = []
    for n, output in enumerate(outputs):
        size = math.prod(shape_of(output))
        item = ITEM_BYTES[str(output.dtype)]
        for piece in _traced(output, 0, size, pieces):
            source = next((i for i, param in enumerate(inputs) if param.same_as(piece.source)), None)
            if source is None:
                return None
            moves.append(Move(source, piece.start * item, n, piece.target * item, piece.length * item))
    return tuple(moves)


def _pieces_of(func: tirx.PrimFunc) -> dict[tirx.Var, list[_Piece]] | None:
    """For each buffer that is written its pieces, which cover it without a gap, in order."""
    if false_claim(func):
        return None
    blocks: list[s_tir.SBlock] = []
    tvm_ffi.structural_walk(func.body, [(s_tir.SBlock, blocks.append)], order="pre")
    pieces: dict[tirx.Var, list[_Piece]] = {}
    for block in blocks[1:]:  # the first one is the root
        found = _copied(block)
        if found is None or block.body.buffer in pieces:
            return None
        end = 0
        for piece in found:
            if piece.target != end:
                return None
            end += piece.length
        if end != math.prod(shape_of(block.body.buffer)):
            return None
        pieces[block.body.buffer] = found
    return pieces


def _copied(block: s_tir.SBlock) -> list[_Piece] | None:
    """The pieces that a block copies, in the order of what it writes; None where it does not merely copy."""
    store = block.body
    if not isinstance(store, tirx.BufferStore) or block.init is not None:
        return None
    if not all(isinstance(n, tirx.IntImm) for axis in block.iter_vars for n in (axis.dom.min, axis.dom.extent)):
        return None
    domain = {a.var: (int(a.dom.min), int(a.dom.min) + int(a.dom.extent)) for a in block.iter_vars}
    found = []
    for box, value in _cases(store.value, domain):
        piece = _piece(store, value, box) if isinstance(value, TensorLoad) else None
        if piece is None:
            return None
        found.append(piece)
    return sorted(found, key=lambda piece: piece.target)


def _cases(value: Expr, box: Box) -> Iterator[tuple[Box, Expr]]:
    """What a value is in which boxes; a condition that is no bound of an axis is left in the value."""
    if isinstance(value, tirx.Select):
        condition, one, other = value.condition, value.true_value, value.false_value
    elif isinstance(value, Call) and getattr(value.op, "name", "").endswith("if_then_else"):
        condition, one, other = value.args
    else:
        yield box, value
        return
    bound = _lower_bound(condition)
    if bound is None or bound[0] not in box:
        yield box, value
        return
    axis, first, holds_above = bound
    low, high = box[axis]
    middle = min(max(first, low), high)
    above, below = (one, other) if holds_above else (other, one)
    if low < middle:
        yield from _cases(below, {**box, axis: (low, middle)})
    if middle < high:
        yield from _cases(above, {**box, axis: (middle, high)})


def _lower_bound(condition: Expr) -> tuple[tirx.Var, int, bool] | None:
    """A comparison as (axis, first value of its upper part, whether the comparison holds there)."""
    if not isinstance(condition, tirx.LT | tirx.LE | tirx.GT | tirx.GE):
        return None
    a, b = condition.a, condition.b
    if isinstance(a, tirx.Var) and isinstance(b, tirx.IntImm):
        axis, number, below = a, int(b), isinstance(condition, tirx.LT | tirx.LE)
        strict = isinstance(condition, tirx.LT | tirx.GE)
    elif isinstance(b, tirx.Var) and isinstance(a, tirx.IntImm):
        axis, number, below = b, int(a), isinstance(condition, tirx.GT | tirx.GE)
        strict = isinstance(condition, tirx.GT | tirx.LE)
    else:
        return None
    return axis, number if strict else number + 1, not below


def _piece(store: tirx.BufferStore, load: TensorLoad, box: Box) -> _Piece | None:
    """The elements that are copied in a box; None where they are not contiguous, or change their order."""
    source, target = load.source, store.buffer
    if str(source.dtype) != str(target.dtype) or source.same_as(target):
        return None
    written = _flat(store.indices, shape_of(target))
    coefficients = linear(written, list(box))
    if coefficients is None:
        return None
    strides = {axis: c for axis, c in zip(box, coefficients, strict=False) if box[axis][1] - box[axis][0] > 1}
    length = 1
    for axis, stride in sorted(strides.items(), key=lambda term: term[1]):
        if stride != length:
            return None
        length *= box[axis][1] - box[axis][0]
    first = coefficients[-1] + sum(c * box[axis][0] for axis, c in zip(box, coefficients, strict=False))
    analyzer = tvm.sym.Analyzer()
    for axis, (low, high) in box.items():
        analyzer.bind(axis, Range(_number(low, axis), _number(high, axis)))
    shift = analyzer.simplify(_flat(load.indices, shape_of(source)) - written)
    if not isinstance(shift, tirx.IntImm):
        return None
    start = first + int(shift)
    inside = 0 <= first <= math.prod(shape_of(target)) - length and 0 <= start <= math.prod(shape_of(source)) - length
    return _Piece(source, start, first, length) if inside else None


def _number(value: int, like: tirx.Var) -> tirx.IntImm:
    return tirx.IntImm(str(like.ty.dtype), value)


def _flat(indices: Sequence[Expr], shape: Sequence[int]) -> Expr:
    flat: Expr = tirx.IntImm("int64", 0)
    for index, extent in zip(indices, shape, strict=True):
        flat = flat * extent + index
    return flat


def _traced(
    buffer: tirx.Var, start: int, length: int, pieces: Mapping[tirx.Var, Sequence[_Piece]], target: int = 0
) -> Iterator[_Piece]:
    """Where elements of a buffer come from, through buffers within the function."""
    if buffer not in pieces:
        yield _Piece(buffer, start, target, length)
        return
    for piece in pieces[buffer]:
        first, end = max(start, piece.target), min(start + length, piece.target + piece.length)
        if first < end:
            moved = piece.start + first - piece.target
            yield from _traced(piece.source, moved, end - first, pieces, target + first - start)
