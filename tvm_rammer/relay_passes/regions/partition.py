"""Cut the Relax functions of a prepared module into regions of rOperators, and describe each as an RGraph.

An rOperator's level is the number of times that a path to it leaves the rOperators and comes back. The rOperators of
one block and one level are a region. No path leads out of a region and back in, so it can become one call.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import tvm
from tvm import relax
from tvm.ir import Call, Constant, GlobalVar, Tuple, TupleGetItem

from ...errors import ModelError
from ...ir import Buffer, BufferKind, RGraph, ROperator
from ..bindings import body_blocks, dtype_of, is_alias, leaves, result_of, static_shape, tensor_fields
from .eligible import is_barrier, reason_to_leave

BufferExpr: TypeAlias = relax.Var | Constant | tuple[relax.Var, int]
_Key: TypeAlias = tuple[relax.Var, int] | Constant  # a tensor: a Var's field (0 where it is no tuple), or a constant


@dataclass(frozen=True)
class Region:
    """Some call_tirs of a Relax function that can become one call.

    Parameters
    ----------
    graph : RGraph
        The same calls, as the other stages see them.
    bindings : tuple of relax.Var
        What each operator of the graph is bound to.
    buffer_exprs : tuple of relax.Var, tvm.ir.Constant or (relax.Var, int)
        Each buffer of the graph in the function; a pair is a field of a tuple that is bound as a whole.
    function : str
        The name of the function in the module.
    """

    graph: RGraph
    bindings: tuple[relax.Var, ...]
    buffer_exprs: tuple[BufferExpr, ...]
    function: str = "main"


@dataclass(frozen=True)
class Partition:
    """All regions, function by function in the order of their levels, and what stays a stock call: (name, reason).

    Calls of the module's own Relax functions, and decisions which of them is called, are no stock calls.
    """

    regions: tuple[Region, ...]
    stock_calls: tuple[tuple[str, str], ...]


def partition(mod: tvm.IRModule) -> Partition:
    """Find the regions of a prepared module.

    Parameters
    ----------
    mod : tvm.IRModule
        After `prepare`; is not changed.

    Returns
    -------
    Partition

    Raises
    ------
    ModelError
        There is no Relax function.

    Notes
    -----
    Functions that another code generator will compile (attribute `Codegen`) are left as they are.
    """
    functions = {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, relax.Function)}
    if not functions:
        raise ModelError("the module has no Relax function; give one that TVM's frontends or a BlockBuilder made")
    taken = {var.name_hint for var in mod.get_global_vars()}
    regions: list[Region] = []
    stock_calls: list[tuple[str, str]] = []
    reasons: dict[GlobalVar, str | None] = {}
    for name in sorted(functions, key=lambda name: (name != "main", name)):
        if functions[name].attrs and "Codegen" in functions[name].attrs:
            continue
        found, stock = _partition_function(mod, functions[name], reasons)
        for members, values in found:
            regions.append(_region(_unique(f"region{len(regions)}", taken), name, members, values))
        stock_calls += [(call if name == "main" else f"{name}.{call}", reason) for call, reason in stock]
    return Partition(tuple(regions), tuple(stock_calls))


def _partition_function(
    mod: tvm.IRModule, function: relax.Function, reasons: dict[GlobalVar, str | None]
) -> tuple[list[tuple[list[relax.VarBinding], "_Values"]], list[tuple[str, str]]]:
    """The bindings of each region of a function, and what stays a stock call."""
    values = _Values(function)
    stock_calls: list[tuple[str, str]] = []
    members: dict[tuple[int, int], list[relax.VarBinding]] = {}
    for index, block in enumerate(body_blocks(function)):
        levels: dict[relax.Var, tuple[int, bool]] = {}
        floor = highest = 0
        for binding in block.bindings:
            above = [levels[var] for var in values.producers(binding.value) if var in levels]
            if isinstance(binding, relax.VarBinding) and is_alias(binding):
                if binding.var not in values.fields:  # a nested tuple: not seen through, so it is like a stock call
                    levels[binding.var] = max((lv for lv, _ in above), default=floor), False
                continue
            reason = reason_to_leave(mod, binding, reasons)
            if reason is None:
                level = max([floor, *(lv + (not ours) for lv, ours in above)])
                members.setdefault((index, level), []).append(binding)
            else:
                level = max([floor, *(lv for lv, _ in above)])
                if not _is_control(mod, binding.value):
                    stock_calls.append((binding.var.name, reason))
            highest = max(highest, level)
            levels[binding.var] = level, reason is None
            if reason is not None and is_barrier(mod, binding.value, isinstance(block, relax.DataflowBlock)):
                floor = highest + 1
    return [(members[key], values) for key in sorted(members)], stock_calls


def _is_control(mod: tvm.IRModule, value: relax.Expr) -> bool:
    """Whether a binding decides what is called, or calls a function of the module: what computes is in there."""
    if isinstance(value, Call) and isinstance(value.op, GlobalVar):
        return value.op in mod.functions and isinstance(mod[value.op], relax.Function)
    return isinstance(value, relax.If)


class _Values:
    """Sees through the bindings of a function that compute nothing: other names, tuples, and fields of tuples."""

    def __init__(self, function: relax.Function) -> None:
        self.fields: dict[relax.Var, list[_Key]] = {}
        self.names: dict[_Key, relax.Var] = {}
        self.readers: dict[_Key, set[relax.Var | None]] = {}
        for param in function.params:
            self._define(param)
        for block in body_blocks(function):
            for binding in block.bindings:
                self._bind(binding)
        self._read(result_of(function), None)

    def _bind(self, binding: relax.Binding) -> None:
        seen = self.resolve(binding.value) if isinstance(binding, relax.VarBinding) else None
        if seen is None:
            self._define(binding.var)
            self._read(binding.value, binding.var)
            return
        self.fields[binding.var] = seen
        if isinstance(binding.value, TupleGetItem) and len(seen) == 1:
            self.names.setdefault(seen[0], binding.var)

    def _define(self, var: relax.Var) -> None:
        fields = tensor_fields(var.ty)
        if fields is None:
            return  # an object, a shape, a nested tuple: no tensor that a region could read
        self.fields[var] = [(var, i) for i in range(len(fields))]
        if isinstance(var.ty, relax.TensorType):
            self.names[var, 0] = var

    def _read(self, expr: relax.Expr, reader: relax.Var | None) -> None:
        for leaf in leaves(expr):
            for key in self.fields.get(leaf, ()) if isinstance(leaf, relax.Var) else ():
                self.readers.setdefault(key, set()).add(reader)

    def resolve(self, expr: relax.Expr) -> list[_Key] | None:
        """The tensors that an expression without a computation stands for; None for a computation."""
        if isinstance(expr, Constant) and isinstance(expr.ty, relax.TensorType):
            return [expr]
        if isinstance(expr, relax.Var):
            return self.fields.get(expr)
        if isinstance(expr, TupleGetItem) and tensor_fields(expr.tuple_value.ty) is not None:
            inner = self.resolve(expr.tuple_value)
            return None if inner is None else [inner[expr.index]]
        if isinstance(expr, Tuple) and tensor_fields(expr.ty) is not None:
            parts = [self.resolve(field) for field in expr.fields]
            return None if None in parts else [key for part in parts if part is not None for key in part]
        return None

    def producers(self, expr: relax.Expr) -> set[relax.Var]:
        """The Vars whose computations `expr` reads."""
        keys = [k for leaf in leaves(expr) if isinstance(leaf, relax.Var) for k in self.fields.get(leaf, [(leaf, 0)])]
        return {key[0] for key in keys if isinstance(key, tuple)}

    def expr(self, key: _Key) -> BufferExpr:
        """A tensor as an expression of the function: by its own name where it has one."""
        return key if isinstance(key, Constant) else self.names.get(key, key)


def _region(name: str, owner: str, members: list[relax.VarBinding], values: _Values) -> Region:
    inside = {binding.var for binding in members}
    positions: dict[_Key, int] = {}
    buffers: list[Buffer] = []
    operators: list[ROperator] = []
    taken: set[str] = set()

    def position(key: _Key, ty: relax.TensorType) -> int:
        if key not in positions:
            positions[key] = len(buffers)
            kind = _kind(key, inside, values.readers)
            expr = values.expr(key)
            hint = "constant" if isinstance(expr, Constant) else expr.name if isinstance(expr, relax.Var) else ""
            hint = hint or f"{expr[0].name}_{expr[1]}"
            buffers.append(Buffer(_unique(hint, taken), static_shape(ty) or (), dtype_of(ty), kind))
        return positions[key]

    names: set[str] = set()
    for binding in members:
        function, arguments = binding.value.args[0], binding.value.args[1].fields
        inputs = [position(_single(values.resolve(arg)), arg.ty) for arg in arguments]
        outputs = [position((binding.var, i), ty) for i, ty in enumerate(tensor_fields(binding.var.ty) or ())]
        label = _unique(function.name_hint, names)
        operators.append(ROperator(label, function.name_hint, tuple(inputs), tuple(outputs)))
    return Region(
        RGraph(name, tuple(buffers), tuple(operators)),
        tuple(binding.var for binding in members),
        tuple(values.expr(key) for key in positions),
        owner,
    )


def _single(keys: Iterable[_Key] | None) -> _Key:
    (key,) = keys or ()
    return key


def _kind(key: _Key, inside: set[relax.Var], readers: dict[_Key, set[relax.Var | None]]) -> BufferKind:
    if isinstance(key, Constant):
        return "constant"
    if key[0] not in inside:
        return "input"
    return "intermediate" if readers.get(key, set()) <= inside else "output"


def _unique(hint: str, taken: set[str]) -> str:
    base = re.sub(r"\W", "_", hint) or "value"
    name, number = base, 1
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name
