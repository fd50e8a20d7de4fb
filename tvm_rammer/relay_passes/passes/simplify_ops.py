"""Replace operators of TVM's ONNX frontend by cheaper equivalents."""

from collections import Counter

import tvm
from tvm import relax
from tvm.ir import Call, Op, Tuple

from ..bindings import body_blocks, count_uses, drop_unused, dtype_of, rebuild, rewrite_functions, static_shape, typed
from ..module_pass import module_pass

_PAIRWISE = {
    "relax.sum": "relax.add", "relax.mean": "relax.add", "relax.max": "relax.maximum", "relax.min": "relax.minimum"
}  # fmt: skip
_EQUALITIES = ("relax.equal", "relax.not_equal")
MOST_PIECES = 16
"""Pieces that are concatenated at once: the code of a concatenation has a branch for each."""

_SAME_SHAPE = ("relax.broadcast_to", "relax.reshape")
_RESHAPES = ("relax.reshape", "relax.expand_dims", "relax.squeeze", "relax.flatten")


def SimplifyOps() -> tvm.transform.Pass:
    """Make the pass that replaces operators by cheaper equivalents.

    A sum, mean, minimum or maximum over a stack of tensors, which is how the frontend writes ONNX's Sum of a residual
    block, becomes elementwise operators, which fuse into the convolution before. A reshape or broadcast to the
    shape that a tensor has already becomes another name of it, and so do reshapes there and back, and a cast to its own
    type. Comparisons of truth values, which TVM cannot compile for a CPU, become exclusive ors. A concatenation of many
    pieces becomes several, of `MOST_PIECES` at most. A number without itself becomes 0, or NaN: fused into what makes
    the number, a product that is rounded once there and not at all here would leave its rounding.

    Returns
    -------
    tvm.transform.Pass
    """

    @module_pass("SimplifyOps")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        changed = rewrite_functions(mod, _simplify)
        if changed.same_as(mod):
            return mod
        return rewrite_functions(relax.transform.CanonicalizeBindings()(changed), drop_unused)

    return run


def _simplify(func: relax.Function) -> relax.Function | None:
    uses = count_uses(func)
    values: dict[relax.Var, relax.Expr] = {}
    blocks: list[tuple[bool, list[relax.Binding]]] = []
    changed = False
    for block in body_blocks(func):
        dataflow = isinstance(block, relax.DataflowBlock)
        made: list[relax.Binding] = []
        for binding in block.bindings:
            values[binding.var] = binding.value
            new = _simplify_binding(binding, values, uses, dataflow) if isinstance(binding, relax.VarBinding) else None
            made.extend([binding] if new is None else new)
            changed |= new is not None
        blocks.append((dataflow, made))
    return rebuild(func, blocks) if changed else None


def _simplify_binding(
    binding: relax.VarBinding, values: dict[relax.Var, relax.Expr], uses: Counter[relax.Var], dataflow: bool
) -> list[relax.Binding] | None:
    value = binding.value
    if not isinstance(value, Call) or not isinstance(value.op, Op) or static_shape(value.ty) is None:
        return None
    name = value.op.name
    if name in _SAME_SHAPE and static_shape(value.args[0].ty) == static_shape(value.ty):
        return [relax.VarBinding(binding.var, value.args[0])]
    if name in _RESHAPES and (before := _reshaped_back(value, values)) is not None:
        return [relax.VarBinding(binding.var, before)]
    if name == "relax.astype" and dtype_of(value.args[0].ty) == dtype_of(value.ty):
        return [relax.VarBinding(binding.var, value.args[0])]
    if name in _EQUALITIES and dtype_of(value.args[0].ty) == "bool":
        return _exclusive_or(binding, dataflow)
    if name == "relax.concat":
        return _concatenate_some(binding, values, dataflow)
    if name == "relax.subtract" and value.args[0].same_as(value.args[1]):
        return _nothing(binding, dataflow)
    if name in _PAIRWISE:
        return _pairwise(binding, values, uses, dataflow)
    return None


def _reshaped_back(value: Call, values: dict[relax.Var, relax.Expr]) -> relax.Expr | None:
    """What some reshapes began with, if the last one gives it its shape again."""
    shape, before = static_shape(value.ty), value
    while isinstance(before, Call) and isinstance(before.op, Op) and before.op.name in _RESHAPES:
        source = before.args[0]
        if static_shape(source.ty) == shape:
            return source
        before = values.get(source)
    return None


def _exclusive_or(binding: relax.VarBinding, dataflow: bool) -> list[relax.Binding]:
    """Whether truth values are equal, which TVM's code generator for LLVM would compare as floating-point numbers."""
    call = binding.value
    differ = Call(Op.get("relax.logical_xor"), call.args, ret_ty=call.ty)
    if call.op.name == "relax.not_equal":
        return [relax.VarBinding(binding.var, differ)]
    make = relax.DataflowVar if dataflow else relax.Var
    var = make(f"{binding.var.name}_differ", call.ty)
    same = Call(Op.get("relax.logical_not"), [var], ret_ty=call.ty)
    return [relax.VarBinding(var, differ), relax.VarBinding(binding.var, same)]


def _nothing(binding: relax.VarBinding, dataflow: bool) -> list[relax.Binding] | None:
    """0 for each number, and NaN for what is none."""
    number, dtype = binding.value.args[0], dtype_of(binding.var.ty)
    if dtype not in ("float32", "float64"):
        return None
    shape, make = static_shape(binding.var.ty), relax.DataflowVar if dataflow else relax.Var
    size = relax.op.abs(number)
    var = make(f"{binding.var.name}_size", binding.var.ty)
    finite = make(f"{binding.var.name}_finite", relax.TensorType(shape, "bool"))
    chosen = relax.op.where(finite, relax.const(0, dtype), relax.const(float("nan"), dtype))
    return [
        relax.VarBinding(var, typed(size, var.ty)),
        relax.VarBinding(finite, typed(relax.op.less(var, relax.const(float("inf"), dtype)), finite.ty)),
        relax.VarBinding(binding.var, typed(chosen, binding.var.ty)),
    ]


def _pairwise(
    binding: relax.VarBinding, values: dict[relax.Var, relax.Expr], uses: Counter[relax.Var], dataflow: bool
) -> list[relax.Binding] | None:
    """The bindings that reduce a stack's tensors one after another; None where it is no such reduction."""
    call = binding.value
    stacked = call.args[0]
    stack = values.get(stacked) if isinstance(stacked, relax.Var) else None
    if not isinstance(stack, Call) or not isinstance(stack.op, Op) or stack.op.name != "relax.stack":
        return None
    axes = call.attrs.axis
    if axes is None or [int(a) for a in axes] != [int(stack.attrs.axis or 0)] or call.attrs.keepdims:
        return None
    tensors = _tuple(stack.args[0], values)
    if tensors is None or uses[stacked] != 1 or len(tensors) < 2:
        return None
    mean, dtype = call.op.name == "relax.mean", dtype_of(binding.var.ty)
    if mean and dtype not in ("float32", "float64"):  # sums of half precision are not rounded to it one by one
        return None
    make = relax.DataflowVar if dataflow else relax.Var
    total, made = tensors[0], []
    for i, tensor in enumerate(tensors.fields[1:], start=1):
        last = i == len(tensors) - 1 and not mean
        var = binding.var if last else make(f"{binding.var.name}_{i}", binding.var.ty)
        made.append(relax.VarBinding(var, Call(Op.get(_PAIRWISE[call.op.name]), [total, tensor], ret_ty=var.ty)))
        total = var
    if mean:
        quotient = typed(relax.op.divide(total, relax.const(len(tensors), dtype)), binding.var.ty)
        made.append(relax.VarBinding(binding.var, quotient))
    return made


def _concatenate_some(
    binding: relax.VarBinding, values: dict[relax.Var, relax.Expr], dataflow: bool
) -> list[relax.Binding] | None:
    """The bindings that concatenate neighbours, then what these became, and so on; None for few pieces."""
    call = binding.value
    tensors = _tuple(call.args[0], values)
    if tensors is None or len(tensors) <= MOST_PIECES:
        return None
    make = relax.DataflowVar if dataflow else relax.Var
    pieces: list[relax.Expr] = list(tensors.fields)
    made: list[relax.Binding] = []
    while len(pieces) > MOST_PIECES:
        joined: list[relax.Expr] = []
        for first in range(0, len(pieces), MOST_PIECES):
            some = pieces[first : first + MOST_PIECES]
            if len(some) == 1:
                joined += some
                continue
            part = relax.op.concat(some, axis=call.attrs.axis)
            typed(part, _joined_type(some, binding.var.ty, int(call.attrs.axis)))
            joined.append(make(f"{binding.var.name}_{len(made)}", part.ty))
            made.append(relax.VarBinding(joined[-1], part))
        pieces = joined
    whole = typed(relax.op.concat(pieces, axis=call.attrs.axis), binding.var.ty)
    return [*made, relax.VarBinding(binding.var, whole)]


def _joined_type(pieces: list[relax.Expr], whole: relax.TensorType, axis: int) -> relax.TensorType:
    shape = list(static_shape(whole) or ())
    shape[axis] = sum((static_shape(piece.ty) or ())[axis] for piece in pieces)
    return relax.TensorType(shape, dtype_of(whole))


def _tuple(expr: relax.Expr, values: dict[relax.Var, relax.Expr]) -> Tuple | None:
    """The tuple that an expression is, or that it names."""
    found = expr if isinstance(expr, Tuple) else values.get(expr)
    return found if isinstance(found, Tuple) else None
