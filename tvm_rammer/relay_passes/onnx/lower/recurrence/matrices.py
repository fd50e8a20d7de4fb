"""The weights of a recurrent layer as matrices with the gates in columns: of numbers, or of bytes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ...emit import Emitter


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of weights.

    Parameters
    ----------
    name : str
        Its value, [terms, columns].
    scale, zero : str
        Of bytes: the scale and the zero point of all columns, or of each one; of numbers both are empty.
    """

    name: str
    scale: str = ""
    zero: str = ""

    def times(self, emit: Emitter, rows: str) -> str:
        """Add the product of some rows with it; for bytes the rows are quantised, too, all by one scale."""
        if not self.scale:
            return emit("MatMul", rows, self.name)
        return emit("DynamicQuantizeMatMul", rows, self.name, self.scale, self.zero, domain="com.microsoft")


class Matrices(ABC):
    """Either the weights W of what a layer reads, or R of its hidden state.

    Parameters
    ----------
    emit : Emitter
    hidden : int
    gates : int
        Of the layer.
    """

    def __init__(self, emit: Emitter, hidden: int, gates: int) -> None:
        self.emit, self.hidden, self.gates = emit, hidden, gates

    @abstractmethod
    def of(self, d: int, block: int, part: tuple[int, int]) -> Matrix:
        """Weights of some gates of a direction, the first and how many; columns are in the order of `Weights.block`."""

    def in_blocks(self, gates: str, block: int, count: int) -> str:
        """What begins with one row for each column of each of some gates, in the order of `Weights.block`."""
        if block == self.hidden:
            return gates
        split = self.emit.reshape(gates, [count, self.hidden // block, block, -1])
        return self.emit("Transpose", split, perm=[1, 0, 2, 3])


class Numbers(Matrices):
    """Weights as ONNX's operators have them, [directions, gates x hidden, terms]."""

    def __init__(self, emit: Emitter, hidden: int, gates: int, weights: str) -> None:
        super().__init__(emit, hidden, gates)
        self._weights = weights

    def of(self, d: int, block: int, part: tuple[int, int]) -> Matrix:
        emit, hidden, (first, count) = self.emit, self.hidden, part
        whole = emit.reshape(emit.part(self._weights, 0, d, d + 1), [self.gates * hidden, -1])
        rows = emit.part(whole, 0, first * hidden, (first + count) * hidden)
        rows = emit.reshape(self.in_blocks(rows, block, count), [count * hidden, -1])
        return Matrix(emit("Transpose", rows, perm=[1, 0]))


class Bytes(Matrices):
    """Weights as DynamicQuantizeLSTM has them, [directions, terms, gates x hidden].

    Scales and zero points are [directions], or there is one for each column, [directions, gates x hidden].
    """

    def __init__(self, emit: Emitter, hidden: int, gates: int, names: Sequence[str], each: bool) -> None:
        super().__init__(emit, hidden, gates)
        self._weights, self._scale, self._zero = names
        self._each = each

    def of(self, d: int, block: int, part: tuple[int, int]) -> Matrix:
        matrix = self._columns(self._weights, d, block, part)
        if not self._each:
            one = (self.emit.part(name, 0, d, d + 1) if name else "" for name in (self._scale, self._zero))
            return Matrix(matrix, *one)
        each = (name and self._columns(name, d, block, part) for name in (self._scale, self._zero))
        return Matrix(matrix, *(name and self.emit.reshape(name, [-1]) for name in each))

    def _columns(self, name: str, d: int, block: int, part: tuple[int, int]) -> str:
        """Columns of some gates of a direction, [terms, columns]."""
        emit, hidden, (first, count) = self.emit, self.hidden, part
        whole = emit.reshape(emit.part(name, 0, d, d + 1), [-1, self.gates * hidden])
        columns = emit("Transpose", emit.part(whole, 1, first * hidden, (first + count) * hidden), perm=[1, 0])
        return emit("Transpose", emit.reshape(self.in_blocks(columns, block, count), [count * hidden, -1]), perm=[1, 0])
