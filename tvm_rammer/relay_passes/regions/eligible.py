"""Which bindings can be rOperators, and which order must be kept around those that cannot."""

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, GlobalVar, Op, Tuple
from tvm.tirx.buffer import BufferType

from ...ir import ITEM_BYTES
from ..bindings import dtype_of, static_shape, tensor_fields, writes_a_tensor

_CALLS_HOST = ("tirx.tvm_call_packed", "tirx.tvm_call_cpacked", "tirx.call_extern", "tirx.call_pure_extern",
               "tirx.call_llvm_intrin", "tirx.tvm_call_packed_lowered")  # fmt: skip


LEAVE = "rammer.leave"
"""Attribute of a PrimFunc that is to stay a stock call; its value is the reason."""


def reason_to_leave(mod: tvm.IRModule, binding: relax.Binding, functions: dict[GlobalVar, str | None]) -> str | None:
    """Say why a binding cannot be an rOperator; None where it can.

    Parameters
    ----------
    mod : tvm.IRModule
    binding : relax.Binding
        Of a Relax function.
    functions : dict of GlobalVar to str or None
        What was found out about PrimFuncs so far; grows.
    """
    value = binding.value
    if not isinstance(value, Call) or not isinstance(binding, relax.VarBinding):
        return f"{type(value).__name__} is not a call of a PrimFunc"
    if not isinstance(value.op, Op) or value.op.name != "relax.call_tir":
        name = value.op.name if isinstance(value.op, Op) else str(value.op)
        return f"{name} is not a call_tir"
    if len(value.args) != 2 or not isinstance(value.args[1], Tuple):
        return "call_tir takes arguments that are not tensors"
    tensors = [*(arg.ty for arg in value.args[1].fields), *(tensor_fields(binding.var.ty) or (None,))]
    for ty in tensors:
        problem = _tensor_problem(ty)
        if problem:
            return problem
    function = value.args[0]
    if function not in functions:
        functions[function] = _function_problem(mod, function)
    if functions[function] is None and len(mod[function].params) != len(tensors):
        return f"{function.name_hint} has {len(mod[function].params)} parameters for {len(tensors)} tensors"
    return functions[function]


def is_barrier(mod: tvm.IRModule, value: relax.Expr, in_dataflow: bool) -> bool:
    """Whether nothing may move across a computation: it has side effects, or writes one of its arguments."""
    if isinstance(value, Call) and isinstance(value.op, Op):
        if writes_a_tensor(value):
            return True
        return not in_dataflow and not value.op.get_attr("FPurity")
    if isinstance(value, Call) and isinstance(value.op, GlobalVar):
        callee = mod[value.op] if value.op in mod.functions else None
        return not in_dataflow and not (isinstance(callee, relax.Function) and callee.is_pure)
    return not in_dataflow and not isinstance(value, relax.ShapeExpr)


def _tensor_problem(ty: object) -> str | None:
    if not isinstance(ty, relax.TensorType):
        return f"an argument or result is not a tensor but {ty}"
    shape = static_shape(ty)
    if shape is None:
        return f"the shape of {ty} is not static"
    if dtype_of(ty) not in ITEM_BYTES:
        return f"elements of type {dtype_of(ty)} are not supported"
    if 0 in shape:
        return f"a tensor of shape {shape} has no elements"
    return None


def _function_problem(mod: tvm.IRModule, function: GlobalVar) -> str | None:
    func = mod[function] if function in mod.functions else None
    if not isinstance(func, tirx.PrimFunc):
        return f"{function.name_hint} is not a PrimFunc"
    for param in func.params:
        if not isinstance(param.ty, BufferType):
            return f"{function.name_hint} has a parameter that is no buffer"
        if not all(isinstance(dim, tirx.IntImm) for dim in param.ty.shape):
            return f"{function.name_hint} has buffers of symbolic shape"
        if param.elem_offset is not None and not isinstance(param.elem_offset, tirx.IntImm):
            return f"{function.name_hint} has buffers that start at a symbolic offset"
    if func.attrs and LEAVE in func.attrs:
        return str(func.attrs[LEAVE])
    for key in ("tirx.is_scheduled", "tirx.is_host_func", "target"):
        if func.attrs and key in func.attrs:
            return f"{function.name_hint} is already scheduled or bound to a target ({key})"
    called: set[str] = set()

    def visit(call: Call) -> None:
        if isinstance(call.op, Op):
            called.add(call.op.name)
        elif isinstance(call.op, GlobalVar | relax.ExternFunc):
            called.add("tirx.call_extern")

    tvm_ffi.structural_walk(func.body, [(Call, visit)], order="pre")
    host = sorted(called & set(_CALLS_HOST))
    return f"{function.name_hint} calls a host function ({host[0]})" if host else None
