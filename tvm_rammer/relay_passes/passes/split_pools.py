"""Pools in three dimensions, as one over planes and one over depth."""

import math
from collections.abc import Callable
from functools import partial

import tvm
from tvm import relax
from tvm.ir import Call

from ..bindings import dtype_of, is_call, rewrite_bindings, rewrite_functions, static_shape, typed
from ..module_pass import module_pass

_FLAT: dict[str, Callable[..., relax.Expr]] = {
    "relax.nn.max_pool3d": relax.op.nn.max_pool2d,
    "relax.nn.avg_pool3d": relax.op.nn.avg_pool2d,
}
_DTYPES = ("float32", "float64")
"""Averages of averages are rounded twice, which shows in narrower types."""


def SplitPools() -> tvm.transform.Pass:
    """Make the pass that splits pools in three dimensions, for a CPU.

    A largest number is the largest of those of the planes, and a mean, with padding or without, that of their means,
    since the elements that a window has are a product over the axes. Each part is a pool over images, whose kernels
    work in vectors; the reshapes between them are views. Windows along one axis, or in one plane, stay as they are.

    Returns
    -------
    tvm.transform.Pass
    """

    @module_pass("SplitPools")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_functions(mod, partial(rewrite_bindings, rewrite=_split))

    return run


def _split(binding: relax.Binding, make: type[relax.Var]) -> list[relax.Binding] | None:
    call = binding.value
    if not isinstance(binding, relax.VarBinding) or not is_call(call, _FLAT):
        return None
    shape, out, dtype = static_shape(call.args[0].ty), static_shape(call.ty), dtype_of(call.ty)
    attrs = call.attrs
    plain = attrs.layout == attrs.out_layout == "NCDHW" and dtype in _DTYPES
    if shape is None or out is None or not plain or not _is_split(attrs):
        return None
    batch, channels, depth, rows, columns = shape
    made: list[relax.Binding] = []

    def bind(name: str, value: relax.Expr, *dims: int) -> relax.Var:
        var = make(f"{binding.var.name}_{name}", relax.TensorType(dims, dtype))
        made.append(relax.VarBinding(var, typed(value, var.ty)))
        return var

    def reshape(name: str, value: relax.Expr, *dims: int) -> relax.Var:
        return bind(name, relax.op.reshape(value, dims), *dims)

    image = reshape("planes", call.args[0], batch, channels * depth, rows, columns)
    flat = bind("of_planes", _pool(call, image, slice(1, 3)), batch, channels * depth, *out[3:])
    lines = reshape("lines", flat, batch, channels, depth, math.prod(out[3:]))
    deep = bind("of_depth", _pool(call, lines, slice(0, 1)), *out[:3], math.prod(out[3:]))
    return [*made, relax.VarBinding(binding.var, typed(relax.op.reshape(deep, out), call.ty))]


def _is_split(attrs: object) -> bool:
    """Whether windows reach along the depth, and along another axis, too."""
    deep, *plane = [int(size) for size in attrs.pool_size]  # type: ignore[attr-defined]
    return deep > 1 and math.prod(plane) > 1


def _pool(call: Call, data: relax.Expr, axes: slice) -> relax.Expr:
    """The same pool along some of the three axes, which become the first of two."""
    attrs, missing = call.attrs, 2 - len(range(*axes.indices(3)))
    ones, zeros = [1] * missing, [0] * missing

    def sizes(values: object, others: list[int]) -> list[int]:
        return [*(int(n) for n in list(values)[axes]), *others]  # type: ignore[call-overload]

    padding = list(attrs.padding)
    return _FLAT[call.op.name](
        data,
        pool_size=sizes(attrs.pool_size, ones),
        strides=sizes(attrs.strides, ones),
        padding=[*sizes(padding[:3], zeros), *sizes(padding[3:], zeros)],
        dilation=sizes(attrs.dilation, ones),
        ceil_mode=bool(attrs.ceil_mode),
        count_include_pad=bool(attrs.count_include_pad),
    )
