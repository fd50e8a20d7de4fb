"""Legalizations in the place of TVM's own, where those are less exact than the model asks for, or warn in vain."""

import functools
import math

import tvm
from tvm import relax, te, tirx, topi
from tvm.ir import Call, Constant

from ....define_arithmetic import equals_itself
from ..products.widen_halves import HALVES
from .boxes import aligned_boxes
from .extremes import extremes
from .pads import pads
from .pools import pools_along_an_axis
from .samples import samples
from .scans import SCANS, by_blocks, one_by_one
from .slices import slices
from .softmax import SOFTMAXES, log_add_exp, softmaxes
from .stock import SUMS, Legalization, elementwise, in_float32, in_one_function, product, stock
from .transposed import transposed_convolutions

_CONVOLUTIONS = [f"relax.nn.conv{n}d" for n in (1, 2, 3)]
_ARCS = [f"relax.a{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")]
_HYPERBOLIC = ["relax.cosh", "relax.sinh"]
_CLASSES = ["relax.isfinite", "relax.isinf", "relax.isnan"]
_QUOTIENTS = ["relax.floor_divide", "relax.floor_mod", "relax.mod"]
_ACTIVATIONS = ["relax.sigmoid", *(f"relax.nn.{name}" for name in ("gelu", "gelu_tanh", "selu", "silu", "softplus"))]
_WITH_FORMULAS = ("float32", "float16")
"""Types in which kernels have formulas of their own (`vector_math`)."""

MOST_FACTORS = 16
"""Of a power that is a product."""

_SINH = [1 / math.factorial(n) for n in range(17, 0, -2)]
"""Of the Taylor series about 0, the last one first: below 1 the next is beyond the last bit of float64."""


def exact_legalization(target: tvm.target.Target) -> dict[str, Legalization]:
    """Legalizations by the operator's name, for `relax.transform.LegalizeOps`.

    What is not less need not be greater or equal: it may be NaN. A product with 0 need not be 0, and only what is less
    than 0 is multiplied in a leaky rectifier. What adds or multiplies many numbers of half precision does so in
    float32, as NumPy and ONNX Runtime do (`SUMS`), and so do activations and remainders, whose parts cancel out. So do
    medians, for TVM's runtime cannot sort bfloat16. On a CPU, powers and inverse functions are computed in float32,
    too; and hyperbolic functions, of which TVM makes no vectors for LLVM, are infinite only where they have to be, and
    near 0 as exact as elsewhere. On a GPU, functions that CUDA lacks for half precision are computed in float32. A
    `take` whose indices are surely inside (`check_indices`) is legalized without TVM's warning that they might not be.

    What concerns the largest and smallest numbers is in `extremes`, transposed convolutions in `transposed`, grid
    samples in `samples`, boxes in `boxes`, mirrored edges in `pads`, slices whose bounds only the data know in
    `slices`, running sums in `scans`, for a CPU rows that sum to 1 in `softmax`, and the logarithm of a sum of two
    exponentials for both, for a GPU pools along one axis in `pools`.
    """
    cpu = target.kind.name == "llvm"
    exact: dict[str, Legalization] = {
        **extremes(),
        **transposed_convolutions(cpu),
        **samples(),
        **pads(),
        **slices(),
        **aligned_boxes(cpu),
        "relax.take": _take,
        "relax.logical_not": _logical_not,
        "relax.multiply": _with_zero,
        "relax.divide": _with_zero,
        "relax.power": _power,
        "relax.matmul": product,
        "relax.nn.leakyrelu": _leaky_relu,
        "relax.nn.prelu": _prelu,
        "relax.nn.layer_norm": _layer_norm,
        "relax.sign": _sign,
        "relax.log_add_exp": log_add_exp,
        **dict.fromkeys([*_ACTIVATIONS, *_CLASSES, *_QUOTIENTS, "relax.atan2", "relax.median"], in_float32),
        **dict.fromkeys(SUMS, in_float32 if cpu else in_one_function),
        **dict.fromkeys(["relax.argsort", "relax.sort", "relax.topk"], _sorted),
    }
    if cpu:
        exact |= {"relax.cosh": _cosh, "relax.sinh": _sinh}
        exact |= dict.fromkeys([*_CONVOLUTIONS, *_ARCS], in_float32) | {"relax.tanh": _tanh, "relax.atanh": _atanh}
        exact |= dict.fromkeys(SCANS, one_by_one) | softmaxes(in_float32)
    else:
        exact |= dict.fromkeys(_CONVOLUTIONS, product)
        exact |= dict.fromkeys(SOFTMAXES, in_one_function)
        exact |= dict.fromkeys(SCANS, by_blocks) | pools_along_an_axis(in_one_function)
        exact |= dict.fromkeys([*_ARCS, *_HYPERBOLIC, "relax.round"], in_float32)
    exact["relax.mean"] = functools.partial(_mean, exact["relax.mean"])
    return exact


def _take(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """What TVM makes of mode "fast" along an axis: the very same function."""
    axis = call.attrs.axis
    if call.attrs.mode != "fast" or axis is None or not isinstance(call.args[1].ty, relax.TensorType):
        return stock(bb, call)
    first = int(axis) % call.args[0].ty.ndim

    def take(data: te.Tensor, indices: te.Tensor) -> te.Tensor:
        last = first + len(indices.shape)
        shape = [*data.shape[:first], *indices.shape, *data.shape[first + 1 :]]
        return te.compute(
            shape, lambda *i: data(*i[:first], indices(*i[first:last]), *i[last:]), name="T_take", tag="injective"
        )

    return bb.call_te(take, *call.args)


def _power(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """By a constant: some as products, as LLVM has them, since TVM warns of each power from the third on."""
    exponent, dtype = call.args[1], str(call.ty.dtype)
    if not isinstance(exponent, Constant) or exponent.value.shape or not dtype.startswith(("float", "bfloat")):
        return in_float32(bb, call)
    wide, number = "float32" if dtype in HALVES else dtype, float(exponent.value.numpy())

    def element(x: tirx.Expr) -> tirx.Expr:
        if not (number.is_integer() and 2 < number <= MOST_FACTORS):
            return tirx.call_intrin(wide, "tirx.pow", x, tirx.const(number, wide))
        half = math.prod([x * x] * (int(number) // 2 - 1), start=x * x)
        return half * x if number % 2 else half

    return elementwise(bb, call, element)


def _layer_norm(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """TVM's own takes float16 and float32 alone."""
    dtype, attrs = str(call.ty.dtype), call.attrs
    if dtype == "bfloat16":
        return in_float32(bb, call)
    if dtype != "float64":
        return stock(bb, call)
    x, scale, bias = call.args
    axes = [int(axis) for axis in attrs.axes]
    centred = bb.emit(relax.op.subtract(x, bb.emit(relax.op.mean(x, axes, keepdims=True))))
    variance = bb.emit(relax.op.mean(bb.emit(relax.op.multiply(centred, centred)), axes, keepdims=True))
    deviation = bb.emit(relax.op.sqrt(bb.emit(relax.op.add(variance, relax.const(float(attrs.epsilon), dtype)))))
    normal = bb.emit(relax.op.multiply(bb.emit(relax.op.divide(centred, deviation)), scale))
    return relax.op.add(normal, bias)


def _mean(of_floats: Legalization, bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """Of integers in their own type: TVM would divide in int64 by what only the data know, and keep that."""
    dtype, axes = str(call.ty.dtype), call.attrs.axis
    if not dtype.startswith(("int", "uint")):
        return of_floats(bb, call)

    def compute(x: te.Tensor) -> te.Tensor:
        reduced = range(len(x.shape)) if axes is None else [int(axis) for axis in axes]
        total = topi.sum(x, None if axes is None else reduced, bool(call.attrs.keepdims))
        count = functools.reduce(lambda a, b: a * b, [x.shape[axis] for axis in reduced], tirx.const(1, "int64"))
        return te.compute(total.shape, lambda *i: tirx.truncdiv(total(*i), count.astype(dtype)), name="mean")

    return bb.call_te(compute, call.args[0], primfunc_name_hint="mean")


def _sorted(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """Of bfloat16 in float32: TVM's runtime cannot sort it, and would write behind the end of the result."""
    if str(call.args[0].ty.dtype) != "bfloat16":
        return call  # a later pass of TVM's puts its runtime's functions here

    def of_type(value: relax.Expr, dtype: str) -> relax.Expr:
        value = bb.normalize(value)
        return (
            value if str(value.ty.dtype) == dtype else bb.emit(stock(bb, bb.normalize(relax.op.astype(value, dtype))))
        )

    wide = bb.normalize(Call(call.op, [of_type(call.args[0], "float32"), *call.args[1:]], call.attrs))
    found = bb.emit(wide)
    if not isinstance(call.ty, relax.TupleType):
        return of_type(found, str(call.ty.dtype))
    return relax.Tuple([
        of_type(relax.TupleGetItem(found, i), str(field.dtype)) for i, field in enumerate(call.ty.fields)
    ])  # fmt: skip


def _logical_not(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """A choice: of a comparison that is negated TVM makes the opposite one, which is as false of NaN."""
    if str(call.args[0].ty.dtype) != "bool":
        return stock(bb, call)
    yes, no = tirx.const(True, "bool"), tirx.const(False, "bool")

    def compute(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *index: tirx.Select(x(*index), no, yes), name="logical_not")

    return bb.call_te(compute, call.args[0], primfunc_name_hint="logical_not")


def _with_zero(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """A product or a quotient of a scalar constant 0: TVM would take it for 0, or fail."""
    zeros = [isinstance(arg, Constant) and not arg.value.shape and not arg.value.numpy() for arg in call.args]
    dtype = str(call.ty.dtype)
    if not dtype.startswith("float") or sum(zeros) != 1:
        return stock(bb, call)
    at = zeros.index(True)
    none, undefined = tirx.const(0.0, dtype), tirx.const(math.nan, dtype)
    infinite = tirx.const(math.copysign(math.inf, call.args[at].value.numpy()), dtype)

    def element(x: tirx.Expr) -> tirx.Expr:
        if call.op.name == "relax.multiply":
            return _times_zero(x, dtype)
        return x * infinite if at else tirx.Select(tirx.EQ(x, none), undefined, tirx.Select(equals_itself(x), none, x))

    def compute(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *index: element(x(*index)), name="with_zero")

    return bb.call_te(compute, call.args[1 - at], primfunc_name_hint="with_zero")


def _times_zero(x: tirx.Expr, dtype: str) -> tirx.Expr:
    none, undefined, least, largest = (tirx.const(n, dtype) for n in (0.0, math.nan, -math.inf, math.inf))
    return tirx.Select(tirx.all(x > least, x < largest), none, undefined)


def _leaky_relu(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    dtype, alpha = str(call.ty.dtype), float(call.attrs.alpha)

    def element(x: tirx.Expr) -> tirx.Expr:
        less = x * tirx.const(alpha, dtype) if alpha else _times_zero(x, dtype)
        return tirx.Select(x < tirx.const(0, dtype), less, x)

    def compute(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *index: element(x(*index)), name="leaky_relu", tag="elemwise")

    return bb.call_te(compute, call.args[0], primfunc_name_hint="leaky_relu")


def _prelu(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    axis = int(call.attrs.axis) % call.args[0].ty.ndim

    def compute(x: te.Tensor, slope: te.Tensor) -> te.Tensor:
        one = int(slope.shape[0]) == 1

        def element(*index: tirx.Var) -> tirx.Expr:
            value = x(*index)
            less = value * slope(0 if one else index[axis])
            return tirx.Select(value < tirx.const(0, x.dtype), less, value)

        return te.compute(x.shape, element, name="prelu", tag="broadcast")

    return bb.call_te(compute, *call.args, primfunc_name_hint="prelu")


def _sign(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """NaN has no sign: it stays what it is."""
    if not str(call.ty.dtype).startswith(("float", "bfloat")):
        return stock(bb, call)

    def element(x: tirx.Expr) -> tirx.Expr:
        zero, one, less = (tirx.const(n, x.ty.dtype) for n in (0, 1, -1))
        return tirx.Select(x < zero, less, tirx.Select(zero < x, one, x))

    return elementwise(bb, call, element)


def _cosh(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    def element(x: tirx.Expr) -> tirx.Expr:
        grown, rest = _half_powers(x)
        return grown + rest

    return elementwise(bb, call, element)


def _sinh(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    def element(x: tirx.Expr) -> tirx.Expr:
        grown, rest = _half_powers(x)
        far = tirx.Select(x < tirx.const(0, x.ty.dtype), rest - grown, grown - rest)
        return tirx.Select(tirx.abs(x) < tirx.const(1, x.ty.dtype), _sinh_near(x), far)

    return elementwise(bb, call, element)


def _sinh_near(x: tirx.Expr) -> tirx.Expr:
    near = tirx.const(0, x.ty.dtype)
    for factor in _SINH:
        near = near * (x * x) + tirx.const(factor, x.ty.dtype)
    return near * x


def _tanh(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """TVM's own for LLVM is a quotient of differences from 1, of which nothing is left near 0."""
    if str(call.ty.dtype) in _WITH_FORMULAS:
        return in_float32(bb, call)

    def element(x: tirx.Expr) -> tirx.Expr:
        zero, one, two = (tirx.const(n, x.ty.dtype) for n in (0, 1, 2))
        grown, rest = _half_powers(x)
        far = one - two / (tirx.exp(tirx.abs(x) * two) + one)
        return tirx.Select(tirx.abs(x) < one, _sinh_near(x) / (grown + rest), tirx.Select(x < zero, zero - far, far))

    return elementwise(bb, call, element)


def _atanh(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """TVM's own for LLVM is the logarithm of a quotient, which is 1 near 0."""
    if str(call.ty.dtype) in _WITH_FORMULAS:
        return in_float32(bb, call)

    def element(x: tirx.Expr) -> tirx.Expr:
        zero, one, two, half = (tirx.const(n, x.ty.dtype) for n in (0, 1, 2, 0.5))
        size = tirx.abs(x)
        area = tirx.log1p(two * size / (one - size)) * half
        return tirx.Select(x < zero, zero - area, area)

    return elementwise(bb, call, element)


def _half_powers(x: tirx.Expr) -> tuple[tirx.Expr, tirx.Expr]:
    """Halves of e^|x| and of its reciprocal, by a root that is finite wherever the first half is."""
    half = tirx.const(0.5, x.ty.dtype)
    root = tirx.exp(tirx.abs(x) * half)
    return root * half * root, half / (root * root)
