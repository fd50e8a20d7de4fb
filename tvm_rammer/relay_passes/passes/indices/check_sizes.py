"""Sizes that only the data say, and that an operator needs to be equal: they are compared when the model runs.

TVM takes it for granted that a product's inner sizes agree, that a reshape keeps the number of elements, and that what
is broadcast fits: where it cannot know, it reads past the end of a tensor. And of two tensors of unknown sizes it does
not know the sum's shape, so nothing that reads it compiles. Here a function copies such a tensor first
(`size_guard`): it ends the call where sizes differ, and its result has the sizes that the operator needs. (A
`relax.MatchCast` would not do: TVM's CanonicalizeBindings takes it for a definition, and drops it.)

Sizes of two tensors that are added are taken for equal. Where one of them turns out to be 1, the copy repeats what
there is, if the other size is known ahead, or is that of the tensor before. Otherwise the call is refused: the result
would have another size than what reads it was compiled for.
"""

import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import Call, Op

from ...bindings import body_blocks, is_call, result_of, static_shape, substitute, typed
from ...module_pass import module_pass
from .comparing import Comparing
from .size_rules import RULES

_WITH_TYPES = ("relax.call_tir", "relax.call_tir_with_grad", "relax.call_dps_packed", "relax.call_pure_packed")
"""Calls whose results have the types that they say."""


def CheckSizes() -> tvm.transform.Pass:
    """Make the pass; it works on Relax operators, so it comes before they are legalized."""
    return _check_sizes


@module_pass("RammerCheckSizes")
def _check_sizes(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    made = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and not _is_static(func):
            checked = _Function(made, func).checked()
            if checked is not None:
                made.update_func(var, checked)
    return made


def _is_static(func: relax.Function) -> bool:
    """Whether all tensors that operators read and compute have known shapes."""
    variables = [*func.params, *(binding.var for block in body_blocks(func) for binding in block.bindings)]
    sized = [var.ty for var in variables if isinstance(var.ty, relax.TensorType | relax.ShapeType)]
    return all(static_shape(ty) is not None for ty in sized)


class _Function:
    """Rewrites one function.

    Parameters
    ----------
    mod : tvm.IRModule
        Gets the functions that compare sizes.
    func : relax.Function
    """

    def __init__(self, mod: tvm.IRModule, func: relax.Function) -> None:
        self._func, self._comparing = func, Comparing(mod, func)
        self._values: dict[relax.Expr, relax.Expr] = {}
        bindings = [b for block in body_blocks(func) for b in block.bindings]
        # What a branch reads keeps its variable, and so its type.
        self._retypes = not any(isinstance(b.value, relax.If | relax.Function) for b in bindings)

    def checked(self) -> relax.Function | None:
        """The function with what compares sizes; None where nothing has to be compared."""
        blocks = []
        for block in body_blocks(self._func):
            dataflow = isinstance(block, relax.DataflowBlock)
            made: list[relax.Binding] = []
            self._comparing.made, self._comparing.kind = made, relax.DataflowVar if dataflow else relax.Var
            for binding in block.bindings:
                self._rewrite(binding)
            blocks.append(relax.DataflowBlock(made) if dataflow else relax.BindingBlock(made))
        if not self._comparing.changes:
            return None
        result = relax.BlockBuilder().normalize(substitute(result_of(self._func), self._values))
        body = typed(relax.SeqExpr(blocks, result), result.ty)
        ret_ty = result.ty if self._retypes else self._func.ret_ty
        return relax.Function(self._func.params, body, ret_ty, self._func.is_pure, self._func.attrs)

    def _rewrite(self, binding: relax.Binding) -> None:
        value, made = substitute(binding.value, self._values), self._comparing.made
        rule = RULES.get(value.op.name) if isinstance(value, Call) and isinstance(value.op, Op) else None
        if rule is not None:
            self._comparing.call = binding.value
            value = rule(self._comparing, value)
        same = value.same_as(binding.value) or not self._retypes or is_call(value, _WITH_TYPES)
        value = value if same else _inferred(value)
        if isinstance(binding, relax.MatchCast) and (same or not _has_shape(value.ty)):
            made.append(relax.MatchCast(binding.var, value, binding.ty))
            return
        if same or tvm_ffi.structural_equal(value.ty, binding.var.ty):
            made.append(relax.VarBinding(binding.var, typed(value, binding.var.ty)))
            return
        kind = relax.DataflowVar if isinstance(binding.var, relax.DataflowVar) else relax.Var
        var = kind(binding.var.name, value.ty)
        self._values[binding.var] = var
        made.append(relax.VarBinding(var, value))
        if isinstance(binding, relax.MatchCast):  # of the extents' names, which shapes may speak of
            made.append(relax.MatchCast(binding.var, var, binding.ty))


def _has_shape(ty: object) -> bool:
    return isinstance(ty, relax.TensorType) and isinstance(ty.shape, relax.ShapeExpr)


def _inferred(value: relax.Expr) -> relax.Expr:
    """A value with the type that it has by what it reads now."""
    if isinstance(value, Call):
        value = Call(value.op, value.args, value.attrs, value.ty_args)
    return relax.BlockBuilder().normalize(value)
