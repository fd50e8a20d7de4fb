"""Legalizations in the place of TVM's own, where those are less exact than the model asks for, or warn in vain."""

import math
from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.ir import Call, Constant

from ...define_arithmetic import equals_itself

Legalization = Callable[[relax.BlockBuilder, Call], relax.Expr]

_POOLS = [f"relax.nn.{kind}{n}d" for kind in ("avg_pool", "adaptive_avg_pool") for n in (1, 2, 3)]
_SUMS = ["relax.sum", "relax.mean", "relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d", *_POOLS]
_HALVES = ("float16", "bfloat16")
_INFINITE = {"max": float("inf"), "min": float("-inf")}


def exact_legalization(target: tvm.target.Target) -> dict[str, Legalization]:
    """Legalizations by the operator's name, for `relax.transform.LegalizeOps`.

    The largest and smallest of numbers that are all infinite is infinite: TVM begins with the largest finite number.
    Where the largest or smallest is looked for, NaN counts as infinite: TVM would lose it, and forget what it found
    before. What is not less need not be greater or equal: it may be NaN. A product with 0 need not be 0. On a CPU, sums
    and products of half precision are computed in float32, as NumPy and ONNX Runtime do. A `take` whose indices are
    surely inside (`check_indices`) is legalized without TVM's warning that they might not be.
    """
    exact: dict[str, Legalization] = {
        "relax.max": _extreme("max"),
        "relax.min": _extreme("min"),
        "relax.take": _take,
        "relax.argmax": _place_of_extreme("max"),
        "relax.argmin": _place_of_extreme("min"),
        "relax.logical_not": _logical_not,
        "relax.multiply": _with_zero,
        "relax.divide": _with_zero,
    }
    if target.kind.name == "llvm":
        exact |= {"relax.matmul": _matmul, "relax.nn.softmax": _softmax} | dict.fromkeys(_SUMS, _in_float32)
    return exact


def _stock(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    return call.op.get_attr("FLegalize")(bb, call)


def _take(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """What TVM makes of mode "fast" along an axis: the very same function."""
    axis = call.attrs.axis
    if call.attrs.mode != "fast" or axis is None or not isinstance(call.args[1].ty, relax.TensorType):
        return _stock(bb, call)
    first = int(axis) % call.args[0].ty.ndim

    def take(data: te.Tensor, indices: te.Tensor) -> te.Tensor:
        last = first + len(indices.shape)
        shape = [*data.shape[:first], *indices.shape, *data.shape[first + 1 :]]
        return te.compute(
            shape, lambda *i: data(*i[:first], indices(*i[first:last]), *i[last:]), name="T_take", tag="injective"
        )

    return bb.call_te(take, *call.args)


def _matmul(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    dtype = str(call.ty.dtype)
    if dtype not in _HALVES:
        return _stock(bb, call)
    wide = bb.normalize(relax.op.matmul(*call.args, out_dtype="float32"))
    wide = bb.emit(_stock(bb, wide))
    return _stock(bb, bb.normalize(relax.op.astype(wide, dtype)))


def _in_float32(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    dtype = str(call.ty.dtype)
    if dtype not in _HALVES:
        return _stock(bb, call)
    wide = [bb.emit(_stock(bb, bb.normalize(relax.op.astype(arg, "float32")))) for arg in call.args]
    wide = bb.normalize(Call(call.op, wide, call.attrs))
    return _stock(bb, bb.normalize(relax.op.astype(bb.emit(_stock(bb, wide)), dtype)))


def _softmax(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """Step by step, each rounded to the type, as ONNX's reference does it; the sum is exact."""
    if str(call.ty.dtype) not in _HALVES:
        return _stock(bb, call)
    x, axis = call.args[0], [int(call.attrs.axis)]

    def step(made: relax.Expr, legalize: Legalization = _stock) -> relax.Expr:
        return bb.emit(legalize(bb, bb.normalize(made)))

    most = step(relax.op.max(x, axis, keepdims=True), _extreme("max"))
    powers = step(relax.op.exp(step(relax.op.subtract(x, most))))
    total = step(relax.op.sum(powers, axis, keepdims=True), _in_float32)
    return _stock(bb, bb.normalize(relax.op.divide(powers, total)))


def _logical_not(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """A choice: of a comparison that is negated TVM makes the opposite one, which is as false of NaN."""
    if str(call.args[0].ty.dtype) != "bool":
        return _stock(bb, call)
    yes, no = tirx.const(True, "bool"), tirx.const(False, "bool")

    def compute(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *index: tirx.Select(x(*index), no, yes), name="logical_not")

    return bb.call_te(compute, call.args[0], primfunc_name_hint="logical_not")


def _with_zero(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """A product or a quotient of a scalar constant 0: TVM would take it for 0, or fail."""
    zeros = [isinstance(arg, Constant) and not arg.value.shape and not arg.value.numpy() for arg in call.args]
    dtype = str(call.ty.dtype)
    if not dtype.startswith("float") or sum(zeros) != 1:
        return _stock(bb, call)
    at = zeros.index(True)
    none, undefined = tirx.const(0.0, dtype), tirx.const(math.nan, dtype)
    infinite, least, largest = (
        tirx.const(n, dtype) for n in (math.copysign(math.inf, call.args[at].value.numpy()), -math.inf, math.inf)
    )

    def element(x: tirx.Expr) -> tirx.Expr:
        if call.op.name == "relax.multiply":
            return tirx.Select(tirx.all(x > least, x < largest), none, undefined)
        return x * infinite if at else tirx.Select(tirx.EQ(x, none), undefined, tirx.Select(equals_itself(x), none, x))

    def compute(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *index: element(x(*index)), name="with_zero")

    return bb.call_te(compute, call.args[1 - at], primfunc_name_hint="with_zero")


def _place_of_extreme(name: str) -> Legalization:
    """TVM begins with the farthest finite number, at no place: every number is to be nearer than that."""
    nearer = getattr(tirx, name)

    def legalize(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
        dtype = str(call.args[0].ty.dtype)
        if dtype not in ("float16", "float32", "float64"):
            return _stock(bb, call)
        ends = np.finfo(dtype)
        start = np.nextafter(ends.min if name == "max" else ends.max, ends.dtype.type(0))
        farthest, infinite = (tirx.const(float(n), dtype) for n in (start, _INFINITE[name]))

        def number(x: tirx.Expr) -> tirx.Expr:
            return tirx.Select(equals_itself(x), nearer(farthest, x), infinite)

        def numbers(x: te.Tensor) -> te.Tensor:
            return te.compute(x.shape, lambda *index: number(x(*index)), name="number")

        made = bb.emit(bb.call_te(numbers, call.args[0], primfunc_name_hint="number"))
        return _stock(bb, bb.normalize(Call(call.op, [made], call.attrs)))

    return legalize


def _extreme(name: str) -> Legalization:
    neutral = -_INFINITE[name]
    choose = getattr(tirx, name)
    reducer = te.comm_reducer(lambda a, b: choose(a, b), lambda dtype: tirx.const(neutral, dtype), name=name)

    def legalize(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
        if not str(call.args[0].ty.dtype).startswith("float"):
            return _stock(bb, call)
        rank, keeps = call.args[0].ty.ndim, bool(call.attrs.keepdims)
        given = range(rank) if call.attrs.axis is None else call.attrs.axis
        axes = sorted({int(axis) % rank for axis in given})

        def compute(x: te.Tensor) -> te.Tensor:
            along = {axis: te.reduce_axis((0, x.shape[axis]), name=f"k{axis}") for axis in axes}
            outer = [axis for axis in range(rank) if keeps or axis not in along]

            def element(*index: tirx.Var) -> object:
                place = dict(zip(outer, index, strict=True)) | along
                return reducer(x(*(place[axis] for axis in range(rank))), axis=list(along.values()))

            return te.compute([1 if axis in along else x.shape[axis] for axis in outer], element, name=f"x_red_{name}")

        return bb.call_te(compute, call.args[0], primfunc_name_hint=name)

    return legalize
