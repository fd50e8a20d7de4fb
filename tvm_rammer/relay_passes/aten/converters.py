"""Operators of ATen that TVM's frontend lacks, or whose converters pass over an argument or compute in another type."""

import math
from collections.abc import Mapping
from typing import Any

from tvm import relax

from .emitter import Convert, Emitter, dtype_by_torch
from .places import Places


def own_converters(importer: Any, known: Mapping[str, Convert]) -> dict[str, Convert]:
    """The converters, each by the name of an operator and its overload.

    Parameters
    ----------
    importer : BaseFXGraphImporter
        Has the values of earlier nodes (`env`) and the `block_builder`.
    known : mapping of str to callable
        TVM's converters.
    """
    emit, places = _Arithmetic(importer), Places(importer)
    found: dict[str, Convert] = {}
    for name, op in _ARITHMETIC.items():
        for overload in ("Tensor", "Scalar"):
            found[f"{name}.{overload}"] = emit.binary(op, divides=name == "div", truth=_TRUTHS.get(name))
    for name, op in _COMPARISONS.items():
        for overload in ("Tensor", "Scalar"):
            found[f"{name}.{overload}"] = emit.binary(op, compares=True)
    for name in ("mm.default", "bmm.default", "matmul.default"):
        found[name] = emit.product
    for name in ("addmm.default", "baddbmm.default"):
        found[name] = emit.sum_and_product
    found["div.Tensor_mode"] = emit.rounded_quotient
    found["where.self"] = emit.where
    found["min.dim"] = emit.minimum
    for name in _OF_FLOATS & known.keys():
        found[name] = emit.of_floats(known[name])
    for name in ("avg_pool2d.default", "avg_pool3d.default"):
        found[name] = emit.average(known[name])
    for name in _FIRST_RESULTS & known.keys():
        found[name] = _first_result(known[name])
    found["clamp.default"] = emit.clamp
    found["any.default"] = emit.any
    found["select.int"] = emit.select
    found["cat.default"] = emit.cat
    found["cumsum.default"] = emit.cumsum
    found["index.Tensor"] = places.index(known["index.Tensor"])
    found["index_put.default"] = places.index_put(known["index_put.default"])
    for name, op in _REDUCTIONS.items():
        found[name] = emit.reduction(op)
    for name in ("arange.default", "arange.start", "arange.start_step"):
        found[name] = places.arange(known[name])
    found["grid_sampler_2d.default"] = places.grid_sampler
    found["unfold.default"] = places.unfold
    found["scatter_reduce.two"] = places.scatter_reduce
    return found


_OF_FLOATS = {
    f"{name}.default"
    for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "expm1", "log", "log10",
        "log1p", "log2", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
    )
}  # fmt: skip
"""Functions of which PyTorch takes integers for numbers of its default type."""
_FIRST_RESULTS = {
    "_native_batch_norm_legit_no_training.default", "max_pool2d_with_indices.default",
    "max_pool3d_with_indices.default", "native_group_norm.default", "native_layer_norm.default",
}  # fmt: skip
"""Operators of several results, for all of which TVM's frontend puts the first one."""
_REDUCTIONS = {"amax.default": relax.op.max, "amin.default": relax.op.min}
_ARITHMETIC = {"add": relax.op.add, "sub": relax.op.subtract, "mul": relax.op.multiply, "div": relax.op.divide}
_TRUTHS = {"add": relax.op.logical_or, "mul": relax.op.logical_and}
"""What arithmetic of truth values is."""
_COMPARISONS = {
    "eq": relax.op.equal,
    "ne": relax.op.not_equal,
    "lt": relax.op.less,
    "le": relax.op.less_equal,
    "gt": relax.op.greater,
    "ge": relax.op.greater_equal,
}


class _Arithmetic(Emitter):
    """The converters of one import."""

    def binary(
        self, op: Any, *, divides: bool = False, compares: bool = False, rounds: str | None = None, truth: Any = None
    ) -> Convert:
        """Arithmetic in the type that PyTorch's promotion rules give, with the factor `alpha` of the second operand.

        Of truth values it is `truth`.
        """

        def convert(node: Any) -> relax.Expr:
            import torch

            if (mode := node.kwargs.get("rounding_mode")) != rounds:
                raise ValueError(f"the rounding mode {mode!r}")
            lhs, rhs = (_example(arg) for arg in node.args[:2])
            promoted = torch.result_type(lhs, rhs)
            if divides and not promoted.is_floating_point:
                promoted = torch.get_default_dtype()
            dtype = str(promoted).removeprefix("torch.")
            left, right = (self._operand(arg, dtype) for arg in node.args[:2])
            alpha = node.kwargs.get("alpha", 1)
            if alpha != 1:
                right = self.emit(relax.op.multiply(right, relax.const(alpha, dtype)))
            if dtype == "bool" and not compares:
                if truth is None or alpha != 1:
                    raise ValueError("arithmetic of truth values")
                return self.emit(truth(left, right))
            return self.emit(op(left, right))

        return convert

    def rounded_quotient(self, node: Any) -> relax.Expr:
        """A quotient that is rounded down, or towards zero."""
        if (mode := node.kwargs.get("rounding_mode")) != "trunc":
            return self.binary(relax.op.floor_divide, rounds=mode)(node)
        dtype = dtype_by_torch(node)
        left, right = (self._operand(arg, dtype) for arg in node.args[:2])
        if "float" in dtype:
            return self.emit(relax.op.trunc(self.emit(relax.op.divide(left, right))))
        zero = relax.const(0, dtype)
        size = self.emit(relax.op.floor_divide(relax.op.abs(left), relax.op.abs(right)))
        turned = self.emit(relax.op.logical_xor(relax.op.less(left, zero), relax.op.less(right, zero)))
        return self.emit(relax.op.where(turned, relax.op.negative(size), size))

    def where(self, node: Any) -> relax.Expr:
        """One of two values, in the type that both have room in."""
        dtype = dtype_by_torch(node)
        return self.emit(relax.op.where(self.value(node.args[0]), *(self._operand(a, dtype) for a in node.args[1:])))

    def minimum(self, node: Any) -> relax.Expr:
        """The least elements along an axis, and where they are."""
        axis, keep = node.args[1], node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
        value = self.value(node.args[0])
        places = self.emit(relax.op.argmin(value, axis, keep))
        return self.emit(relax.Tuple([self.emit(relax.op.min(value, axis, keep)), relax.op.astype(places, "int64")]))

    def of_floats(self, convert: Convert) -> Convert:
        """TVM's converter, of integers as floating-point numbers."""

        def converted(node: Any) -> relax.Expr:
            import torch

            source = node.args[0]
            if "float" in str(self.value(source).ty.dtype):
                return convert(node)
            dtype = str(torch.get_default_dtype()).removeprefix("torch.")
            with self.given({source: self._operand(source, dtype)}):
                return convert(node)

        return converted

    def average(self, convert: Convert) -> Convert:
        """TVM's converter of a pool, which passes over a divisor other than the window's elements."""

        def converted(node: Any) -> relax.Expr:
            missing: list[Any] = [None, None, [], 0, False, True, None]
            ceil, padded, divisor = [*node.args, *missing[len(node.args) :]][4:]
            if divisor is None:
                return convert(node)
            if ceil or not padded:
                raise ValueError("a divisor of windows that differ")
            mean = convert(node)
            dtype = str(mean.ty.dtype)
            if "float" not in dtype:
                raise ValueError("the mean of integers")
            rank = int(node.target.__name__.split("pool")[1][0])
            size = [int(n) for n in node.args[1]] * rank
            return self.emit(relax.op.multiply(mean, relax.const(math.prod(size[:rank]) / divisor, dtype)))

        return converted

    def select(self, node: Any) -> relax.Expr:
        """One slice along an axis; negative numbers count from the end."""
        value, axis, place = self.value(node.args[0]), node.args[1], node.args[2]
        axis %= value.ty.ndim
        place %= int(value.ty.shape[axis])
        part = self.emit(relax.op.strided_slice(value, [axis], [place], [place + 1], assume_inbound=True))
        return self.emit(relax.op.squeeze(part, [axis]))

    def cat(self, node: Any) -> relax.Expr:
        """Arrays put together along an axis; of one without elements PyTorch does not ask for the others' shape."""
        axis = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        dtype = dtype_by_torch(node)
        parts = [self._operand(arg, dtype) for arg in node.args[0] if tuple(_example(arg).shape) != (0,)]
        return parts[0] if len(parts) == 1 else self.emit(relax.op.concat(parts, axis))

    def cumsum(self, node: Any) -> relax.Expr:
        """Sums along an axis, of integers in 64 bits."""
        dtype = dtype_by_torch(node)
        axis = node.args[1] if len(node.args) > 1 else node.kwargs["dim"]
        value = self._operand(node.args[0], dtype)
        return self.emit(relax.op.cumsum(value, axis, dtype)) if value.ty.ndim else value

    def reduction(self, op: Any) -> Convert:
        """A reduction over a list of axes; all of them where there are none."""

        def convert(node: Any) -> relax.Expr:
            axes = list(node.args[1]) if len(node.args) > 1 else node.kwargs.get("dim", [])
            keep = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
            return self.emit(op(self.value(node.args[0]), axes or None, keep))

        return convert

    def clamp(self, node: Any) -> relax.Expr:
        """Between two numbers, of which one may be missing."""
        low, high = (*node.args[1:], None, None)[:2]
        low, high = node.kwargs.get("min", low), node.kwargs.get("max", high)
        dtype = dtype_by_torch(node)
        value = self._operand(node.args[0], dtype)
        if low is not None:
            value = self.emit(relax.op.maximum(value, relax.const(low, dtype)))
        return value if high is None else self.emit(relax.op.minimum(value, relax.const(high, dtype)))

    def any(self, node: Any) -> relax.Expr:
        """Whether an element is not zero."""
        value = self.emit(relax.op.astype(self.value(node.args[0]), "bool"))
        count = self.emit(relax.op.max(self.emit(relax.op.astype(value, "int32"))))
        return self.emit(relax.op.astype(count, "bool"))

    def product(self, node: Any) -> relax.Expr:
        """Matrix products, in the type of the operands."""
        return self.emit(relax.op.matmul(self.value(node.args[0]), self.value(node.args[1])))

    def sum_and_product(self, node: Any) -> relax.Expr:
        """`beta * c + alpha * (a @ b)`."""
        addend, a, b = (self.value(arg) for arg in node.args[:3])
        result = self._scaled(self.emit(relax.op.matmul(a, b)), node.kwargs.get("alpha", 1))
        beta = node.kwargs.get("beta", 1)
        if beta == 0:  # then NaN of `c` is not to be seen
            return result
        return self.emit(relax.op.add(result, self._scaled(addend, beta)))

    def _scaled(self, value: relax.Expr, factor: float) -> relax.Expr:
        if factor == 1:
            return value
        return self.emit(relax.op.multiply(value, relax.const(factor, str(value.ty.dtype))))

    def _operand(self, arg: Any, dtype: str) -> relax.Expr:
        value = self.value(arg)
        if not isinstance(value, relax.Expr):
            return relax.const(value, dtype)
        return value if str(value.ty.dtype) == dtype else self.emit(relax.op.astype(value, dtype))


def _first_result(convert: Convert) -> Convert:
    """TVM's converter of an operator of whose results nobody may read others than the first."""

    def converted(node: Any) -> relax.Expr:
        others = [user for user in node.users if user.args[1:] != (0,) and user.users]
        if others:
            raise ValueError("results beside the first one")
        return convert(node)

    return converted


def _example(arg: Any) -> Any:
    """What PyTorch knows of an argument: a tensor without data, or a number."""
    return arg.meta["val"] if hasattr(arg, "meta") else arg
