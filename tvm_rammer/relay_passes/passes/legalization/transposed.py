"""Transposed convolutions: of weights that may be infinite or NaN, of which none meets a zero that is no pixel, and of
volumes.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from tvm import relax, te, tirx
from tvm.ir import Call, Constant

from ...bindings import static_shape
from ..products.widen_halves import HALVES
from .phases import by_phases
from .stock import Legalization, stock

_LAYOUTS = {"NCW": "IOW", "NCHW": "IOHW", "NCDHW": "IODHW"}


def transposed_convolutions(cpu: bool) -> dict[str, Legalization]:
    """Legalizations of transposed convolutions by the operator's name.

    TVM puts zeros between and around the pixels. That is as quick as a convolution, and exact while weights are finite.
    Where nobody knows that they are, each pixel is multiplied with each tap, and what falls on one place is added up.

    Parameters
    ----------
    cpu : bool
        Whether kernels are those of a CPU: these find the phases of images by themselves, not those of volumes.
    """
    return {f"relax.nn.conv{n}d_transpose": partial(_legalize, cpu) for n in (1, 2, 3)}


def _legalize(cpu: bool, bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    data, weight = (static_shape(arg.ty) for arg in call.args)
    plain = _LAYOUTS.get(call.attrs.data_layout) == call.attrs.kernel_layout
    finite = _finite(call.args[1])
    if cpu and plain and finite and (made := by_phases(bb, call)) is not None:
        return made
    if data is None or weight is None or not plain or finite:
        return stock(bb, call)
    (images, channels, *sizes), (_, filters, *taps) = data, weight
    groups, dtype = int(call.attrs.groups), str(call.ty.dtype)
    wide = "float32" if dtype in HALVES else dtype

    def step(made: relax.Expr) -> relax.Expr:
        return bb.emit(stock(bb, bb.normalize(made)))

    inner = channels // groups
    pixels = step(relax.op.reshape(call.args[0], [images, groups, inner, math.prod(sizes)]))
    matrix = step(relax.op.reshape(call.args[1], [groups, inner, filters * math.prod(taps)]))
    matrix = step(relax.op.permute_dims(matrix, [0, 2, 1]))
    products = step(relax.op.matmul(matrix, pixels, out_dtype=wide))
    products = step(relax.op.reshape(products, [images, groups * filters, *taps, *sizes]))
    made = bb.call_te(_added_up(call), products, primfunc_name_hint=call.op.name.removeprefix("relax.nn."))
    return made if wide == dtype else stock(bb, bb.normalize(relax.op.astype(bb.emit(made), dtype)))


def _added_up(call: Call) -> Callable[[te.Tensor], te.Tensor]:
    """The products of pixels and taps [images, filters, taps, pixels], each added to the place on which it falls."""
    strides, dilations, padding = (
        [int(n) for n in sizes] for sizes in (call.attrs.strides, call.attrs.dilation, call.attrs.padding)
    )
    shape, spatial = call.ty.shape.values, len(strides)

    def place_sums(products: te.Tensor) -> te.Tensor:
        taps, sizes = products.shape[2 : 2 + spatial], products.shape[2 + spatial :]
        # Of a window without gaps every stride-th tap alone meets a pixel; no other is looked at.
        steps = [s if d == 1 else 1 for s, d in zip(strides, dilations, strict=True)]
        counts = [-(-int(n) // step) for n, step in zip(taps, steps, strict=True)]
        met = [te.reduce_axis((0, n), f"tap{a}") for a, n in enumerate(counts)]

        def element(image: tirx.Var, made: tirx.Var, *at: tirx.Var) -> tirx.Expr:
            inside, tap, pixel = [], [], []
            for a, y in enumerate(at):
                shifted, stride = y + padding[a], strides[a]
                tap.append(tirx.floormod(shifted, steps[a]) + met[a] * steps[a])
                reached = shifted - tap[-1] * dilations[a]
                pixel.append(tirx.floordiv(reached, stride))
                inside += [pixel[-1] >= 0, pixel[-1] < sizes[a]]
                inside += [tap[-1] < taps[a]] if taps[a] % steps[a] else []
                inside += [tirx.floormod(reached, stride) == 0] if stride > steps[a] else []
            product, none = products(image, made, *tap, *pixel), tirx.const(0, products.dtype)
            return te.sum(tirx.if_then_else(tirx.all(*inside), product, none), axis=met)

        return te.compute(shape, element, name="place_sums")

    return place_sums


def _finite(weight: relax.Expr) -> bool:
    return isinstance(weight, Constant) and bool(np.isfinite(weight.value.numpy()).all())
