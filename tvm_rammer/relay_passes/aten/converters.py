"""Operators of ATen that TVM's frontend lacks, or whose converters pass over an argument or compute in another type."""

from collections.abc import Mapping
from typing import Any

from tvm import relax

from .emitter import Convert, Emitter
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
    found["div.Tensor_mode"] = emit.binary(relax.op.floor_divide, rounds="floor")
    found["clamp.default"] = emit.clamp
    found["any.default"] = emit.any
    found["select.int"] = emit.select
    found["cat.default"] = emit.cat
    found["cumsum.default"] = emit.cumsum
    found["index.Tensor"] = places.index(known["index.Tensor"])
    found["index_put.default"] = places.indexed(known["index_put.default"])
    for name, op in _REDUCTIONS.items():
        found[name] = emit.reduction(op)
    for name in ("arange.default", "arange.start", "arange.start_step"):
        found[name] = places.arange(known[name])
    found["grid_sampler_2d.default"] = places.grid_sampler
    found["unfold.default"] = places.unfold
    found["scatter_reduce.two"] = places.scatter_reduce
    return found


_REDUCTIONS = {"amax.default": relax.op.max, "amin.default": relax.op.min}
_ARITHMETIC = {"add": relax.op.add, "sub": relax.op.subtract, "mul": relax.op.multiply, "div": relax.op.divide}
_COMPARISONS = {
    "eq": relax.op.equal,
    "ne": relax.op.not_equal,
    "lt": relax.op.less,
    "le": relax.op.less_equal,
    "gt": relax.op.greater,
    "ge": relax.op.greater_equal,
}


_TRUTHS = {"add": relax.op.logical_or, "mul": relax.op.logical_and}
"""What arithmetic of truth values is."""


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
        dtype = str(node.meta["val"].dtype).removeprefix("torch.")
        parts = [self._operand(arg, dtype) for arg in node.args[0] if tuple(_example(arg).shape) != (0,)]
        return parts[0] if len(parts) == 1 else self.emit(relax.op.concat(parts, axis))

    def cumsum(self, node: Any) -> relax.Expr:
        """Sums along an axis, of integers in 64 bits."""
        dtype = str(node.meta["val"].dtype).removeprefix("torch.")
        axis = node.args[1] if len(node.args) > 1 else node.kwargs["dim"]
        return self.emit(relax.op.cumsum(self._operand(node.args[0], dtype), axis, dtype))

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
        dtype = str(node.meta["val"].dtype).removeprefix("torch.")
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


def _example(arg: Any) -> Any:
    """What PyTorch knows of an argument: a tensor without data, or a number."""
    return arg.meta["val"] if hasattr(arg, "meta") else arg
