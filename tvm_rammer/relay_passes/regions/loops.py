"""A loop of the module as a region of its own: the graph of a step, and where each step finds and leaves its data."""

import math
from dataclasses import dataclass

import tvm
from tvm import relax
from tvm.ir import Constant, GlobalVar

from ...errors import LoopError
from ...ir import ITEM_BYTES, Buffer, BufferKind, Place, RGraph, ROperator, TripCount
from ..bindings import body_blocks, dtype_of, is_alias, leaves, result_of, static_shape, tensor_fields
from ..loops.body import LoopBody
from .eligible import reason_to_leave
from .values import BufferExpr, Key, Values, single, unique


@dataclass(frozen=True)
class Loop:
    """The call of a loop in a function.

    Parameters
    ----------
    binding : relax.VarBinding
        Of the call.
    body : str
        The name of the function that is a step.
    """

    binding: relax.VarBinding
    body: str


@dataclass(frozen=True, slots=True)
class LoopGraph:
    """The graph of a loop, and what its buffers are in the function around it.

    Parameters
    ----------
    graph : RGraph
    buffer_exprs : tuple of BufferExpr or None
        None for what there is only within the loop.
    results : tuple of int
        The buffers that hold the results of the call.
    """

    graph: RGraph
    buffer_exprs: tuple[BufferExpr | None, ...]
    results: tuple[int, ...]


def loop_graph(
    mod: tvm.IRModule, name: str, loop: Loop, outer: Values, reasons: dict[GlobalVar, str | None]
) -> LoopGraph:
    """Describe a loop as an RGraph of several steps.

    Parameters
    ----------
    mod : tvm.IRModule
        Prepared.
    name : str
        Of the graph.
    loop : Loop
    outer : Values
        Of the function that holds the call.
    reasons : dict of GlobalVar to str or None
        What was found out about PrimFuncs so far; grows.

    Raises
    ------
    LoopError
        A step does something that is no rOperator, or what it hands on is not its own.
    """
    builder = _Builder(mod[loop.body], loop, outer)
    builder.add_call()
    builder.add_step(mod, reasons)
    return builder.finish(name)


class _Builder:
    """Buffers of the function around the loop are made first; then those of a step, as views of these."""

    def __init__(self, step: relax.Function, loop: Loop, outer: Values) -> None:
        body = LoopBody.of(step)
        assert body is not None
        self._step, self._loop, self._outer, self._body = step, loop, outer, body
        self._inner = Values(step)
        self._buffers: list[Buffer] = []
        self._exprs: list[BufferExpr | None] = []
        self._names: dict[str, int] = {}
        self._outer_at: dict[Key, int] = {}
        self._inner_at: dict[Key, int] = {}
        self._first: dict[int, int] = {}
        self._results: list[int] = []
        self._operators: list[ROperator] = []
        self._trip_count: TripCount | None = None
        self._condition: int | None = None

    def add_call(self) -> None:
        """The arguments and results of the call, and the slots of a step in them.

        Raises
        ------
        LoopError
            The step hands on a value that it does not compute, or writes one twice.
        """
        call, body, params = self._loop.binding.value, self._body, self._step.params
        given = [self._argument(arg) for arg in call.args[1].fields]
        if body.rows:
            self._trip_count = TripCount(given.pop(), body.rows)
        for i, ty in enumerate(tensor_fields(self._loop.binding.var.ty) or ()):
            key = self._loop.binding.var, i
            kind: BufferKind = "output" if self._outer.readers.get(key) else "intermediate"
            self._results.append(self._add(f"{self._loop.body}_{i}", ty, kind, expr=self._outer.expr(key)))
        states, arrays = len(body.carried), len(body.reads)
        for j, field in enumerate(body.carried):
            ring = field < body.rings
            before = self._slot(self._results[field], params[j].ty, 0 if ring else -1, self._backward(field))
            self._inner_at[params[j], 0] = before
            self._first[before] = given[j]
        for param, array, backward in zip(params[states:], given[states : states + arrays], body.reads, strict=False):
            self._inner_at[param, 0] = self._slot(array, param.ty, 0, backward)
        for param, invariant in zip(params[states + arrays :], given[states + arrays :], strict=True):
            self._inner_at[param, 0] = invariant
        returned = self._inner.resolve(result_of(self._step)) or []
        made = [key for key in returned if isinstance(key, tuple) and key[0] not in set(params)]
        if len(set(made)) < len(returned) or len(returned) != len(self._results):
            raise LoopError(f"{self._loop.body} hands on a value that no step computes, or writes one twice")
        for field, key in enumerate(made):
            ty = (tensor_fields(key[0].ty) or ())[key[1]]
            ring = field < body.rings
            self._inner_at[key] = self._slot(self._results[field], ty, int(ring), self._backward(field))
        if body.conditional:
            self._condition = self._inner_at[made[-1]]

    def add_step(self, mod: tvm.IRModule, reasons: dict[GlobalVar, str | None]) -> None:
        """The operators of a step.

        Raises
        ------
        LoopError
            A binding of the step is no rOperator.
        """
        blocks = body_blocks(self._step)
        names: dict[str, int] = {}
        for binding in (binding for block in blocks for binding in block.bindings):
            if isinstance(binding, relax.VarBinding) and is_alias(binding):
                continue
            if reason := reason_to_leave(mod, binding, reasons):
                raise LoopError(f"a step of {self._loop.body} has {binding.var.name}, which is no rOperator: {reason}")
            function, arguments = binding.value.args[0], binding.value.args[1].fields
            inputs = tuple(self._within(single(self._inner.resolve(arg)), arg.ty) for arg in arguments)
            outputs = tuple(
                self._within((binding.var, i), ty) for i, ty in enumerate(tensor_fields(binding.var.ty) or ())
            )
            first = tuple(self._first.get(b, b) for b in inputs)
            label = unique(function.name_hint, names)
            self._operators.append(
                ROperator(label, function.name_hint, inputs, outputs, first if first != inputs else ())
            )

    def finish(self, name: str) -> LoopGraph:
        parts = tuple(self._buffers), tuple(self._operators)
        graph = RGraph(name, *parts, self._body.steps, self._trip_count, self._condition)
        return LoopGraph(graph, tuple(self._exprs), tuple(self._results))

    def _backward(self, field: int) -> bool:
        return field >= self._body.rings and self._body.writes[field - self._body.rings]

    def _argument(self, arg: relax.Expr) -> int:
        key = single(self._outer.resolve(arg))
        if key not in self._outer_at:
            expr = self._outer.expr(key)
            kind: BufferKind = "constant" if isinstance(key, Constant) else "input"
            hint = "constant" if isinstance(expr, Constant) else expr.name if isinstance(expr, relax.Var) else "input"
            self._outer_at[key] = self._add(hint, arg.ty, kind, expr=expr)
        return self._outer_at[key]

    def _slot(self, base: int, ty: relax.TensorType, ahead: int, backward: bool) -> int:
        """What a step has of a buffer whose first axis is made of slots."""
        size = math.prod(static_shape(ty) or ()) * ITEM_BYTES[dtype_of(ty)]
        last = self._buffers[base].nbytes - size
        ring = base in self._results[: self._body.rings]
        start, stride = (last, -size) if backward else (0, size)
        place = Place(base, start, stride, ahead, 2 * ring, bool(self._body.rows) and (ring or backward))
        return self._add(f"{self._buffers[base].name}_slot", ty, "view", place)

    def _within(self, key: Key, ty: relax.TensorType) -> int:
        if key not in self._inner_at:
            constant = isinstance(key, Constant)
            hint = "constant" if constant else key[0].name
            self._inner_at[key] = self._add(
                hint, ty, "constant" if constant else "intermediate", expr=key if constant else None
            )
        return self._inner_at[key]

    def _add(
        self,
        hint: str,
        ty: relax.TensorType,
        kind: BufferKind,
        place: Place | None = None,
        expr: BufferExpr | None = None,
    ) -> int:
        self._buffers.append(Buffer(unique(hint, self._names), static_shape(ty) or (), dtype_of(ty), kind, place))
        self._exprs.append(expr)
        return len(self._buffers) - 1


def drop_step(mod: tvm.IRModule, name: str) -> set[GlobalVar]:
    """Remove the step of a loop that is an rProgram by now, in place; return the functions that it called."""
    step = mod.get_global_var(name)
    bindings = [binding for block in body_blocks(mod[step]) for binding in block.bindings]
    del mod[step]
    return {leaf for binding in bindings for leaf in leaves(binding.value) if isinstance(leaf, GlobalVar)}
