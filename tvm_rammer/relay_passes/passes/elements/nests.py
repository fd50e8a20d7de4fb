"""Nests of loops around what computes each element of a tensor once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, Op, TensorLoad

from ....loads.bodies import substituted

Access = tuple[tirx.Var, Sequence[Expr]]
"""A buffer, and the indices at which it is read or written."""

_EFFECTS = ("tirx.call_", "tirx.address_of", "tirx.tvm_")
"""What calls functions, or takes addresses."""


@dataclass(frozen=True, slots=True)
class Nest:
    """Serial loops around the store of one element, which has no effects besides.

    Parameters
    ----------
    axes : list of (tirx.Var, Expr)
        The loops' variables and extents, from the outermost to the innermost.
    store : tirx.BufferStore
    name : str
        Of the block that it comes from.
    """

    axes: list[tuple[tirx.Var, Expr]]
    store: tirx.BufferStore
    name: str = ""

    @property
    def elements(self) -> Expr:
        """How many times the element is stored."""
        return product(extent for _, extent in self.axes)

    def code(self) -> tirx.Stmt:
        """The loops."""
        made: tirx.Stmt = self.store
        for var, extent in reversed(self.axes):
            made = tirx.For(var, tirx.IntImm(var.ty.dtype, 0), extent, tirx.ForKind.SERIAL, made)
        return made


def statements_of(func: tirx.PrimFunc) -> list[tirx.Stmt]:
    """The statements of a function in blocks that nobody scheduled; none of any other."""
    if "tirx.is_scheduled" in (func.attrs or {}) or not isinstance(func.body, s_tir.SBlockRealize):
        return []
    return parts(func.body.block.body)


def parts(statement: tirx.Stmt) -> list[tirx.Stmt]:
    """The statements of a sequence; of any other one, itself."""
    return list(statement.seq) if isinstance(statement, tirx.SeqStmt) else [statement]


def nest_of(statement: tirx.Stmt) -> Nest | None:
    """Loops around a block as such a nest; None where they are something else."""
    loops: list[tirx.For] = []
    while isinstance(statement, tirx.For):
        loops.append(statement)
        statement = statement.body
    if not loops or not isinstance(statement, s_tir.SBlockRealize):
        return None
    block, along = statement.block, [loop.loop_var for loop in loops]
    plain = (
        isinstance(statement.predicate, tirx.IntImm)
        and int(statement.predicate) == 1
        and len(along) == len(statement.iter_values)
        and all(var.same_as(value) for var, value in zip(along, statement.iter_values, strict=True))
        and all(is_serial(loop) for loop in loops)
        and all(axis.iter_type == tirx.IterVar.DataPar for axis in block.iter_vars)
        and block.init is None
        and isinstance(block.body, tirx.BufferStore)
        and not list(block.alloc_buffers)
        and not any(_has_effects(call) for call in _calls(block.body))
    )
    if not plain:
        return None
    store = substituted(block.body, {axis.var: var for axis, var in zip(block.iter_vars, along, strict=True)})
    return Nest([(loop.loop_var, loop.extent) for loop in loops], store, block.name_hint)


def single_nest(statement: tirx.Stmt) -> Nest | None:
    """Loops around a single store, without a block, as such a nest; None where they are something else."""
    axes = []
    while isinstance(statement, tirx.For) and is_serial(statement):
        axes.append((statement.loop_var, statement.extent))
        statement = statement.body
    return Nest(axes, statement) if axes and isinstance(statement, tirx.BufferStore) else None


def is_code(statement: tirx.Stmt) -> bool:
    """Whether a statement has neither blocks nor effects but those of its stores."""
    blocks: list[s_tir.SBlock] = []
    tvm_ffi.structural_walk(statement, (s_tir.SBlock, blocks.append), order="pre")
    return not blocks and not any(_has_effects(call) for call in _calls(statement))


def is_serial(loop: tirx.For) -> bool:
    """Whether a loop counts from 0, one by one, in 64 bits, and nothing more is said of it."""
    begins = isinstance(loop.min, tirx.IntImm) and int(loop.min) == 0
    wide = str(loop.loop_var.ty.dtype) == str(loop.extent.ty.dtype) == "int64"
    return begins and wide and loop.kind == tirx.ForKind.SERIAL and not loop.annotations


def accesses(statement: tirx.Stmt | Expr) -> tuple[list[Access], list[Access]]:
    """What a statement reads, and what it writes."""
    read, written = list[Access](), list[Access]()
    tvm_ffi.structural_walk(
        statement,
        [
            (TensorLoad, lambda load: read.append((load.source, load.indices))),
            (tirx.BufferStore, lambda store: written.append((store.buffer, store.indices))),
        ],
        order="pre",
    )
    return read, written


def goes_along(axes: Sequence[tuple[tirx.Var, Expr]], access: Access) -> bool:
    """Whether an access is at the axes, in order and each as long as the buffer's, or does not depend on them."""
    buffer, indices = access
    axes = [(var, extent) for var, extent in axes if not is_one(extent)]
    places = [(index, size) for index, size in zip(indices, buffer.shape, strict=True) if not is_one(size)]
    variables = {var for var, _ in axes}
    if not any(_depends(index, variables) for index, _ in places):
        return True
    outer, inner = places[: len(places) - len(axes)], places[len(places) - len(axes) :]
    return (
        len(places) >= len(axes)
        and not any(_depends(index, variables) for index, _ in outer)
        and all(var.same_as(index) for (var, _), (index, _) in zip(axes, inner, strict=True))
        and all(
            tvm_ffi.structural_equal(extent, size) for (_, extent), (_, size) in zip(axes[1:], inner[1:], strict=True)
        )
    )


def axes_at(found: Sequence[Access], var: tirx.Var) -> set[int]:
    """The axes of a buffer at which all accesses are at a variable."""
    return set.intersection(*({n for n, index in enumerate(indices) if index.same_as(var)} for _, indices in found))


def split(axes: Sequence[tuple[tirx.Var, Expr]], k: Expr) -> dict[tirx.Var, Expr]:
    """Where axes that became one are."""
    places: dict[tirx.Var, Expr] = {}
    for var, extent in reversed(axes[1:]):
        places[var] = tirx.floormod(k, extent)
        k = tirx.floordiv(k, extent)
    return places | {axes[0][0]: k}


def product(extents: "Iterator[Expr] | Sequence[Expr]") -> Expr:
    """A number of elements."""
    made: Expr = tirx.IntImm("int64", 1)
    for extent in extents:
        made = made * extent
    return made


def is_one(extent: Expr) -> bool:
    """Whether an axis has one place."""
    return isinstance(extent, tirx.IntImm) and int(extent) == 1


def _depends(index: Expr, variables: set[tirx.Var]) -> bool:
    return bool(variables.intersection(tirx.analysis.undefined_vars(index)))


def _calls(statement: tirx.Stmt) -> list[Call]:
    found: list[Call] = []
    tvm_ffi.structural_walk(statement, (Call, found.append), order="pre")
    return found


def _has_effects(call: Call) -> bool:
    return not isinstance(call.op, Op) or call.op.name.startswith(_EFFECTS)
