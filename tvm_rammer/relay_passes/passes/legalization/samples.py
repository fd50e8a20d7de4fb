"""GridSample: where the taps of each point are, once for all channels, and then their weighted sum."""

import functools
import math
import operator
from collections.abc import Sequence

import numpy as np
from tvm import relax, te, tirx
from tvm.ir import Call
from tvm.tirx import Expr

from ...bindings import static_shape
from ..bound_chains import INTO_RESULT
from .stock import Legalization, has_halves, stock, widened

_CUBIC = -0.75
"""The parameter of cubic convolution that ONNX and PyTorch have."""

_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}
"""Pixels along one axis that a point is computed from, by method."""


def samples() -> dict[str, Legalization]:
    """Legalizations of grid samples by the operator's name.

    TVM makes one expression of it, in which each channel finds its pixels and weights again, and each of 16 pixels of a
    cubic sample reflects its coordinates anew: LLVM takes many seconds for it. Here pixels and weights are arrays of
    their own, which all channels read.
    """
    return {"relax.image.grid_sample": _legalize}


def _legalize(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    if has_halves(call):
        return widened(bb, call)  # coordinates of half precision are pixels apart
    (data, grid), attrs = call.args, call.attrs
    shape, points = static_shape(data.ty), static_shape(grid.ty)
    known = attrs.method in _TAPS and attrs.layout in ("NCHW", "NCDHW")
    exact = str(data.ty.dtype) == str(grid.ty.dtype) in ("float32", "float64")
    if not known or not exact or shape is None or points is None or 0 in (*shape, *points):
        return stock(bb, call)
    if math.prod(shape[2:]) >= 2**31:
        return stock(bb, call)
    sampler = _Sampler(shape, points, str(attrs.method), str(attrs.padding_mode), bool(attrs.align_corners))
    sizes = relax.const(np.array(shape[2:], str(grid.ty.dtype)))
    apart = {"op_pattern": INTO_RESULT}
    places = bb.emit_te(sampler.places, grid, sizes, primfunc_name_hint="sampled_places", primfunc_attrs=apart)
    along = bb.emit_te(sampler.pixels, places, sizes, primfunc_name_hint="sampled_pixels")
    taps = [bb.emit_te(sampler.places_in_image, along, primfunc_name_hint="sampled_taps")]
    if sampler.taps > 1:
        along = bb.emit_te(sampler.weights, places, primfunc_name_hint="sampled_weights")
        taps.append(bb.emit_te(sampler.products, along, primfunc_name_hint="sampled_products"))
    rows = bb.emit(relax.op.reshape(data, [*shape[:2], math.prod(shape[2:])]))
    return bb.call_te(sampler.samples, rows, *taps, primfunc_name_hint="samples", primfunc_attrs=apart)


class _Sampler:
    """One grid sample: images of a static shape, points of a static shape.

    `sizes` are those of an image along each axis, as numbers of the points' type.
    """

    def __init__(
        self, shape: Sequence[int], points: Sequence[int], method: str, padding: str, align_corners: bool
    ) -> None:
        self.shape, self.points = shape, points
        self.axes = len(shape) - 2
        self.method, self.padding, self.align_corners = method, padding, align_corners
        self.taps = _TAPS[method]

    def places(self, grid: te.Tensor, sizes: te.Tensor) -> te.Tensor:
        """[axes, images, points]: where a point is, in pixels; the grid counts from -1 to 1, its last axis first."""

        def place(axis: Expr, image: Expr, *point: Expr) -> Expr:
            given = grid(image, self.axes - 1 - axis, *point) + 1.0
            found = given * (sizes[axis] - 1.0) / 2.0 if self.align_corners else given * sizes[axis] / 2.0 - 0.5
            if self.method == "bicubic" or self.padding == "zeros":
                return found
            return _limited(self._mirrored(found, sizes[axis]), sizes[axis])

        return te.compute(_extents([self.axes, *self._points()]), place, name="places", tag="injective")

    def pixels(self, places: te.Tensor, sizes: te.Tensor) -> te.Tensor:
        """int32 [axes, taps, images, points]: the pixel of each tap along each axis, -1 where it is none."""

        def pixel(axis: Expr, tap: Expr, *point: Expr) -> Expr:
            place, size = places(axis, *point), sizes[axis]
            if self.method == "nearest":
                at = te.nearbyint(place)
            else:
                at = te.floor(place) + (tap - (self.taps // 2 - 1)).astype(places.dtype)
            if self.padding == "zeros":
                inside = tirx.all(at >= 0.0, at < size)
                return tirx.Select(inside, _limited(at, size).astype("int32"), tirx.const(-1, "int32"))
            return _limited(self._mirrored(at, size), size).astype("int32")

        return te.compute(self._each_tap(), pixel, name="pixels", tag="injective")

    def weights(self, places: te.Tensor) -> te.Tensor:
        """[axes, taps, images, points]: the weight of each tap along each axis."""

        def weight(axis: Expr, tap: Expr, *point: Expr) -> Expr:
            place = places(axis, *point)
            fraction = place - te.floor(place)
            if self.method == "bilinear":
                return tirx.Select(_is(tap, 0), 1.0 - fraction, fraction)
            far = te.abs(fraction + (1 - tap).astype(places.dtype))
            near = ((_CUBIC + 2) * far - (_CUBIC + 3)) * far * far + 1.0
            beyond = ((_CUBIC * far - 5 * _CUBIC) * far + 8 * _CUBIC) * far - 4 * _CUBIC
            return tirx.Select(tirx.any(_is(tap, 1), _is(tap, 2)), near, beyond)

        return te.compute(self._each_tap(), weight, name="weights", tag="injective")

    def places_in_image(self, pixels: te.Tensor) -> te.Tensor:
        """int32 [taps of all axes, images, points]: the pixel of each tap in its image, row after row; -1 for none."""

        def tap(number: Expr, *point: Expr) -> Expr:
            at = [pixels(axis, n, *point) for axis, n in enumerate(self._tap_of_each_axis(number))]
            found = at[0]
            for n, size in zip(at[1:], self.shape[3:], strict=True):
                found = found * tirx.const(size, "int32") + n
            if self.padding != "zeros":
                return found
            return tirx.Select(tirx.all(*[n >= 0 for n in at]), found, tirx.const(-1, "int32"))

        return te.compute(self._all_taps(), tap, name="taps", tag="injective")

    def products(self, weights: te.Tensor) -> te.Tensor:
        """[taps of all axes, images, points]: the weight of each tap."""

        def product(number: Expr, *point: Expr) -> Expr:
            factors = [weights(axis, n, *point) for axis, n in enumerate(self._tap_of_each_axis(number))]
            return functools.reduce(operator.mul, factors)

        return te.compute(self._all_taps(), product, name="products", tag="injective")

    def samples(self, data: te.Tensor, taps: te.Tensor, weights: te.Tensor | None = None) -> te.Tensor:
        """[images, channels, points]: the weighted sum of the taps; `data` are images as single rows."""

        def sample(image: Expr, channel: Expr, *point: Expr) -> Expr:
            terms = []
            for tap in range(self.taps**self.axes):
                at = taps(tap, image, *point)
                if self.padding == "zeros":
                    inside, at = at >= 0, te.max(at, tirx.const(0, "int32"))
                value = data(image, channel, at.astype("int64"))
                if self.padding == "zeros":
                    value = tirx.Select(inside, value, tirx.const(0, data.dtype))
                terms.append(value if weights is None else value * weights(tap, image, *point))
            return functools.reduce(operator.add, terms)

        shape = [*self.shape[:2], *self.points[2:]]
        return te.compute(_extents(shape), sample, name="samples", tag="grid_sample")

    def _tap_of_each_axis(self, number: Expr) -> list[Expr]:
        """Of a tap of all axes; the last axis varies fastest."""
        return [number // self.taps**inner % self.taps for inner in reversed(range(self.axes))]

    def _all_taps(self) -> list[Expr]:
        return _extents([self.taps**self.axes, *self._points()])

    def _points(self) -> list[int]:
        return [self.points[0], *self.points[2:]]

    def _each_tap(self) -> list[Expr]:
        return _extents([self.axes, self.taps, *self._points()])

    def _mirrored(self, place: Expr, size: Expr) -> Expr:
        """Where a place is within the image, where its edges are mirrors."""
        if self.padding != "reflection":
            return place
        dtype = place.ty.dtype
        begin = tirx.const(0.0 if self.align_corners else -0.5, dtype)
        length = size - 1.0 if self.align_corners else size
        away = te.abs(place - begin)
        times = te.floor(away / te.max(length, tirx.const(1.0, dtype)))
        rest = away - times * length
        odd = times - 2.0 * te.floor(times / 2.0)
        there = tirx.Select(odd > 0.0, length - rest, rest) + begin
        return tirx.Select(tirx.all(place >= begin, place <= length + begin), place, there)


def _is(variable: Expr, number: int) -> Expr:
    return tirx.EQ(variable, tirx.const(number, variable.ty.dtype))


def _limited(place: Expr, size: Expr) -> Expr:
    """A place between the first and the last pixel; the first one where it is no number.

    Not by a maximum: that of a NaN is NaN here, which as an integer could be any.
    """
    none = tirx.const(0.0, place.ty.dtype)
    return tirx.Select(place > none, te.min(place, size - 1.0), none)


def _extents(shape: Sequence[int]) -> list[Expr]:
    return [tirx.const(n, "int64") for n in shape]
