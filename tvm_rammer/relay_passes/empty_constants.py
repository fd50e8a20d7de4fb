"""Allocate constants without elements: TVM writes some of them to libraries in a form that it cannot read again."""

import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import GenericConst
from tvm.relax.expr_functor import PyExprMutator, mutator

from .bindings import dtype_of, is_const, rewrite_functions, static_shape
from .module_pass import module_pass


def AllocateEmptyConstants() -> tvm.transform.Pass:
    """Make the pass that puts an allocation in the place of each constant without elements."""
    return _allocate_empty_constants


@module_pass("AllocateEmptyConstants")
def _allocate_empty_constants(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_functions(mod, lambda func: _Allocator(mod).visit_expr(func) if _has_empty(func) else None)


def _has_empty(func: relax.Function) -> bool:
    found: list[bool] = []
    tvm_ffi.structural_walk(func, [(GenericConst, lambda constant: found.append(_is_empty(constant)))], order="pre")
    return any(found)


def _is_empty(expr: relax.Expr) -> bool:
    return is_const(expr) and 0 in (static_shape(expr.ty) or ())


@mutator
class _Allocator(PyExprMutator):  # type: ignore[misc]  # TVM has no types
    def visit_generic_const_(self, op: GenericConst) -> relax.Expr:
        if not _is_empty(op):
            return op
        return self.builder_.emit(relax.op.builtin.alloc_tensor(op.ty.shape, dtype_of(op.ty), 0))
