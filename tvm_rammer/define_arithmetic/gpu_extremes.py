"""Largest and smallest numbers on a GPU: NaN where either is NaN.

From sm_80 on each is one instruction, PTX's `max.NaN`; before, and where the text is compiled for another machine, two
tests and two choices.
"""

from functools import partial

import tvm
from tvm import tirx
from tvm.backend.cuda.op import cuda_func_call
from tvm.ir import Call, Expr, StringImm

from .values import equals_itself, is_float, is_number, lanes_of, scalar

_SOURCE = """
__device__ __forceinline__ {type} {name}({type} a, {type} b) {{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  {instruction}
#else
  return a != a || a {better} b ? a : b;
#endif
}}
"""

_CALL = tvm.ir.Op.get("tirx.cuda.func_call")

_PREFIXES = ("rammer_max_", "rammer_min_")

_KINDS = {
    "float32": ("float", 'asm("{name}.NaN.f32 %0, %1, %2;" : "=f"(a) : "f"(a), "f"(b)); return a;'),
    "float16": ("half", "return __h{name}_nan(a, b);"),
    "bfloat16": ("nv_bfloat16", "return __h{name}_nan(a, b);"),
}
"""What C calls a type, and how it has the larger or smaller of two of its numbers."""


def extreme_on_gpu(node: tirx.Max | tirx.Min) -> Expr:
    """CUDA's functions give the number where one operand is NaN. TVM prints no choices between vectors: by element."""
    if not is_float(node):
        return node
    a, b = (node.b, node.a) if is_number(node.b) else (node.a, node.b)
    chosen = partial(_by_choices, always=is_number(a)) if scalar(node) == "float64" else _by_call
    lanes = range(lanes_of(node))
    if len(lanes) == 1 and chosen is _by_call:
        return _by_call(node, a, b)
    names = tirx.Var("a", a.ty), tirx.Var("b", b.ty)
    each = [chosen(node, *(tirx.Shuffle([name], [lane]) for name in names)) for lane in lanes]
    value = chosen(node, *names) if len(lanes) == 1 else tirx.Shuffle(each, list(lanes))
    return tirx.Let(names[0], a, tirx.Let(names[1], b, value))


def is_extreme_on_gpu(call: Call) -> bool:
    """Whether a call is of one of these functions: it takes one instruction, and may be made in vain."""
    name = call.args[0] if call.op.same_as(_CALL) else None
    return isinstance(name, StringImm) and name.value.startswith(_PREFIXES)


def _by_call(node: tirx.Max | tirx.Min, a: Expr, b: Expr) -> Expr:
    dtype = scalar(node)
    name = "max" if isinstance(node, tirx.Max) else "min"
    kind, instruction = _KINDS[dtype]
    function = f"rammer_{name}_{dtype}"
    source = _SOURCE.format(
        type=kind, name=function, instruction=instruction.format(name=name), better=">" if name == "max" else "<"
    )
    return cuda_func_call(function, a, b, source_code=source, return_type=dtype)


def _by_choices(node: tirx.Max | tirx.Min, a: Expr, b: Expr, *, always: bool) -> Expr:
    """By tests; `always` where the first one is no NaN."""
    best = tirx.Select(a > b if isinstance(node, tirx.Max) else a < b, a, b)
    return best if always else tirx.Select(equals_itself(a), best, a)
