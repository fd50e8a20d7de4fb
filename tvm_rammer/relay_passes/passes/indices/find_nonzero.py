"""Where a tensor is not 0: TVM's function for it is one of Python, which takes a tenth of a millisecond."""

import operator
from collections.abc import Sequence
from functools import reduce

import tvm
from tvm import relax, te, tirx
from tvm.ir import Call, Expr
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.script import tirx as T

from ...bindings import dtype_of, is_call
from ...module_pass import module_pass
from ...regions.eligible import LEAVE
from ..bound_chains import OPAQUE

_NONZERO = "relax.nonzero"


def FindNonzero() -> tvm.transform.Pass:
    """Make the pass that puts functions of TIR into the places of `relax.nonzero`, for a CPU.

    LegalizeOps makes none for an operator of whose result nobody knows the size.
    """
    return _find_nonzero


@module_pass("FindNonzero")
def _find_nonzero(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    finder = _Finder(mod)
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and _has_nonzero(func):
            finder.builder_.update_func(var, finder.visit_expr(func))
    return finder.builder_.get() if finder.found else mod


def _has_nonzero(func: relax.Function) -> bool:
    found: list[bool] = []
    relax.analysis.post_order_visit(func, lambda e: found.append(True) if is_call(e, (_NONZERO,)) else None)
    return bool(found)


@mutator
class _Finder(PyExprMutator):  # type: ignore[misc]  # TVM has no types
    found = False

    def visit_call_(self, call: Call) -> relax.Expr:
        call = self.visit_expr_post_order(call)
        if not is_call(call, (_NONZERO,)) or not getattr(call.args[0].ty.shape, "values", ()):
            return call
        self.found = True
        return _places(self.builder_, call)


def _places(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """Count them, so that the result gets a size; then find them once more, and split each place by axes.

    The result is of the type that it had, by a copy: TVM would take the names that importers give to its size for
    others of the one that is here, and replace some of them.
    """
    (data,) = call.args
    sizes, dtype = list(data.ty.shape.values), dtype_of(data.ty)
    count = bb.emit(_call(bb, "count_nonzero", _count(sizes, dtype), data, tirx.IntImm("int64", 1)))
    found = tirx.Var("found", "int64")
    bb.match_cast(bb.emit(relax.op.tensor_to_shape(count)), relax.ShapeType([found]))
    places = bb.emit(_call(bb, "nonzero", _find(sizes, dtype), data, found))

    def by_axis(places: te.Tensor, data: te.Tensor) -> te.Tensor:
        def index(axis: Expr, n: Expr) -> Expr:
            chosen, rest = None, places[n]
            for number in reversed(range(len(data.shape))):
                size = tirx.max(data.shape[number], 1)
                here, rest = (tirx.floormod(rest, size), tirx.floordiv(rest, size)) if number else (rest, rest)
                chosen = here if chosen is None else tirx.Select(axis == number, here, chosen)
            return chosen

        return te.compute((len(data.shape), found), index, name="by_axis")

    result = bb.emit(bb.call_te(by_axis, places, data, primfunc_name_hint="places_by_axis"))
    return relax.op.call_pure_packed("vm.builtin.copy", result, ty_args=[call.ty])


def _call(bb: relax.BlockBuilder, name: str, func: tirx.PrimFunc, data: relax.Expr, extent: Expr) -> relax.Expr:
    reason = "how many elements are not 0, the data decide"
    marked = func.with_attr({"op_pattern": OPAQUE, "tirx.is_scheduled": True, LEAVE: reason})
    return relax.call_tir(bb.add_func(marked, name), [data], out_ty=relax.TensorType([extent], "int64"))


def _count(sizes: Sequence[Expr], dtype: str) -> tirx.PrimFunc:
    """A function that counts what is not 0; NaN is not."""
    shape, total = _own(sizes)

    @T.prim_func(private=True)  # type: ignore[untyped-decorator]  # TVM's are
    def count_nonzero(a: T.handle, b: T.handle) -> None:
        x = T.match_buffer(a, shape, dtype)
        count = T.match_buffer(b, (1,), "int64")
        flat = T.decl_buffer((total,), dtype, data=x.data)
        count[0] = T.int64(0)
        for i in T.serial(total):
            count[0] = count[0] + T.Cast("int64", _is_there(flat[i]))

    return count_nonzero


def _find(sizes: Sequence[Expr], dtype: str) -> tirx.PrimFunc:
    """A function that finds the places of what is not 0 among all elements."""
    (shape, total), found = _own(sizes), tirx.Var("found", "int64")

    @T.prim_func(private=True)  # type: ignore[untyped-decorator]  # TVM's are
    def nonzero(a: T.handle, b: T.handle) -> None:
        x = T.match_buffer(a, shape, dtype)
        places = T.match_buffer(b, (found,), "int64")
        flat = T.decl_buffer((total,), dtype, data=x.data)
        at = T.alloc_buffer((1,), "int64")
        at[0] = T.int64(0)
        for i in T.serial(total):
            if _is_there(flat[i]):
                places[at[0]] = i
                at[0] = at[0] + T.int64(1)

    return nonzero


def _own(sizes: Sequence[Expr]) -> tuple[list[Expr], Expr]:
    """Sizes for a function of its own, which takes those that are no numbers from its argument; and their product."""
    own = [size if isinstance(size, tirx.IntImm) else tirx.Var(f"size{n}", "int64") for n, size in enumerate(sizes)]
    return own, reduce(operator.mul, own)


def _is_there(element: Expr) -> Expr:
    dtype = str(element.ty.dtype)
    return element if dtype == "bool" else element != tirx.const(0, dtype)
