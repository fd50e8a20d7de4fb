"""Convolutions compute no more than what is read of them: a slice of the image takes away padding instead.

    conv1d(x, padding=(4, 4))[:, :, 0:49]    ->    conv1d(x, padding=(4, 3))

A kernel of an even number of taps that is padded to the same length (the positional convolution of wav2vec 2.0, Baevski
et al., NeurIPS 2020), and a causal one that is padded on both sides, are followed by such a slice. The kernels of
convolutions end with elementwise operators, not with slices.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import tvm
from tvm import relax, tirx
from tvm.ir import Call, Tuple

from ...bindings import (
    count_uses,
    drop_unused,
    dtype_of,
    is_call,
    rewrite_bindings,
    rewrite_functions,
    static_shape,
    typed,
)
from ...module_pass import module_pass

_CONVS: dict[str, Callable[..., relax.Expr]] = {
    "relax.nn.conv1d": relax.op.nn.conv1d,
    "relax.nn.conv2d": relax.op.nn.conv2d,
    "relax.nn.conv3d": relax.op.nn.conv3d,
}
_LAYOUTS = ("NCW", "NCHW", "NCDHW")


def CropConvolutions() -> tvm.transform.Pass:
    """Make the pass that takes the padding away whose results a slice drops.

    Between the convolution and the slice there may be the addition of a bias. What is added, and the convolution's
    results, must have no other reader.

    Returns
    -------
    tvm.transform.Pass
    """
    return _crop_convolutions


@module_pass("CropConvolutions")
def _crop_convolutions(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_functions(mod, _crop)


def _crop(func: relax.Function) -> relax.Function | None:
    uses = count_uses(func)
    values: dict[relax.Var, relax.Expr] = {}

    def crop(binding: relax.Binding, make: type[relax.Var]) -> list[relax.VarBinding] | None:
        values[binding.var] = call = binding.value
        before = _read_once(call, values, uses) if is_call(call, ("relax.strided_slice",)) else []
        first = _first(call, before) if before else None
        return None if first is None else _cropped(binding, before, first, make)

    cropped = rewrite_bindings(func, crop)
    return None if cropped is None else drop_unused(cropped)


def _read_once(call: Call, values: dict[relax.Var, relax.Expr], uses: Counter[relax.Var]) -> list[Call]:
    """The convolution, and the addition of a bias if there is one, that end in what a slice reads; else nothing."""
    found: list[Call] = []
    read = call.args[0]
    while isinstance(read, relax.Var) and uses[read] == 1 and len(found) < 2:
        value = values.get(read)
        if not isinstance(value, Call):
            return []
        if is_call(value, tuple(_CONVS)):
            return [value, *found] if value.attrs.data_layout in _LAYOUTS else []
        if found or not is_call(value, ("relax.add",)) or not _adds_bias(value):
            return []
        found, read = [value], value.args[0]
    return []


def _adds_bias(call: Call) -> bool:
    """Whether what an addition adds is the same all over the image."""
    image, bias = (static_shape(arg.ty) for arg in call.args)
    return (
        image is not None and bias is not None and image == static_shape(call.ty) and set(bias[2 - len(image) :]) <= {1}
    )


def _first(call: Call, before: Sequence[Call]) -> list[int] | None:
    """The first result along each of the image's axes that a slice keeps; None where it is no box of the image."""
    old, new = static_shape(before[0].ty), static_shape(call.ty)
    numbers = [n for arg in call.args[1:] if (n := _numbers(arg)) is not None]
    if old is None or new is None or old[:2] != new[:2] or len(numbers) != len(call.args) - 1:
        return None
    axes, begins, _, *strides = numbers
    if any(stride != 1 for given in strides for stride in given):
        return None
    first = [0] * len(old)
    for axis, begin in zip(axes, begins, strict=True):
        first[axis] = max(0, min(begin + old[axis] if begin < 0 else begin, old[axis] - new[axis]))
    return first[2:] if _padding(before[0], first[2:], new[2:]) is not None else None


def _numbers(expr: relax.Expr) -> list[int] | None:
    """The numbers of a tuple; None where it is anything else."""
    fields = list(expr.fields) if isinstance(expr, Tuple) else [expr]
    return [int(field) for field in fields] if all(isinstance(field, tirx.IntImm) for field in fields) else None


def _padding(conv: Call, first: Sequence[int], extents: Sequence[int]) -> list[int] | None:
    """The padding with which a convolution computes a box of its results; None where the image would be cropped."""
    image, kernel = (static_shape(arg.ty) for arg in conv.args)
    attrs = conv.attrs
    if image is None or kernel is None or 0 in extents:
        return None
    before, after = [], []
    for i, (at, extent) in enumerate(zip(first, extents, strict=True)):
        stride, taps = int(attrs.strides[i]), (kernel[2 + i] - 1) * int(attrs.dilation[i]) + 1
        before.append(int(attrs.padding[i]) - at * stride)
        after.append((extent - 1) * stride + taps - image[2 + i] - before[i])
    return [*before, *after] if min(before + after) >= 0 else None


def _cropped(
    binding: relax.VarBinding, before: Sequence[Call], first: Sequence[int], make: type[relax.Var]
) -> list[relax.VarBinding]:
    """The bindings that compute what the slice keeps."""
    conv, *added = before
    attrs, ty = conv.attrs, binding.var.ty
    shape = static_shape(ty)
    assert shape is not None
    kept = _CONVS[conv.op.name](
        *conv.args, strides=attrs.strides, padding=_padding(conv, first, shape[2:]), dilation=attrs.dilation,
        groups=attrs.groups, data_layout=attrs.data_layout, kernel_layout=attrs.kernel_layout,
        out_layout=attrs.out_layout, out_dtype=attrs.out_dtype,
    )  # fmt: skip
    whole = relax.TensorType(shape, dtype_of(conv.ty))
    if not added:
        return [relax.VarBinding(binding.var, typed(kept, whole))]
    var = make(f"{binding.var.name}_kept", whole)
    total = Call(added[0].op, [var, added[0].args[1]], added[0].attrs, ret_ty=ty)
    return [relax.VarBinding(var, typed(kept, whole)), relax.VarBinding(binding.var, total)]
