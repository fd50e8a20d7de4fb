"""A matrix is transposed in registers, by shuffles of two vectors.

The first two steps are the unpacking instructions of x86, which interleave within 16 bytes; the others exchange
halves of ever larger parts. What each element is, is followed along, so the order of the registers needs no thought.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr

Label = tuple[int, int]
"""Row and column of an element in the matrix before it is transposed."""


@dataclass(frozen=True, slots=True)
class _Register:
    value: Expr
    labels: tuple[Label, ...]


def transpose(rows: Sequence[Expr], lanes: int, store: Callable[[int, Expr], tirx.Stmt]) -> list[tirx.Stmt]:
    """Store the columns of a matrix whose rows are vectors.

    Parameters
    ----------
    rows : sequence of Expr
        As many as a power of two, each of `lanes` elements of float32; no more than `lanes`.
    lanes : int
        A power of two.
    store : callable
        `store(column, vector)`; the vector has an element of each row.

    Returns
    -------
    list of tirx.Stmt
        Definitions of registers, and the stores.
    """
    statements: list[tirx.Stmt] = []

    def define(value: Expr) -> Expr:
        var = tirx.Var("lanes", f"float32x{lanes}")
        statements.append(tirx.Bind(var, value))
        return var

    registers = [_Register(define(row), tuple((r, e) for e in range(lanes))) for r, row in enumerate(rows)]
    step = 1
    while step < len(rows):
        for first in range(len(rows)):
            if not first & step:
                pair = registers[first], registers[first | step]
                for place, order in zip((first, first | step), _orders(step, lanes), strict=True):
                    labels = [*pair[0].labels, *pair[1].labels]
                    value = define(tirx.Shuffle([r.value for r in pair], [_index(i) for i in order]))
                    registers[place] = _Register(value, tuple(labels[i] for i in order))
        step *= 2
    for register in registers:
        for at in range(0, lanes, len(rows)):
            part = register.labels[at : at + len(rows)]
            (column,) = {e for _, e in part}
            assert [r for r, _ in part] == list(range(len(rows)))
            whole = len(rows) == lanes
            indices = [_index(at + i) for i in range(len(rows))]
            statements.append(store(column, register.value if whole else tirx.Shuffle([register.value], indices)))
    return statements


def _index(value: int) -> Expr:
    return tirx.IntImm("int32", value)


def _orders(step: int, lanes: int) -> tuple[list[int], list[int]]:
    """Which elements of two vectors make the two new ones."""
    if step == 1 and lanes >= 4:  # unpack single elements, in each 16 bytes
        low, high = (0, lanes, 1, lanes + 1), (2, lanes + 2, 3, lanes + 3)
        return _in_each(low, lanes), _in_each(high, lanes)
    if step == 2 and lanes >= 4:  # unpack pairs
        low, high = (0, 1, lanes, lanes + 1), (2, 3, lanes + 2, lanes + 3)
        return _in_each(low, lanes), _in_each(high, lanes)
    first = [i if not i & step else lanes + (i ^ step) for i in range(lanes)]
    second = [i | step if not i & step else lanes + i for i in range(lanes)]
    return first, second


def _in_each(order: tuple[int, ...], lanes: int) -> list[int]:
    return [at + i for at in range(0, lanes, 4) for i in order]
