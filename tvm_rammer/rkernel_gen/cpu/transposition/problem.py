"""What the transposition rule takes a function for: elements that are read along another axis than they are written."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad
from tvm.s_tir.schedule import ScheduleError

from ...analysis.affine import are, linear
from ...analysis.blocks import SPATIAL, blocks_of, has_branch
from ...analysis.variables import uses
from ...analysis.work import shape_of
from ..generic.cost import expression_cycles
from ..generic.read import inlined_schedule

_DTYPES = {"float32", "int32", "uint8", "int8"}
LEAST = 4
"""Elements of the two innermost axes: a tile of fewer gains nothing."""


@dataclass(frozen=True, slots=True)
class Transposition:
    """`out[axes] = value`, where some of what the value loads is contiguous along another axis than the innermost one.

    Parameters
    ----------
    out : tirx.Buffer
        A parameter of the function.
    axes : tuple of tirx.Var
        Of the output.
    extents : tuple of int
        Of the axes.
    turned : int
        The axis along which the turned loads are contiguous.
    value : Expr
        Of an element of the output.
    loads : tuple of TensorLoad
        The turned ones of it, of elements of one type. All others move along the innermost axis, or not at all.
    vector_cycles : float
        Cycles for a vector of results, beside those of turning.
    """

    out: tirx.Buffer
    axes: tuple[tirx.Var, ...]
    extents: tuple[int, ...]
    turned: int
    value: Expr
    loads: tuple[TensorLoad, ...]
    vector_cycles: float

    @property
    def dtype(self) -> str:
        """Type of the elements that are turned."""
        return str(self.loads[0].source.dtype)

    @property
    def is_plain(self) -> bool:
        """Whether elements are copied as they are."""
        return isinstance(self.value, TensorLoad)

    def tile(self, simd: int) -> tuple[int, int]:
        """Elements of a tile along the innermost axes of data and output: powers of two, the first not the less."""
        width = min(simd, 1 << self.extents[self.turned].bit_length() - 1)
        return width, min(width, 1 << self.extents[-1].bit_length() - 1)

    def tiles(self, simd: int) -> tuple[int, ...]:
        """Iterations along each axis of the output."""
        width, rows = self.tile(simd)
        sizes = {self.turned: width, len(self.extents) - 1: rows}
        return tuple(-(-extent // sizes.get(axis, 1)) for axis, extent in enumerate(self.extents))

    def split_axis(self, simd: int, parts: int) -> int | None:
        """The axis that is split into rTasks: the first that is long enough; None where none is."""
        *outer, _ = self.tiles(simd)
        return next((axis for axis, tiles in enumerate(outer) if tiles >= parts), None)


@lru_cache(maxsize=64)  # asked for each tiling
def transposition_of(func: tirx.PrimFunc) -> Transposition | None:
    """The transposition that a function is; None where it is something else, or leaves the innermost axis in place.

    A value that is loaded in a branch is not: a tile loads all of its elements.
    """
    try:
        sch = inlined_schedule(func)
    except ScheduleError:
        return None
    blocks = blocks_of(sch)
    if len(blocks) != 1 or has_branch(sch, blocks[0]):
        return None
    block = sch.get(blocks[0])
    axes, store = tuple(axis.var for axis in block.iter_vars), block.body
    if not isinstance(store, tirx.BufferStore) or len(axes) < 2 or not are(store.indices, axes):
        return None
    extents = tuple(int(axis.dom.extent) for axis in block.iter_vars)
    value = _simplified(store.value, dict(zip(axes, extents, strict=True)))
    loads, accessed = _loads(value), set(func.params)
    cycles, calls = expression_cycles(block)
    in_place = {store.buffer, *(load.source for load in loads)} <= accessed and shape_of(store.buffer) == extents
    if not in_place or calls or any(axis.iter_type != SPATIAL for axis in block.iter_vars):
        return None
    across = [load for load in loads if not _moves_along(load, len(axes) - 1, axes)]
    turned = {_contiguous(load, axes) for load in across}
    if len(turned) != 1 or None in turned or len({str(load.source.dtype) for load in across}) != 1:
        return None
    (axis,) = (at for at in turned if at is not None)
    if str(across[0].source.dtype) not in _DTYPES or min(extents[axis], extents[-1]) < LEAST:
        return None
    return Transposition(store.buffer, axes, extents, axis, value, tuple(across), cycles)


def _simplified(value: Expr, extents: Mapping[tirx.Var, int]) -> Expr:
    """A value whose indices are as simple as the extents of the axes allow: a reshape has quotients and remainders."""
    analyzer = tvm.sym.Analyzer()
    for axis, extent in extents.items():
        analyzer.bind(axis, tvm.ir.Range(0, extent))

    def simpler(load: TensorLoad) -> TensorLoad:
        return load.source[tuple(analyzer.simplify(index) for index in load.indices)]

    return tvm_ffi.structural_map(value, (TensorLoad, simpler), order="post")


def _loads(value: Expr) -> list[TensorLoad]:
    """Each load of a value once."""
    found: list[TensorLoad] = []

    def visit(load: TensorLoad) -> None:
        if not any(tvm_ffi.structural_equal(load, other) for other in found):
            found.append(load)

    tvm_ffi.structural_walk(value, [(TensorLoad, visit)], order="pre")
    return found


def _moves_along(load: TensorLoad, axis: int, axes: tuple[tirx.Var, ...]) -> bool:
    """Whether a load does not depend on an axis, or is contiguous along it."""
    return not any(uses(index, axes[axis]) for index in load.indices) or _steps(load, axis, axes)


def _contiguous(load: TensorLoad, axes: tuple[tirx.Var, ...]) -> int | None:
    """The last axis along which a load is contiguous; None where no axis is."""
    return next((axis for axis in reversed(range(len(axes))) if _steps(load, axis, axes)), None)


def _steps(load: TensorLoad, axis: int, axes: tuple[tirx.Var, ...]) -> bool:
    """Whether the last index alone depends on an axis, and grows as it does."""
    if not load.indices or any(uses(index, axes[axis]) for index in load.indices[:-1]):
        return False
    factors = None if _loads(load.indices[-1]) else linear(load.indices[-1], axes)
    return factors is not None and factors[axis] == 1
