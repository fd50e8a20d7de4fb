"""Fold batch normalisation: into the convolution before it, or else into one multiply and one add."""

from collections import Counter

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, Op, TupleGetItem

from ..bindings import (
    body_blocks,
    count_uses,
    drop_unused,
    dtype_of,
    is_call,
    is_const,
    rebuild,
    rewrite_functions,
    static_shape,
)
from ..module_pass import module_pass

_FLOATS = ("float16", "float32", "float64")
_CONVS = frozenset(
    f"relax.nn.conv{rank}d{transpose}" for rank in (1, 2, 3) for transpose in ("", "_transpose")
)  # fmt: skip


def FoldBatchNorm() -> tvm.transform.Pass:
    """Make the pass that folds inference batch normalisation whose statistics are constants.

    `conv -> batch_norm` becomes a convolution with scaled weights and an add; in `conv -> add(bias) -> batch_norm`
    the bias changes too. Any other becomes one multiply and one add. Factors are computed in float64. One that
    trains, or whose folded weights would not be finite, stays.

    Returns
    -------
    tvm.transform.Pass
    """

    @module_pass("FoldBatchNorm")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_functions(mod, lambda func: _Folder(func).run())

    return run


class _Folder:
    """Folds within one function. `values` holds what each Var is bound to by now."""

    def __init__(self, func: relax.Function) -> None:
        self.func = func
        self.uses: Counter[relax.Var] = Counter()
        self.items: Counter[relax.Var] = Counter()
        self.firsts: Counter[relax.Var] = Counter()
        self.values: dict[relax.Var, relax.Expr] = {}
        self.before: dict[relax.Var, list[relax.VarBinding]] = {}

    def run(self) -> relax.Function | None:
        """Return the new function, or None where nothing is to be folded."""
        blocks = body_blocks(self.func)
        bindings = [binding for block in blocks for binding in block.bindings]
        if not any(is_call(binding.value, ("relax.nn.batch_norm",)) for binding in bindings):
            return None
        self.uses = count_uses(self.func)
        items = [binding.value for binding in bindings if isinstance(binding.value, TupleGetItem)]
        self.items = Counter(item.tuple_value for item in items)
        self.firsts = Counter(item.tuple_value for item in items if item.index == 0)
        for block in blocks:
            for binding in block.bindings:
                self.values[binding.var] = binding.value
                if isinstance(binding, relax.VarBinding) and isinstance(binding.value, TupleGetItem):
                    self._fold(binding, isinstance(block, relax.DataflowBlock))
        if all(self.values[binding.var].same_as(binding.value) for binding in bindings):
            return None
        func = rebuild(self.func, [(isinstance(b, relax.DataflowBlock), self._emit(b)) for b in blocks])
        return drop_unused(func)

    def _emit(self, block: relax.BindingBlock) -> list[relax.Binding]:
        made: list[relax.Binding] = []
        for binding in block.bindings:
            made.extend(self.before.get(binding.var, ()))
            value = self.values[binding.var]
            made.append(binding if value.same_as(binding.value) else relax.VarBinding(binding.var, value))
        return made

    def _fold(self, item: relax.VarBinding, dataflow: bool) -> None:
        norm = self.values.get(item.value.tuple_value)
        if norm is None or not is_call(norm, ("relax.nn.batch_norm",)) or norm.attrs.training:
            return
        data, *statistics = norm.args
        shape = static_shape(data.ty)
        if shape is None or dtype_of(data.ty) not in _FLOATS or not all(is_const(s) for s in statistics):
            return
        if item.value.index > 0:  # outside of training the statistics come out as they went in
            self.values[item.var] = statistics[item.value.index + 1]
            return
        axis = int(norm.attrs.axis) % len(shape)
        scale, shift = _scale_and_shift(norm, statistics)
        tuple_var = item.value.tuple_value
        only_use = self.firsts[tuple_var] == 1 and self.uses[tuple_var] == self.items[tuple_var]
        if not only_use or not self._into_conv(item, data, axis, scale, shift):
            self._to_multiply_add(item, data, axis, scale, shift, dataflow)

    def _into_conv(
        self, item: relax.VarBinding, data: relax.Expr, axis: int, scale: np.ndarray, shift: np.ndarray
    ) -> bool:
        """Scale the convolution that makes `data`; False where there is none, or others use it too."""
        conv, bias = data, None
        value = self.values.get(data) if isinstance(data, relax.Var) else None
        if value is not None and self.uses[data] == 1 and is_call(value, ("relax.add",)):
            left, right = value.args
            conv, bias = (left, right) if is_const(right) else (right, left)
            value = self.values.get(conv) if isinstance(conv, relax.Var) and is_const(bias) else None
        if value is None or self.uses[conv] != 1 or not is_call(value, _CONVS):
            return False
        offset = _bias_per_channel(bias, len(static_shape(data.ty) or ()), axis, len(scale))
        weights = _scaled_weights(value, axis, scale)
        added = None if offset is None else _constant(offset * scale + shift, data, axis)
        if weights is None or added is None:
            return False
        source, _ = value.args
        self.values[conv] = Call(value.op, [source, weights], value.attrs, value.ty_args, ret_ty=value.ty)
        self.values[item.var] = _call("relax.add", conv, added, item.var)
        return True

    def _to_multiply_add(
        self, item: relax.VarBinding, data: relax.Expr, axis: int, scale: np.ndarray, shift: np.ndarray, dataflow: bool
    ) -> None:
        factor, added = _constant(scale, data, axis), _constant(shift, data, axis)
        if factor is None or added is None:
            return
        make = relax.DataflowVar if dataflow else relax.Var
        scaled = make(f"{item.var.name}_scaled", data.ty)
        self.before[item.var] = [relax.VarBinding(scaled, _call("relax.multiply", data, factor, item.var))]
        self.values[item.var] = _call("relax.add", scaled, added, item.var)
        self.values[scaled] = self.before[item.var][0].value
        self.uses[scaled] = 1


def _call(name: str, left: relax.Expr, right: relax.Expr, like: relax.Var) -> Call:
    return Call(Op.get(name), [left, right], ret_ty=like.ty)


def _scale_and_shift(norm: Call, statistics: list[relax.Expr]) -> tuple[np.ndarray, np.ndarray]:
    """The factor and the summand of each channel, in float64."""
    gamma, beta, mean, variance = (s.value.numpy().astype("float64") for s in statistics)
    with np.errstate(all="ignore"):
        scale = (gamma if norm.attrs.scale else 1.0) / np.sqrt(variance + float(norm.attrs.epsilon))
        return scale, (beta if norm.attrs.center else 0.0) - mean * scale


def _constant(values: np.ndarray, data: relax.Expr, axis: int) -> relax.Expr | None:
    """One value a channel as a constant that broadcasts to `data`; None where its data type cannot hold them."""
    shape = [len(values)] + [1] * (len(static_shape(data.ty) or ()) - axis - 1)
    return _finite(values.reshape(shape), dtype_of(data.ty))


def _finite(values: np.ndarray, dtype: str) -> relax.Expr | None:
    with np.errstate(all="ignore"):
        cast = values.astype(dtype)
    return relax.const(cast, dtype) if np.isfinite(cast).all() else None


def _bias_per_channel(bias: relax.Expr | None, rank: int, axis: int, channels: int) -> np.ndarray | None:
    """A bias as one float64 a channel; None where it differs within a channel."""
    if bias is None:
        return np.zeros(channels)
    values = bias.value.numpy()
    if values.ndim > rank:
        return None
    shape = (1,) * (rank - values.ndim) + values.shape
    if any(size != 1 for i, size in enumerate(shape) if i != axis) or shape[axis] not in (1, channels):
        return None
    return np.broadcast_to(values.reshape(-1).astype("float64"), (channels,))


def _scaled_weights(conv: Call, axis: int, scale: np.ndarray) -> relax.Expr | None:
    weights, attrs = conv.args[1], conv.attrs
    layout = str(attrs.out_layout or attrs.data_layout)
    if not is_const(weights) or not layout.isalpha() or layout.find("C") != axis:
        return None
    if "transpose" in conv.op.name and int(attrs.groups) != 1:
        return None  # the channels of a group lie in two dimensions of such weights
    values = weights.value.numpy()
    channel_axis = str(attrs.kernel_layout).find("O")
    if dtype_of(weights.ty) not in _FLOATS or channel_axis < 0 or values.ndim != len(str(attrs.kernel_layout)):
        return None
    if values.shape[channel_axis] != len(scale):
        return None
    shape = [1] * values.ndim
    shape[channel_axis] = len(scale)
    return _finite(values.astype("float64") * scale.reshape(shape), dtype_of(weights.ty))
