"""A matrix is transposed in registers, by shuffles of two vectors.

The first two steps are the unpacking instructions of x86, which interleave within 16 bytes; the others exchange
halves of ever larger parts. Bytes are in vectors of 16, for which all steps are such instructions. What each element
is, is followed along, so the order of the registers needs no thought.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr

from ...ir import ITEM_BYTES

Label = tuple[int, int]
"""Row and column of an element in the matrix before it is transposed."""


@dataclass(frozen=True, slots=True)
class _Register:
    value: Expr
    labels: tuple[Label, ...]


def vector_of(dtype: str, vector_bytes: int) -> int:
    """Elements of the vectors that are transposed, for a processor whose vectors have so many bytes."""
    return vector_bytes // 4 if ITEM_BYTES[dtype] == 4 else 16


def transpose(
    rows: Sequence[Expr], width: int, store: Callable[[int, Expr], tirx.Stmt], dtype: str = "float32"
) -> list[tirx.Stmt]:
    """Store the columns of a matrix whose rows are vectors.

    Parameters
    ----------
    rows : sequence of Expr
        As many as a power of two, each of `width` elements; no more than `width`.
    width : int
        A power of two.
    store : callable
        `store(column, vector)`; the vector has an element of each row.
    dtype : str
        Of the elements: of 4 bytes, or bytes.

    Returns
    -------
    list of tirx.Stmt
        Definitions of registers, and the stores.
    """
    statements: list[tirx.Stmt] = []

    def define(value: Expr) -> Expr:
        var = tirx.Var("lanes", f"{dtype}x{width}")
        statements.append(tirx.Bind(var, value))
        return var

    registers = [_Register(define(row), tuple((r, e) for e in range(width))) for r, row in enumerate(rows)]
    orders = _orders if ITEM_BYTES[dtype] == 4 else _orders_of_bytes
    step = 1
    while step < len(rows):
        for first in range(len(rows)):
            if not first & step:
                pair = registers[first], registers[first | step]
                for index, order in zip((first, first | step), orders(step, width), strict=True):
                    labels = [*pair[0].labels, *pair[1].labels]
                    value = define(tirx.Shuffle([r.value for r in pair], [_index(i) for i in order]))
                    registers[index] = _Register(value, tuple(labels[i] for i in order))
        step *= 2
    for register in registers:
        for at in range(0, width, len(rows)):
            part = register.labels[at : at + len(rows)]
            (column,) = {e for _, e in part}
            assert [r for r, _ in part] == list(range(len(rows)))
            whole = len(rows) == width
            indices = [_index(at + i) for i in range(len(rows))]
            statements.append(store(column, register.value if whole else tirx.Shuffle([register.value], indices)))
    return statements


def _index(value: int) -> Expr:
    return tirx.IntImm("int32", value)


def _orders(step: int, width: int) -> tuple[list[int], list[int]]:
    """Which elements of two vectors make the two new ones."""
    if step == 1 and width >= 4:  # unpack single elements, in each 16 bytes
        low, high = (0, width, 1, width + 1), (2, width + 2, 3, width + 3)
        return _in_each(low, width), _in_each(high, width)
    if step == 2 and width >= 4:  # unpack pairs
        low, high = (0, 1, width, width + 1), (2, 3, width + 2, width + 3)
        return _in_each(low, width), _in_each(high, width)
    first = [i if not i & step else width + (i ^ step) for i in range(width)]
    second = [i | step if not i & step else width + i for i in range(width)]
    return first, second


def _orders_of_bytes(step: int, width: int) -> tuple[list[int], list[int]]:
    """Unpack parts of `step` bytes, of the lower and of the upper halves of two vectors."""
    places = range(0, width, step)
    pairs = [[*range(at, at + step), *range(width + at, width + at + step)] for at in places]
    mixed = [place for pair in pairs for place in pair]
    return mixed[:width], mixed[width:]


def _in_each(order: tuple[int, ...], width: int) -> list[int]:
    return [at + i for at in range(0, width, 4) for i in order]
