"""A walk through a scheduled function that collects the bounding boxes of loads and stores of its parameters."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, StringImm, TensorLoad
from tvm_ffi import Object

from ...loads.bodies import operation
from ..analysis.variables import address, substituted
from ..analysis.work import shape_of
from .bounds import HINT, Bounds
from .boxes import LARGEST_INDEX, Boxes
from .interval import Interval
from .sums import ZERO, Sum


class UnknownCodeError(Exception):
    """The function has a statement or expression that the walk does not support."""


class Walk:
    """Visits a function's statements; keeps the bounds of their scopes, and collects boxes.

    Parameters
    ----------
    func : tirx.PrimFunc
        A scheduled kernel of static shapes.
    num_rtasks : int
    params : sequence of tirx.Var
        The parameters whose boxes are collected.

    Attributes
    ----------
    touched : dict of tirx.Var to list of Boxes
        Boxes of each of these parameters in its views: with its last 1, 2, ... dimensions merged into one.
    opaque : set of int
        The addresses of those that have other uses than loads and stores: what is accessed by a pointer is unknown. A
        hint to load what comes next takes one, and accesses nothing.
    """

    def __init__(self, func: tirx.PrimFunc, num_rtasks: int, params: Sequence[tirx.Var]) -> None:
        self.num_rtasks = num_rtasks
        self.shapes = {p: shape_of(p) for p in params}
        self.touched = {
            p: [Boxes.nothing(len(s) - n, num_rtasks) for n in range(_views(s))] for p, s in self.shapes.items()
        }
        self.opaque: set[int] = set()
        self._bounds = Bounds(num_rtasks)
        self._values: dict[tirx.Var, Expr] = {}
        self._blocks = _block_indices(func.body, num_rtasks)
        self._depth = 0
        self._buffers = {address(p): p for p in params}
        self._seen: set[tuple[int, tuple[Sum, ...], tuple[int, int]]] = set()
        self._simplify = tvm.sym.Analyzer().simplify

    def statement(self, stmt: tirx.Stmt) -> None:
        """Visit a statement.

        Raises
        ------
        UnknownCodeError
            The statement is of an unsupported kind.
        """
        visit = _STATEMENTS.get(type(stmt))
        if visit is None:
            raise UnknownCodeError(type(stmt).__name__)
        visit(self, stmt)

    def _sequence(self, sequence: tirx.SeqStmt) -> None:
        for part in sequence.seq:
            self.statement(part)

    def _store(self, store: tirx.BufferStore) -> None:
        indices = list(store.indices)
        self._access(store.buffer, indices)
        for expr in (*indices, store.value):
            self._expression(expr)

    def _bind(self, bind: tirx.Bind) -> None:
        self._expression(bind.value)
        self._name(bind.var, bind.value)

    def _attribute(self, attribute: tirx.AttrStmt) -> None:
        if attribute.attr_key == "thread_extent":
            raise UnknownCodeError("a thread's extent")
        self.statement(attribute.body)

    def _evaluate(self, evaluate: tirx.Evaluate) -> None:
        if not (isinstance(evaluate.value, Call) and operation(evaluate.value) == HINT):
            self._expression(evaluate.value)

    def _loop(self, loop: tirx.For) -> None:
        self._expression(loop.min)
        self._expression(loop.extent)
        self._bounds.set_range(loop.loop_var, self._range(loop))
        self._depth += 1
        self.statement(loop.body)
        self._depth -= 1

    def _range(self, loop: tirx.For) -> Interval:
        tag = loop.thread_binding.thread_tag if loop.thread_binding is not None else ""
        if tag in self._blocks:
            index = self._blocks[tag]
            return Interval(index, index)
        first, count = (self._bounds.interval(self._bounds.value(end)) for end in (loop.min, loop.extent))
        if (
            self._depth == 0
            and loop.kind == tirx.ForKind.PARALLEL
            and count == Interval(self.num_rtasks, self.num_rtasks)
        ):
            index = first.low + np.arange(self.num_rtasks)
            return Interval(index, index)
        return Interval(first.low, first.high + count.high - 1)

    def _block(self, realize: s_tir.SBlockRealize) -> None:
        block = realize.block
        if block.match_buffers:
            raise UnknownCodeError("a block with match_buffers")
        with self._bounds.scope():
            self._bounds.assume(realize.predicate)
            for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
                self._expression(value)
                self._name(axis.var, value)
                ends = axis.dom.min, axis.dom.extent
                if all(isinstance(end, tirx.IntImm) for end in ends):  # the windows of an adaptive pool vary
                    low, extent = map(int, ends)
                    self._bounds.assume_within(value, low, low + extent - 1)
            if block.init is not None:
                self.statement(block.init)
            self.statement(block.body)

    def _branch(self, branch: tirx.IfThenElse) -> None:
        self._expression(branch.condition)
        with self._bounds.scope():
            self._bounds.assume(branch.condition)
            self.statement(branch.then_case)
        if branch.else_case is not None:
            with self._bounds.scope():
                self._bounds.assume(branch.condition, False)
                self.statement(branch.else_case)

    def _name(self, var: tirx.Var, value: Expr) -> None:
        if "int" in str(var.ty.dtype):
            self._bounds.set_value(var, value)
            self._values[var] = substituted(value, self._values)

    def _expression(self, expr: Expr) -> None:
        visit = _EXPRESSIONS.get(type(expr))
        if visit is not None:
            visit(self, expr)
            return
        for part in _operands(expr):
            self._expression(part)

    def _variable(self, var: tirx.Var) -> None:
        if address(var) in self._buffers:
            self.opaque.add(address(var))

    def _both(self, expr: tirx.Add) -> None:
        self._expression(expr.a)
        self._expression(expr.b)

    def _load(self, load: TensorLoad) -> None:
        indices = list(load.indices)
        self._access(load.source, indices)
        for index in indices:
            self._expression(index)

    def _call(self, call: Call) -> None:
        if operation(call) == "if_then_else":
            self._selection(*call.args)
            return
        if operation(call) == "address_of":
            self._variable(call.args[0].source)
        for arg in call.args:
            self._expression(arg)

    def _let(self, let: tirx.Let) -> None:
        self._expression(let.value)
        self._name(let.var, let.value)
        self._expression(let.body)

    def _selection(self, condition: Expr, then: Expr, otherwise: Expr) -> None:
        self._expression(condition)
        for holds, value in ((True, then), (False, otherwise)):
            with self._bounds.scope():
                self._bounds.assume(condition, holds)
                self._expression(value)

    def _access(self, accessed: tirx.Var, indices: Sequence[Expr]) -> None:
        buffer = self._buffers.get(address(accessed))
        if buffer is None:
            return
        shape, touched, reachable = self.shapes[buffer], self.touched[buffer], self._bounds.reachable
        if len(indices) != len(shape):
            raise UnknownCodeError(f"{len(indices)} indices into {len(shape)} dimensions")
        values = tuple(self._bounds.value(index) for index in indices)
        access = address(buffer), values, self._bounds.facts
        if access in self._seen:  # code that is unrolled reads the same again and again
            return
        self._seen.add(access)
        bounds = [self._bounds.interval(value) for value in values]
        touched[0] = touched[0].joined(Boxes.of(bounds, shape, reachable))
        flat = values[-1] if values else ZERO
        for merged in range(2, _views(shape) + 1):
            kept = len(shape) - merged
            flat = flat.plus(values[kept], math.prod(shape[kept + 1 :])).recombined()
            view = (*shape[:kept], math.prod(shape[kept:]))
            within = self._bounds.interval(self._merged(indices[kept:], shape[kept:]) if flat.is_divided() else flat)
            touched[merged - 1] = touched[merged - 1].joined(Boxes.of([*bounds[:kept], within], view, reachable))

    def _merged(self, indices: Sequence[Expr], shape: tuple[int, ...]) -> Sum:
        """The position within several dimensions, as TVM simplifies it."""
        position = substituted(indices[0], self._values)
        for index, extent in zip(indices[1:], shape[1:], strict=True):
            position = position * extent + substituted(index, self._values)
        return self._bounds.value(self._simplify(position))


def _nothing(walk: Walk, node: Object) -> None:
    """What accesses nothing."""


# By class: to ask an object of TVM's for one class after another takes long.
_STATEMENTS: dict[type, Callable[[Walk, Any], None]] = {
    tirx.SeqStmt: Walk._sequence,
    tirx.For: Walk._loop,
    s_tir.SBlockRealize: Walk._block,
    tirx.IfThenElse: Walk._branch,
    tirx.BufferStore: Walk._store,
    tirx.Bind: Walk._bind,
    tirx.AttrStmt: Walk._attribute,
    tirx.Evaluate: Walk._evaluate,
    tirx.AllocBuffer: _nothing,
}
_EXPRESSIONS: dict[type, Callable[[Walk, Any], None]] = {
    tirx.Var: Walk._variable,
    **dict.fromkeys((tirx.IntImm, tirx.FloatImm, StringImm), _nothing),
    **dict.fromkeys((tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.FloorDiv, tirx.FloorMod), Walk._both),
    TensorLoad: Walk._load,
    Call: Walk._call,
    tirx.Let: Walk._let,
}


def _views(shape: tuple[int, ...]) -> int:
    """With how many of its last dimensions merged into one a buffer is looked at: 1, 2, ... of them."""
    return max(1, len(shape)) if math.prod(shape) <= LARGEST_INDEX else 1


def _block_indices(body: tirx.Stmt, num_rtasks: int) -> dict[str, NDArray[Any]]:
    """The block indices of all rTasks; x varies fastest, as in CUDA's numbering of threads."""
    extents: dict[str, int] = {}

    def visit(loop: tirx.For) -> None:
        tag = loop.thread_binding.thread_tag if loop.thread_binding is not None else ""
        if tag.startswith("blockIdx."):
            extents[tag] = int(loop.extent)

    tvm_ffi.structural_walk(body, [(tirx.For, visit)], order="pre")
    found, rest = {}, np.arange(num_rtasks)
    for tag in sorted(extents):
        found[tag], rest = rest % extents[tag], rest // extents[tag]
    return found


def _operands(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case tirx.Select():
            return (expr.condition, expr.true_value, expr.false_value)
        case tirx.Cast() | tirx.Broadcast():
            return (expr.value,)
        case tirx.Ramp():
            return (expr.base, expr.stride)
        case tirx.Not():
            return (expr.a,)
        case tirx.Shuffle():
            return tuple(expr.vectors)
    if hasattr(expr, "a") and hasattr(expr, "b"):
        return (expr.a, expr.b)
    raise UnknownCodeError(type(expr).__name__)
