"""Powers on a GPU, of bases below 0, too.

CUDA text is compiled with fast math, whose `powf(x, y)` is 2 to the y log2 x: not a number for every x below 0, and for
0 to the 0. Here it is that of the magnitude, and what follows of the sign and of the exponent is decided beside it.
"""

from tvm import tirx
from tvm.backend.cuda.op import cuda_func_call
from tvm.ir import Call, Expr, Op, StringImm

from .values import element, lanes_of, scalar

_SOURCE = """
__device__ __forceinline__ float rammer_pow(float x, float y) {
  const float largest = 3.40282347e38f;
  if (y == 0.0f || x == 1.0f) return 1.0f;
  float power = x == -1.0f && fabsf(y) > largest ? 1.0f : powf(fabsf(x), y);
  const bool whole = truncf(y) == y, odd = whole && truncf(0.5f * y) != 0.5f * y;
  if (x < 0.0f && !whole && x >= -largest) power = nanf("");
  return odd ? copysignf(power, x) : power;
}
"""

_POWER, _EXTERN = Op.get("tirx.pow"), Op.get("tirx.call_pure_extern")
_NAMES = ("powf", "hpow")
_FEW = (2, 3)
"""Exponents that are few products."""


def power_on_gpu(call: Call) -> Expr:
    """A power of single or half precision; of others, and of what is none, the same.

    Parameters
    ----------
    call : Call
        TVM's own operator, or what TVM makes of it for CUDA.
    """
    operands = _operands(call)
    if operands is None:
        return call
    base, exponent = operands
    known = element(exponent)
    if isinstance(known, tirx.FloatImm) and known.value in _FEW:
        name = tirx.Var("base", base.ty)
        product: Expr = name
        for _ in range(int(known.value) - 1):
            product = product * name
        return tirx.Let(name, base, product)
    lanes = range(lanes_of(call))
    if len(lanes) == 1:
        return _power(base, exponent)
    names = tirx.Var("base", base.ty), tirx.Var("exponent", exponent.ty)
    each = [_power(*(tirx.Shuffle([name], [lane]) for name in names)) for lane in lanes]
    return tirx.Let(names[0], base, tirx.Let(names[1], exponent, tirx.Shuffle(each, list(lanes))))


def _operands(call: Call) -> tuple[Expr, Expr] | None:
    """Base and exponent; None where it is no power, or one of double precision, which fast math leaves alone."""
    if call.op.same_as(_POWER) and scalar(call) in ("float32", "float16", "bfloat16"):
        return call.args[0], call.args[1]
    name = call.args[0] if call.op.same_as(_EXTERN) else None
    return (call.args[1], call.args[2]) if isinstance(name, StringImm) and name.value in _NAMES else None


def _power(base: Expr, exponent: Expr) -> Expr:
    dtype = scalar(base)
    wide = (base, exponent) if dtype == "float32" else (base.astype("float32"), exponent.astype("float32"))
    power = cuda_func_call("rammer_pow", *wide, source_code=_SOURCE, return_type="float32")
    return power if dtype == "float32" else power.astype(dtype)
