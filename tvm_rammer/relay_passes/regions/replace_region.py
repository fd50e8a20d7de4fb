"""Put the calls that a region was compiled to in the place of its call_tirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, GlobalVar, Tuple, TupleGetItem

from ...errors import CodegenError
from ..bindings import body_blocks, is_alias, leaves, named_sizes, rebuild, typed, variables
from .eligible import is_barrier
from .loops import drop_step
from .order import Item, chain, keep_order, topological_order
from .partition import Region


@dataclass(frozen=True)
class Launch:
    """One call that does the work of some operators of a region.

    Parameters
    ----------
    function : tirx.PrimFunc
        Takes one buffer for each input, then each output, then each workspace.
    symbol : str
        Its name in the module.
    operators : tuple of int
        Which operators of `Region.graph` it replaces, as positions.
    inputs : tuple of int or numpy.ndarray
        Positions in the graph's buffers, or arrays that become constants of the module.
    outputs : tuple of int
        Positions of the buffers that others read.
    workspace : tuple of (tuple of int, str)
        Shape and data type of scratch tensors that it needs.
    helpers : mapping of str or tvm.ir.GlobalVar to tirx.PrimFunc
        Functions that it calls. Equal ones of several launches are added once.
    """

    function: tirx.PrimFunc
    symbol: str
    operators: tuple[int, ...]
    inputs: tuple[int | np.ndarray, ...]
    outputs: tuple[int, ...]
    workspace: tuple[tuple[tuple[int, ...], str], ...] = ()
    helpers: Mapping[str | GlobalVar, tirx.PrimFunc] = field(default_factory=dict)


def replace_region(mod: tvm.IRModule, region: Region, programs: Sequence[Launch]) -> tvm.IRModule:
    """Replace the call_tirs of a region by launches.

    Parameters
    ----------
    mod : tvm.IRModule
        The module that `partition` saw, or one in which other regions of it were replaced since. Is not changed.
    region : Region
    programs : sequence of Launch
        They run in this order. An operator that none of them replaces stays a call_tir.

    Returns
    -------
    tvm.IRModule
        All that remains of the function keeps its Vars. PrimFuncs that are no longer called are removed.

    Raises
    ------
    CodegenError
        The launches do not do what the region does.
    """
    _check(region, programs)
    mod = mod.clone()
    removed = {region.bindings[o] for launch in programs for o in launch.operators}
    function = mod[region.function]
    blocks = [(isinstance(block, relax.DataflowBlock), list(block.bindings)) for block in body_blocks(function)]
    for i, (dataflow, bindings) in enumerate(blocks):
        if any(binding.var in removed for binding in bindings):
            items = _Block(mod, region, dataflow).items(bindings, removed, programs)
            blocks[i] = dataflow, topological_order(items)
    called = {b.value.args[0] for block in body_blocks(function) for b in block.bindings if b.var in removed}
    rebuilt = relax.analysis.remove_all_unused(rebuild(function, blocks))
    mod.update_func(mod.get_global_var(region.function), rebuilt)
    if region.body:
        called = drop_step(mod, region.body)
    _drop_uncalled(mod, called)
    return mod


def _check(region: Region, programs: Sequence[Launch]) -> None:
    graph = region.graph
    written: set[int] = set()
    replaced: set[int] = set()
    for launch in programs:
        expected = len(launch.inputs) + len(launch.outputs) + len(launch.workspace)
        if len(launch.function.params) != expected or not launch.outputs:
            raise CodegenError(
                f"{launch.symbol} has {len(launch.function.params)} parameters, but {len(launch.inputs)} inputs, "
                f"{len(launch.outputs)} outputs (one or more) and {len(launch.workspace)} workspaces"
            )
        own = {graph.extent(b).base for o in launch.operators for b in graph.operators[o].outputs}
        foreign = [graph.buffers[b].name for b in launch.outputs if b not in own]
        if foreign or written & set(launch.outputs) or replaced & set(launch.operators):
            raise CodegenError(f"{launch.symbol} writes {foreign or launch.outputs}, which it does not replace")
        written |= set(launch.outputs)
        replaced |= set(launch.operators)
    for o in replaced:
        for b in (graph.extent(b).base for b in graph.operators[o].outputs):
            if graph.buffers[b].kind == "output" and b not in written:
                raise CodegenError(f"no launch writes the output {graph.buffers[b].name!r} of {graph.name}")


class _Block:
    """Turns the bindings of one block into items."""

    def __init__(self, mod: tvm.IRModule, region: Region, dataflow: bool) -> None:
        self.mod, self.region, self.dataflow = mod, region, dataflow
        self.make = relax.DataflowVar if dataflow else relax.Var
        self.made: dict[int, relax.Var] = {}
        self.partial: dict[relax.Expr, dict[int, relax.Var]] = {}

    def items(self, bindings: list[relax.Binding], removed: set[relax.Var], programs: Sequence[Launch]) -> list[Item]:
        positions = {binding.var: i for i, binding in enumerate(bindings)}
        items: list[Item] = []
        for number, launch in enumerate(programs):
            items.append(self._launch(launch, number))
            items[-1].after = {positions[self.region.bindings[o]] for o in launch.operators}
        defined = {binding.var for item in items for binding in item.bindings}
        self._find_partial(removed - defined)
        first = len(items)
        dead = set(removed)
        sizes: set[relax.Var] = set()
        for i, binding in enumerate(bindings):
            if binding.var in removed or binding.var in defined:
                continue
            binding = self._with_made_fields(binding)
            reads = {leaf for leaf in leaves(binding.value) if isinstance(leaf, relax.Var)}
            if (reads & dead) - defined:  # an alias of a value that is no longer computed
                dead.add(binding.var)
                if isinstance(binding.value, relax.Var) and binding.value in self.partial:
                    self.partial[binding.var] = self.partial[binding.value]
                continue
            barrier = not is_alias(binding) and is_barrier(self.mod, binding.value, self.dataflow)
            new = named_sizes(binding) - sizes
            sizes |= new
            reads |= variables(binding) & sizes if sizes else set()
            items.append(Item([binding], reads, (1, i), {i}, barrier, new))
        chain(items[:first])
        keep_order(items)
        return items

    def _launch(self, launch: Launch, number: int) -> Item:
        graph, exprs = self.region.graph, self.region.buffer_exprs
        bindings: list[relax.Binding] = []
        inputs: list[relax.Expr] = []
        for source in launch.inputs:
            if isinstance(source, np.ndarray):
                inputs.append(relax.const(source, str(source.dtype)))  # without a type it would be float32
                continue
            expr = self.made.get(source, exprs[source])
            if isinstance(expr, tuple):
                item = _field(*expr)
                expr = self.make(f"{expr[0].name}_{expr[1]}", item.ty)
                bindings.append(relax.VarBinding(expr, item))
            inputs.append(expr)
        types = [relax.TensorType(graph.buffers[b].shape, graph.buffers[b].dtype) for b in launch.outputs]
        types += [relax.TensorType(shape, dtype) for shape, dtype in launch.workspace]
        call = relax.call_tir(_add(self.mod, launch), relax.Tuple(inputs), types[0] if len(types) == 1 else types)
        results = [self._result(b) for b in launch.outputs]
        if len(types) == 1:
            bindings.append(relax.VarBinding(results[0], call))
        else:
            both = self.make(f"{launch.symbol}_out", relax.TupleType(types))
            bindings.append(relax.VarBinding(both, call))
            for i, var in enumerate(results):
                bindings.append(relax.VarBinding(var, _field(both, i)))
        bindings.extend(self._rebind_tuples(launch))
        own = {binding.var for binding in bindings}
        reads = {leaf for b in bindings for leaf in leaves(b.value) if isinstance(leaf, relax.Var)} - own
        return Item(bindings, reads, (0, number))

    def _find_partial(self, lost: set[relax.Var]) -> None:
        """Note which fields there are of tuples that are not bound again, since nobody writes the others."""
        for var, buffers in self.region.made():
            if var in lost and isinstance(var.ty, relax.TupleType):
                self.partial[var] = {i: self.made[b] for i, b in enumerate(buffers) if b in self.made}

    def _with_made_fields(self, binding: relax.Binding) -> relax.Binding:
        """A binding that reads the results of launches where it read fields of such tuples."""
        if not self.partial or not isinstance(binding, relax.VarBinding):
            return binding
        value = self._through_fields(binding.value)
        return binding if value.same_as(binding.value) else relax.VarBinding(binding.var, value)

    def _through_fields(self, expr: relax.Expr) -> relax.Expr:
        if isinstance(expr, TupleGetItem):
            return self.partial.get(expr.tuple_value, {}).get(expr.index, expr)
        if isinstance(expr, Tuple):
            fields = [self._through_fields(field) for field in expr.fields]
            changed = any(not a.same_as(b) for a, b in zip(fields, expr.fields, strict=True))
            return typed(relax.Tuple(fields), expr.ty) if changed else expr
        if isinstance(expr, Call):
            args = [self._through_fields(arg) for arg in expr.args]
            changed = any(not a.same_as(b) for a, b in zip(args, expr.args, strict=True))
            return Call(expr.op, args, expr.attrs, expr.ty_args, ret_ty=expr.ty) if changed else expr
        return expr

    def _result(self, buffer: int) -> relax.Var:
        expr = self.region.buffer_exprs[buffer]
        if isinstance(expr, tuple):
            expr = self.make(f"{expr[0].name}_{expr[1]}", expr[0].ty.fields[expr[1]])
        self.made[buffer] = expr
        return expr

    def _rebind_tuples(self, launch: Launch) -> list[relax.Binding]:
        """Rebind the tuples of replaced operators, as far as all their fields exist."""
        bindings: list[relax.Binding] = []
        replaced = {self.region.bindings[o] for o in launch.operators}
        for var, buffers in self.region.made():
            if var in replaced and isinstance(var.ty, relax.TupleType) and all(b in launch.outputs for b in buffers):
                fields = typed(relax.Tuple([self.made[b] for b in buffers]), var.ty)
                bindings.append(relax.VarBinding(var, fields))
        return bindings


def _field(value: relax.Var, index: int) -> relax.Expr:
    return typed(relax.TupleGetItem(value, index), value.ty.fields[index])


def _add(mod: tvm.IRModule, launch: Launch) -> GlobalVar:
    for name, helper in launch.helpers.items():
        _add_function(mod, name, helper)
    return _add_function(mod, launch.symbol, launch.function)


def _add_function(mod: tvm.IRModule, name: str | GlobalVar, func: tirx.PrimFunc) -> GlobalVar:
    hint = name if isinstance(name, str) else name.name_hint
    for var, other in mod.functions_items():
        if var.name_hint == hint:
            if (isinstance(name, str) or var.same_as(name)) and tvm_ffi.structural_equal(other, func):
                return var
            raise CodegenError(f"the module has another function {hint!r} already; give this one its own name")
    var = GlobalVar(hint) if isinstance(name, str) else name
    mod.update_func(typed(var, func.ty), func)
    return var


def _drop_uncalled(mod: tvm.IRModule, candidates: set[GlobalVar]) -> None:
    called: set[GlobalVar] = set()
    for _, func in mod.functions_items():
        tvm_ffi.structural_walk(func, [(GlobalVar, called.add)], order="pre")
    for var in candidates - called:
        if not (mod[var].attrs and "global_symbol" in mod[var].attrs):
            del mod[var]
