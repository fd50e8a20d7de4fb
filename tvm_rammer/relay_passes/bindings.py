"""Small tools to look at and to rebuild the bindings of a Relax function."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import relax, s_tir, tirx
from tvm.ir import Call, Constant, GenericConst, GlobalVar, Op, Tuple, TupleGetItem
from tvm.relax.expr import _update_type

WRITES = ("relax.call_tir_inplace", "relax.call_inplace_packed")
"""Operators that write what they are given, though TVM takes them for pure."""


def is_const(expr: relax.Expr) -> bool:
    """Whether `expr` is a tensor constant."""
    return isinstance(expr, GenericConst) and isinstance(expr.ty, relax.TensorType)


def is_call(expr: relax.Expr, names: Collection[str]) -> bool:
    """Whether `expr` is a call of one of the named operators."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names


def name_of_packed(expr: relax.Expr, prefix: str) -> str | None:
    """What follows a prefix in the name of the packed function that `call_dps_packed` calls; None for anything else."""
    if not is_call(expr, ("relax.call_dps_packed",)):
        return None
    name = str(getattr(expr.args[0], "global_symbol", ""))
    return name.removeprefix(prefix) if name.startswith(prefix) else None


def static_shape(ty: object) -> tuple[int, ...] | None:
    """The shape of a tensor type, or None where it is no tensor or not static."""
    if not isinstance(ty, relax.TensorType) or not isinstance(ty.shape, relax.ShapeExpr):
        return None
    if not all(isinstance(dim, tirx.IntImm) for dim in ty.shape):
        return None
    return tuple(int(dim) for dim in ty.shape)


def sizes_of(ty: relax.TensorType) -> tuple[int | None, ...] | None:
    """The extents of a tensor type, None for those that are no numbers; None where not even its rank is known."""
    if isinstance(ty.shape, relax.ShapeExpr):
        return tuple(int(extent) if isinstance(extent, tirx.IntImm) else None for extent in ty.shape)
    return None if ty.ndim < 0 else (None,) * ty.ndim


def tensor_fields(ty: object) -> list[relax.TensorType] | None:
    """The tensors of a type that is a tensor or a flat tuple of tensors, or None."""
    fields = list(ty.fields) if isinstance(ty, relax.TupleType) else [ty]
    return fields if all(isinstance(field, relax.TensorType) for field in fields) else None


def dtype_of(ty: relax.TensorType) -> str:
    """The element type of a tensor type, as text."""
    return str(ty.dtype)


def body_blocks(func: relax.Function) -> list[relax.BindingBlock]:
    """The blocks of a function; none where its body is no sequence."""
    return list(func.body.blocks) if isinstance(func.body, relax.SeqExpr) else []


def result_of(func: relax.Function) -> relax.Expr:
    """The expression that a function returns."""
    return func.body.body if isinstance(func.body, relax.SeqExpr) else func.body


def is_alias(binding: relax.Binding) -> bool:
    """Whether a binding computes nothing: another name of a value, a constant, a tuple, or a field of a tuple."""
    return isinstance(binding.value, relax.Var | Constant | Tuple | TupleGetItem)


def leaves(expr: relax.Expr) -> Iterator[relax.Expr]:
    """What `expr` reads, once for each time that it is read: its Vars and constants, through tuples and calls."""
    if isinstance(expr, Tuple):
        for field in expr.fields:
            yield from leaves(field)
    elif isinstance(expr, TupleGetItem):
        yield from leaves(expr.tuple_value)
    elif isinstance(expr, Call):
        yield from leaves(expr.op)
        for arg in expr.args:
            yield from leaves(arg)
    elif isinstance(expr, relax.Var | Constant | GlobalVar):
        yield expr
    elif isinstance(expr, relax.If | relax.SeqExpr | relax.Function):
        yield from relax.analysis.free_vars(expr)


def writes_a_tensor(value: relax.Expr) -> bool:
    """Whether a call writes a tensor that it is given, so that what was read of it before cannot be read again."""
    return is_call(value, WRITES) and any(not isinstance(ty, relax.ObjectType) for ty in _written(value))


def writes_tensors(func: relax.Function) -> bool:
    """Whether a function holds such a call, within its branches, too."""
    found: list[bool] = []
    relax.analysis.post_order_visit(func, lambda expr: found.append(True) if writes_a_tensor(expr) else None)
    return bool(found)


def _written(call: Call) -> list[object]:
    """The types of what a call writes, as far as its result has a place for it: an index of -1 is a new one."""
    fields = call.ty.fields if isinstance(call.ty, relax.TupleType) else [call.ty]
    indices = call.attrs.inplace_indices
    return [ty for ty, index in zip(fields, indices, strict=False) if int(index) >= 0]


def named_sizes(binding: relax.Binding) -> set[relax.Var]:
    """Sizes that only run time knows and that a binding gives names to, unless one before it did."""
    return set(relax.analysis.definable_tir_vars_in_type(binding.ty)) if isinstance(binding, relax.MatchCast) else set()


def variables(binding: relax.Binding) -> set[relax.Var]:
    """All that the value of a binding, and its type, speak of; sizes too."""
    found: set[relax.Var] = set(relax.analysis.tir_vars_in_type(binding.var.ty))
    tvm_ffi.structural_walk(binding.value, [(relax.Var, found.add)], order="pre")
    return found


def count_uses(func: relax.Function) -> Counter[relax.Var]:
    """How often each Var is read in the outer bindings and the result of a function."""
    uses: Counter[relax.Var] = Counter()
    for block in body_blocks(func):
        for binding in block.bindings:
            uses.update(leaf for leaf in leaves(binding.value) if isinstance(leaf, relax.Var))
    uses.update(leaf for leaf in leaves(result_of(func)) if isinstance(leaf, relax.Var))
    return uses


def typed(expr: relax.Expr, ty: object) -> relax.Expr:
    """Give a new expression its type, as TVM's normalizer would; returns `expr`.

    TVM has no public function for it: `BlockBuilder.normalize` refuses a GlobalVar without a type, and visits every
    binding of a SeqExpr.
    """
    if expr.ty.is_missing():
        _update_type(expr, ty)
    return expr


def add_function(mod: tvm.IRModule, hint: str, func: tirx.PrimFunc) -> GlobalVar:
    """Add a function to a module, under a name that begins with `hint` and is free."""
    taken = {var.name_hint for var in mod.get_global_vars()}
    var = GlobalVar(next(name for n in range(len(taken) + 1) if (name := f"{hint}{n}") not in taken))
    mod.update_func(typed(var, func.ty), func)
    return var


def rebuild(func: relax.Function, blocks: Sequence[tuple[bool, Sequence[relax.Binding]]]) -> relax.Function:
    """Make a function of new blocks, with the parameters, result and attributes of `func`.

    Parameters
    ----------
    func : relax.Function
    blocks : sequence of (bool, sequence of relax.Binding)
        Whether a block is a DataflowBlock, and its bindings.
    """
    made = [
        relax.DataflowBlock(list(bindings)) if dataflow else relax.BindingBlock(list(bindings))
        for dataflow, bindings in blocks
        if bindings
    ]
    body = typed(relax.SeqExpr(made, func.body.body), func.body.body.ty)
    return relax.Function(func.params, body, func.ret_ty, func.is_pure, func.attrs)


def rename(
    func: relax.Function,
    blocks: Sequence[tuple[bool, Sequence[relax.Binding]]],
    names: Mapping[relax.Expr, relax.Expr],
) -> relax.Function:
    """Make a function of blocks as `rebuild` does, in which Vars are others.

    Parameters
    ----------
    func : relax.Function
    blocks : sequence of (bool, sequence of relax.Binding)
    names : mapping of relax.Var to relax.Var
        The result of the function must be none of them.
    """
    made = []
    for dataflow, bindings in blocks:
        renamed: list[relax.Binding] = []
        for binding in bindings:
            var, value = names.get(binding.var, binding.var), substitute(binding.value, names)
            if isinstance(binding, relax.MatchCast):
                renamed.append(relax.MatchCast(var, value, binding.ty))
            else:
                renamed.append(relax.VarBinding(var, value))
        made.append((dataflow, renamed))
    return rebuild(func, made)


def drop_unused(func: relax.Function) -> relax.Function:
    """Leave out bindings that nobody reads and that have no effects, in one walk from the end.

    TVM's `remove_all_unused` takes as many steps as there are unused bindings times used ones.
    """
    used = set(leaves(result_of(func)))
    blocks = []
    for block in reversed(body_blocks(func)):
        dataflow, kept = isinstance(block, relax.DataflowBlock), []
        for binding in reversed(block.bindings):
            if binding.var in used or not _is_droppable(binding, dataflow):
                used.update(leaves(binding.value))
                kept.append(binding)
        blocks.append((dataflow, kept[::-1]))
    return rebuild(func, blocks[::-1]) if blocks else func


def _is_droppable(binding: relax.Binding, dataflow: bool) -> bool:
    """Whether a binding computes a value and does nothing else; in a dataflow block nothing has effects."""
    if isinstance(binding, relax.MatchCast):
        return False
    call = binding.value
    return dataflow or is_alias(binding) or (isinstance(call, Call) and bool(_attribute(call.op, "FPurity")))


def _attribute(op: relax.Expr, name: str) -> object:
    return op.get_attr(name) if isinstance(op, Op) and op.has_attr(name) else None


def rewrite_functions(mod: tvm.IRModule, rewrite: Callable[[relax.Function], relax.Function | None]) -> tvm.IRModule:
    """Replace the Relax functions of a module for which `rewrite` has another; the module itself where it has none."""
    return _rewrite(mod, relax.Function, rewrite)


def rewrite_prim_funcs(mod: tvm.IRModule, rewrite: Callable[[tirx.PrimFunc], tirx.PrimFunc | None]) -> tvm.IRModule:
    """Replace the PrimFuncs of a module for which `rewrite` has another; the module itself where it has none."""
    return _rewrite(mod, tirx.PrimFunc, rewrite)


def with_root_body(
    func: tirx.PrimFunc, statements: Sequence[tirx.Stmt], allocated: Sequence[tirx.Var] | None = None
) -> tirx.PrimFunc:
    """A function in blocks whose root has other statements, and other buffers of its own if they are given."""
    root = func.body.block
    block = s_tir.SBlock(
        root.iter_vars, root.reads, root.writes, root.name_hint,
        statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements)), root.init,
        root.alloc_buffers if allocated is None else list(allocated), root.match_buffers, root.annotations,
    )  # fmt: skip
    return func.with_body(s_tir.SBlockRealize(func.body.iter_values, func.body.predicate, block))


def _rewrite(mod: tvm.IRModule, kind: type[Any], rewrite: Callable[[Any], Any]) -> tvm.IRModule:
    changed = {
        var: new for var, func in mod.functions_items() if isinstance(func, kind) and (new := rewrite(func)) is not None
    }
    if changed:
        mod = mod.clone()
        for var, func in changed.items():
            mod.update_func(var, func)
    return mod


def rewrite_bindings(
    func: relax.Function, rewrite: Callable[[relax.Binding, type[relax.Var]], Sequence[relax.Binding] | None]
) -> relax.Function | None:
    """A function with other bindings in the places of some; None where `rewrite` has none for any.

    Parameters
    ----------
    func : relax.Function
    rewrite : callable
        Of a binding, and of the class of the variables of its block.
    """
    blocks, changed = [], False
    for block in body_blocks(func):
        dataflow = isinstance(block, relax.DataflowBlock)
        made: list[relax.Binding] = []
        for binding in block.bindings:
            new = rewrite(binding, relax.DataflowVar if dataflow else relax.Var)
            made += [binding] if new is None else new
            changed |= new is not None
        blocks.append((dataflow, made))
    return rebuild(func, blocks) if changed else None


def substitute(expr: relax.Expr, values: Mapping[relax.Expr, relax.Expr]) -> relax.Expr:
    """Replace Vars and GlobalVars in a call, a tuple or a tuple's item; what nothing changes in is returned itself."""
    if isinstance(expr, relax.Var | GlobalVar):
        return values.get(expr, expr)
    if isinstance(expr, Tuple):
        fields = [substitute(field, values) for field in expr.fields]
        changed = any(not a.same_as(b) for a, b in zip(fields, expr.fields, strict=True))
        return relax.Tuple(fields) if changed else expr
    if isinstance(expr, TupleGetItem):
        inner = substitute(expr.tuple_value, values)
        return expr if inner.same_as(expr.tuple_value) else relax.TupleGetItem(inner, expr.index)
    if isinstance(expr, Call):
        args = [substitute(arg, values) for arg in expr.args]
        if all(a.same_as(b) for a, b in zip(args, expr.args, strict=True)):
            return expr
        return Call(expr.op, args, expr.attrs, expr.ty_args, ret_ty=expr.ty)
    return expr
