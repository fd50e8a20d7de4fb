"""Operators of ATen that are about places in arrays: numbers in a row, windows, sums by index, samples of an image."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import relax

from .emitter import Convert, Emitter

_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
"""What TVM calls them. A mean is a sum and a count."""
_SAMPLES, _OUTSIDE = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
"""What PyTorch numbers."""


class Places(Emitter):
    """Converters of such operators."""

    def arange(self, convert: Convert) -> Convert:
        """Numbers in a row as a constant, where all of its ends are known: TVM's has others where they fall."""

        def converted(node: Any) -> relax.Expr:
            import torch

            if any(hasattr(arg, "meta") for arg in (*node.args, *node.kwargs.values())):
                return convert(node)
            values = torch.arange(*node.args, dtype=node.meta["val"].dtype)
            return relax.const(values.numpy(), str(values.numpy().dtype))

        return converted

    def indexed(self, convert: Convert) -> Convert:
        """TVM's converter, told of indices that count from the start only."""

        def converted(node: Any) -> relax.Expr:
            shape = self.value(node.args[0]).ty.shape
            indices = {axis: index for axis, index in enumerate(node.args[1]) if index is not None}
            moved = {
                index: self.from_the_start(self.value(index), int(shape[axis]))
                for axis, index in indices.items()
                if str(self.value(index).ty.dtype) != "bool"
            }
            with self.given(moved):
                return convert(node)

        return converted

    def index_put(self, convert: Convert) -> Convert:
        """Elements that are put where indices of some axes say; TVM takes indices of all axes only."""

        def converted(node: Any) -> relax.Expr:
            data, given = self.value(node.args[0]), self._indices(node)
            if len(given) == data.ty.ndim or any(str(index.ty.dtype) == "bool" for index in given.values()):
                return convert(node)
            common, places = self._places(given)
            axes, order = self._order(data, given, common)
            shape = [*common, *(int(data.ty.shape[axis]) for axis in axes[len(given) :])]
            values = relax.op.broadcast_to(self.value(node.args[2]), [shape[axis] for axis in order])
            updates = relax.op.permute_dims(self.emit(values), np.argsort(order).tolist())
            accumulates = len(node.args) > 3 and node.args[3]
            put = relax.op.scatter_nd(
                self.emit(relax.op.permute_dims(data, axes)), places, self.emit(updates),
                "add" if accumulates else "update",
            )  # fmt: skip
            return self.emit(relax.op.permute_dims(self.emit(put), np.argsort(axes).tolist()))

        return self.indexed(converted)

    def index(self, convert: Convert) -> Convert:
        """Elements by several indices, axes between which are whole; TVM takes each index by itself there."""

        def converted(node: Any) -> relax.Expr:
            given = self._indices(node)
            whole = len(given) == len(node.args[1])
            if len(given) < 2 or whole or any(str(index.ty.dtype) == "bool" for index in given.values()):
                return convert(node)
            return self._chosen(self.value(node.args[0]), given)

        return self.indexed(converted)

    def _chosen(self, data: relax.Expr, given: Mapping[int, relax.Expr]) -> relax.Expr:
        """Elements of an array by indices of some of its axes, which broadcast."""
        common, places = self._places(given)
        axes, order = self._order(data, given, common)
        chosen = self.emit(relax.op.gather_nd(self.emit(relax.op.permute_dims(data, axes)), places))
        return self.emit(relax.op.permute_dims(chosen, order))

    def _indices(self, node: Any) -> dict[int, relax.Expr]:
        """The indices of a node, by their axes."""
        return {axis: self.value(index) for axis, index in enumerate(node.args[1]) if index is not None}

    def _places(self, given: Mapping[int, relax.Expr]) -> tuple[tuple[int, ...], relax.Expr]:
        """The shape that indices broadcast to, and all of them side by side along a further axis."""
        common = np.broadcast_shapes(*(tuple(int(n) for n in index.ty.shape) for index in given.values()))
        columns = [relax.op.broadcast_to(relax.op.astype(index, "int64"), common) for index in given.values()]
        places = relax.op.concat([relax.op.expand_dims(c, [len(common)]) for c in columns], len(common))
        return common, self.emit(places)

    def _order(
        self, data: relax.Expr, given: Mapping[int, relax.Expr], common: tuple[int, ...]
    ) -> tuple[list[int], list[int]]:
        """The axes of an array, those with an index first; and how PyTorch orders those of what is chosen so."""
        axes = list(given)
        rest = [axis for axis in range(data.ty.ndim) if axis not in given]
        before = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
        first, count = len(common), len(common) + len(rest)
        return [*axes, *rest], [*range(first, first + before), *range(first), *range(first + before, count)]

    def unfold(self, node: Any) -> relax.Expr:
        """All windows of an axis, in its place, and the elements of a window as the last axis."""
        value = self.value(node.args[0])
        axis, size, step = node.args[1:]
        shape = [int(n) for n in value.ty.shape]
        axis %= len(shape)
        places = np.add.outer(np.arange(0, shape[axis] - size + 1, step), np.arange(size))
        taken = self.emit(relax.op.take(value, relax.const(places.reshape(-1), "int64"), axis))
        windows = self.emit(relax.op.reshape(taken, (*shape[:axis], *places.shape, *shape[axis + 1 :])))
        order = [i for i in range(len(shape) + 1) if i != axis + 1]
        return self.emit(relax.op.permute_dims(windows, [*order, axis + 1]))

    def grid_sampler(self, node: Any) -> relax.Expr:
        """Samples of images at the places of a grid, whose last axis has x and y; TVM has them in the second one."""
        image, grid, method, outside, align_corners = (self.value(arg) for arg in node.args)
        grid = self.emit(relax.op.permute_dims(grid, [0, 3, 1, 2]))
        return self.emit(
            relax.op.image.grid_sample(
                image, grid, method=_SAMPLES[method], layout="NCHW", padding_mode=_OUTSIDE[outside],
                align_corners=align_corners,
            )
        )  # fmt: skip

    def scatter_reduce(self, node: Any) -> relax.Expr:
        """Elements joined with those at the places that an index gives, with or without what was there before."""
        data, axis, index, source, name = (self.value(arg) for arg in node.args[:5])
        with_old = node.kwargs.get("include_self", node.args[5] if len(node.args) > 5 else True)
        shape, dtype = [int(n) for n in index.ty.shape], str(data.ty.dtype)
        if name == "mean" and "float" not in dtype:
            raise ValueError("the mean of integers")
        index, axis = self.from_the_start(index, int(data.ty.shape[axis])), axis % len(shape)
        some = relax.op.strided_slice(source, list(range(len(shape))), [0] * len(shape), shape)
        source = self.emit(some)

        def scatter(into: relax.Expr, what: relax.Expr, reduction: str) -> relax.Expr:
            return self.emit(relax.op.scatter_elements(into, index, what, axis, reduction))

        def filled(value: float) -> relax.Expr:
            return relax.const(np.full(shape, value, dtype))

        reduction = _REDUCTIONS.get(name, "add")
        base = data if with_old else scatter(data, filled(_neutral(reduction, dtype)), "update")
        joined = scatter(base, source, reduction)
        if name != "mean":
            return joined
        ones = scatter(relax.const(np.full([int(n) for n in data.ty.shape], with_old, dtype)), filled(1), "add")
        count = self.emit(relax.op.maximum(ones, relax.const(1, dtype)))
        return self.emit(relax.op.divide(joined, count))


def _neutral(reduction: str, dtype: str) -> float:
    """What a reduction begins with."""
    if reduction in ("add", "mul"):
        return 0 if reduction == "add" else 1
    if "float" in dtype:
        return -np.inf if reduction == "max" else np.inf
    limits = np.iinfo(dtype)
    return limits.min if reduction == "max" else limits.max
