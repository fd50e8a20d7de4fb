"""Cut the Relax functions of a prepared module into regions of rOperators, and describe each as an RGraph.

An rOperator's level is the number of times that a path to it leaves the rOperators and comes back. The rOperators of
one block and one level are a region. No path leads out of a region and back in, so it can become one call. A loop is
a region by itself (`loops`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tvm
from tvm import relax
from tvm.ir import Call, Constant, GlobalVar

from ...errors import LoopError, ModelError
from ...ir import Buffer, BufferKind, RGraph, ROperator
from ..bindings import body_blocks, dtype_of, is_alias, is_call, named_sizes, static_shape, tensor_fields, variables
from ..loops.body import called_loop, loop_bodies, loop_error
from .eligible import is_barrier, reason_to_leave
from .loops import Loop, loop_graph
from .values import BufferExpr, Key, Values, single, unique


@dataclass(frozen=True)
class Region:
    """Some call_tirs of a Relax function that can become one call; or the call of a loop.

    Parameters
    ----------
    graph : RGraph
        The same calls, as the other stages see them; or a step of the loop.
    bindings : tuple of relax.Var
        What each operator of the graph is bound to; for a loop the call, for each operator.
    buffer_exprs : tuple of relax.Var, tvm.ir.Constant, (relax.Var, int) or None
        Each buffer of the graph in the function; a pair is a field of a tuple that is bound as a whole. None for what
        there is only within a loop.
    function : str
        The name of the function in the module.
    body : str
        The name of the function that is a step of the loop; empty for any other region.
    results : tuple of int
        The buffers that hold the results of the loop.
    """

    graph: RGraph
    bindings: tuple[relax.Var, ...]
    buffer_exprs: tuple[BufferExpr | None, ...]
    function: str = "main"
    body: str = ""
    results: tuple[int, ...] = ()

    def made(self) -> Iterator[tuple[relax.Var, tuple[int, ...]]]:
        """Each Var that the region binds, and the buffers that it stands for."""
        if self.body:
            yield self.bindings[0], self.results
        else:
            for var, operator in zip(self.bindings, self.graph.operators, strict=True):
                yield var, operator.outputs


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
    LoopError
        A loop is no region.

    Notes
    -----
    Functions that another code generator will compile (attribute `Codegen`) are left as they are.
    """
    steps = loop_bodies(mod)
    functions = {
        var.name_hint: func
        for var, func in mod.functions_items()
        if isinstance(func, relax.Function) and var.name_hint not in steps
    }
    if not functions:
        raise ModelError("the module has no Relax function; give one that TVM's frontends or a BlockBuilder made")
    taken = {var.name_hint: 0 for var in mod.get_global_vars()}
    regions: list[Region] = []
    stock_calls: list[tuple[str, str]] = []
    reasons: dict[GlobalVar, str | None] = {}
    for name in sorted(functions, key=lambda name: (name != "main", name)):
        if functions[name].attrs and "Codegen" in functions[name].attrs:
            continue
        values = Values(functions[name])
        found, stock = _partition_function(mod, functions[name], values, reasons)
        for members in found:
            label = unique(f"region{len(regions)}", taken)
            if isinstance(members, Loop):
                regions.append(_loop_region(mod, label, name, members, values, reasons))
            else:
                regions.append(_region(label, name, members, values))
        stock_calls += [(call if name == "main" else f"{name}.{call}", reason) for call, reason in stock]
    if lost := steps.keys() - {region.body for region in regions}:
        raise loop_error(mod[min(lost)], f"the loop {min(lost)} is called from where no region can be")
    return Partition(tuple(regions), tuple(stock_calls))


def _partition_function(
    mod: tvm.IRModule, function: relax.Function, values: Values, reasons: dict[GlobalVar, str | None]
) -> tuple[list[list[relax.VarBinding] | Loop], list[tuple[str, str]]]:
    """The bindings of each region of a function, and what stays a stock call."""
    stock_calls: list[tuple[str, str]] = []
    members: dict[tuple[int, int, int], list[relax.VarBinding] | Loop] = {}
    for index, block in enumerate(body_blocks(function)):
        levels: dict[relax.Var, tuple[int, bool]] = {}
        sizes: set[relax.Var] = set()
        floor = highest = 0
        for binding in block.bindings:
            above = [levels[var] for var in values.producers(binding.value) if var in levels]
            above += [levels[size] for size in variables(binding) & sizes] if sizes else []
            if isinstance(binding, relax.VarBinding) and is_alias(binding):
                if binding.var not in values.fields:  # a nested tuple: not seen through, so it is like a stock call
                    levels[binding.var] = max((lv for lv, _ in above), default=floor), False
                continue
            reason = reason_to_leave(mod, binding, reasons)
            if reason is None:
                level = max([floor, *(lv + (not ours) for lv, ours in above)])
                together = members.setdefault((index, level, 0), [])
                assert isinstance(together, list)
                together.append(binding)
            else:
                level = max([floor, *(lv for lv, _ in above)])
                if (body := called_loop(binding.value)) is not None:
                    members[index, level, len(members) + 1] = Loop(binding, body)
                elif not _is_control(mod, binding.value):
                    stock_calls.append((_name_of(binding), reason))
            highest = max(highest, level)
            levels[binding.var] = level, reason is None
            levels |= dict.fromkeys(named_sizes(binding) - sizes, levels[binding.var])
            sizes |= named_sizes(binding)
            if reason is not None and is_barrier(mod, binding.value, isinstance(block, relax.DataflowBlock)):
                floor = highest + 1
    return [members[key] for key in sorted(members)], stock_calls


def _name_of(binding: relax.Binding) -> str:
    """What a stock call is called: as its function, where that is one of the module, or as its result."""
    function = binding.value.args[0] if is_call(binding.value, ("relax.call_tir",)) else None
    return str(function.name_hint if isinstance(function, GlobalVar) else binding.var.name)


def _loop_region(
    mod: tvm.IRModule, name: str, owner: str, loop: Loop, values: Values, reasons: dict[GlobalVar, str | None]
) -> Region:
    try:
        found = loop_graph(mod, name, loop, values, reasons)
    except LoopError as error:
        raise loop_error(mod[loop.body], str(error)) from error
    bindings = (loop.binding.var,) * len(found.graph.operators)
    return Region(found.graph, bindings, found.buffer_exprs, owner, loop.body, found.results)


def _is_control(mod: tvm.IRModule, value: relax.Expr) -> bool:
    """Whether a binding decides what is called, or calls a function of the module: what computes is in there."""
    if isinstance(value, Call) and isinstance(value.op, GlobalVar):
        return value.op in mod.functions and isinstance(mod[value.op], relax.Function)
    return isinstance(value, relax.If)


def _region(name: str, owner: str, members: Sequence[relax.VarBinding], values: Values) -> Region:
    inside = {binding.var for binding in members}
    positions: dict[Key, int] = {}
    buffers: list[Buffer] = []
    operators: list[ROperator] = []
    taken: dict[str, int] = {}

    def position(key: Key, ty: relax.TensorType) -> int:
        if key not in positions:
            positions[key] = len(buffers)
            kind = _kind(key, inside, values.readers)
            expr = values.expr(key)
            hint = "constant" if isinstance(expr, Constant) else expr.name if isinstance(expr, relax.Var) else ""
            hint = hint or f"{expr[0].name}_{expr[1]}"
            buffers.append(Buffer(unique(hint, taken), static_shape(ty) or (), dtype_of(ty), kind))
        return positions[key]

    names: dict[str, int] = {}
    for binding in members:
        function, arguments = binding.value.args[0], binding.value.args[1].fields
        inputs = [position(single(values.resolve(arg)), arg.ty) for arg in arguments]
        outputs = [position((binding.var, i), ty) for i, ty in enumerate(tensor_fields(binding.var.ty) or ())]
        label = unique(function.name_hint, names)
        operators.append(ROperator(label, function.name_hint, tuple(inputs), tuple(outputs)))
    return Region(
        RGraph(name, tuple(buffers), tuple(operators)),
        tuple(binding.var for binding in members),
        tuple(values.expr(key) for key in positions),
        owner,
    )


def _kind(key: Key, inside: set[relax.Var], readers: dict[Key, set[relax.Var | None]]) -> BufferKind:
    if isinstance(key, Constant):
        return "constant"
    if key[0] not in inside:
        return "input"
    return "intermediate" if readers.get(key, set()) <= inside else "output"
