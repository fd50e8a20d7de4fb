"""Resize by sizes, scales or a region that only the data say, as segmentation models go back to an image's size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import relax, te, tirx
from tvm.ir import Constant
from tvm.relax.frontend.onnx.onnx_frontend import Resize, onnx_input

from ...bindings import dtype_of
from ...passes.indices.index_guard import Relation
from .coordinates import BEFORE_11, Axis, cubic, read_at, rounded
from .guards import related
from .names import entries, named_extents, vector_of

_CROP = "tf_crop_and_resize"
_OUTSIDE = tirx.const(-1, "int64")
"""In the place of an element, for a result that is not read from the tensor."""


def resize(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """Convert a Resize; where it is computed how large it makes a tensor, that is read axis by axis.

    Parameters
    ----------
    bb : relax.BlockBuilder
    inputs : sequence
        The tensor, a region, scales and sizes; before opset 11 the tensor and scales.
    attributes : dict

    Returns
    -------
    relax.Expr

    Raises
    ------
    ValueError
        It cannot be done where sizes are computed.
    """
    old = len(inputs) == 2
    how = _How.of(attributes | {_COORDINATES: "asymmetric", "nearest_mode": BEFORE_11} if old else attributes)
    data, given = inputs[0], [None, inputs[1], None] if old else [*inputs[1:], None, None, None][:3]
    region, scales, sizes = (None if number is None or _is_empty(number) else number for number in given)
    region = region if how.coordinates == _CROP else None
    if all(number is None or isinstance(number, Constant) for number in (region, scales, sizes)):
        return Resize._impl_v18(bb, onnx_input(list(inputs)), attributes, [{}, {}])
    how.check(dtype_of(data.ty))
    target = _by_sizes(bb, data, sizes, how) if scales is None else _by_scales(bb, data, scales, how)
    return _resized(bb, data, target, region, how)


_COORDINATES = "coordinate_transformation_mode"


def _is_empty(value: relax.Expr) -> bool:
    return isinstance(value, Constant) and 0 in value.value.shape and value.ty.ndim == 1


@dataclass(frozen=True, slots=True)
class _How:
    """The attributes of a Resize."""

    attributes: Mapping[str, Any]
    mode: str
    coordinates: str
    nearest: str
    policy: str

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> "_How":
        """Those that a node has."""

        def text(name: str, default: str) -> str:
            value = attributes.get(name, default)
            return value.decode() if isinstance(value, bytes) else value

        mode, policy = text("mode", "nearest"), text("keep_aspect_ratio_policy", "stretch")
        coordinates, nearest = text(_COORDINATES, "half_pixel"), text("nearest_mode", "round_prefer_floor")
        return cls(attributes, "linear" if mode == "bilinear" else mode, coordinates, nearest, policy)

    def rounded(self, x: tirx.Expr, scale: tirx.Expr) -> Any:
        """The element that is nearest to a place; None where the mode is none of ONNX."""
        if self.nearest == BEFORE_11:
            x = x.astype("float32").astype("float64")
            return tirx.Select(scale < 1.0, tirx.ceil(x), tirx.floor(x))
        return rounded(x, self.nearest, tirx.floor, tirx.ceil)

    def check(self, dtype: str) -> None:
        """Check that it can be done by computed sizes.

        Raises
        ------
        ValueError
            It cannot.
        """
        if self.attributes.get("antialias", 0):
            raise ValueError("what is antialiased needs sizes that are known when it is compiled")
        if self.mode not in ("nearest", "linear", "cubic"):
            raise ValueError(f"the mode {self.mode!r} is none of ONNX")
        if self.mode != "nearest" and not dtype.startswith(("float", "bfloat")):
            raise ValueError("it interpolates integers; cast them to float32 before it, and what comes out back")
        one = tirx.const(1.0, "float64")
        if self.rounded(one, one) is None:
            raise ValueError(f"the nearest_mode {self.nearest!r} is none of ONNX")
        if read_at(Axis(0, one, one, one), self.coordinates, one, _choose) is None:
            raise ValueError(f"the {_COORDINATES} {self.coordinates!r} is none of ONNX")

    def axes(self, rank: int) -> list[int]:
        """The axes whose sizes are given."""
        return [axis % rank for axis in self.attributes.get("axes", range(rank))]

    @property
    def reach(self) -> int:
        """How many elements on each side a result reads; 0 for one alone."""
        return {"nearest": 0, "linear": 1, "cubic": 2}[self.mode]


@dataclass(frozen=True, slots=True)
class _Target:
    """What the given axes become: their extents, their scales as a vector of float64, and which stay as they are."""

    extents: Sequence[tirx.Expr]
    scales: relax.Expr
    same: Sequence[bool]


def _by_scales(bb: relax.BlockBuilder, data: relax.Expr, scales: relax.Expr, how: _How) -> _Target:
    """As large as the scales say, in single precision."""
    sizes = [data.ty.shape[axis] for axis in how.axes(data.ty.ndim)]
    same = [scale == 1.0 for scale in entries(bb, scales, len(sizes))]
    before = bb.emit(relax.op.astype(vector_of(sizes), "float32"))
    after = bb.emit(relax.op.astype(relax.op.floor(relax.op.multiply(before, scales)), "int64"))
    extents = named_extents(bb, after, [size if still else None for size, still in zip(sizes, same, strict=True)])
    return _Target(extents, bb.emit(relax.op.astype(scales, "float64")), same)


def _by_sizes(bb: relax.BlockBuilder, data: relax.Expr, wanted: relax.Expr, how: _How) -> _Target:
    """As large as wanted, or by one scale for all axes (keep_aspect_ratio_policy)."""
    sizes = [data.ty.shape[axis] for axis in how.axes(data.ty.ndim)]
    before = bb.emit(relax.op.astype(vector_of(sizes), "float64"))
    scales = bb.emit(relax.op.divide(relax.op.astype(wanted, "float64"), before))
    if how.policy == "stretch":
        extents = named_extents(bb, wanted, entries(bb, wanted, len(sizes)))
        return _Target(extents, scales, [_are_equal(*pair) for pair in zip(extents, sizes, strict=True)])
    choose = relax.op.min if how.policy == "not_larger" else relax.op.max
    scales = bb.emit(relax.op.broadcast_to(choose(scales, [0], keepdims=True), [len(sizes)]))
    half = relax.const(0.5, "float64")
    after = relax.op.floor(relax.op.add(relax.op.multiply(scales, before), half))
    extents = named_extents(bb, bb.emit(relax.op.astype(after, "int64")), [None] * len(sizes))
    return _Target(extents, scales, [False] * len(sizes))


def _are_equal(a: tirx.Expr, b: tirx.Expr) -> bool:
    """Whether two extents are surely equal."""
    if isinstance(a, tirx.IntImm) and isinstance(b, tirx.IntImm):
        return int(a) == int(b)
    return bool(a.same_as(b))


def _resized(
    bb: relax.BlockBuilder, data: relax.Expr, target: _Target, region: relax.Expr | None, how: _How
) -> relax.Expr:
    """The tensor, one axis after another."""
    axes, one = how.axes(data.ty.ndim), tirx.const(1, "int64")
    todo = [place for place, still in enumerate(target.same) if not still or region is not None]
    ends = [(data.ty.shape[axes[place]], target.extents[place]) for place in todo]
    pairs = [(tirx.min(a, one), b) for size, out in ends for a, b in ((size, out), (out, size))]
    what = "got sizes or scales that make nothing of something, or something of nothing"
    scales = related(bb, target.scales, pairs, Relation.AT_MOST, how.attributes, what)
    if region is not None:
        region = bb.emit(relax.op.astype(region, "float64"))
    for place, (size, out) in zip(todo, ends, strict=True):
        steps = _Steps(how, place, len(axes))
        given = [scales] if region is None else [scales, region]
        places = bb.emit_te(steps.places, size, out, *given, primfunc_name_hint="resize_places")
        read = [places]
        if how.reach:
            read.append(bb.emit_te(steps.weights, size, out, *given, primfunc_name_hint="resize_weights"))
        extrapolation = float(how.attributes.get("extrapolation_value", 0.0))
        data = bb.emit_te(_read, data, axes[place], extrapolation, *read, primfunc_name_hint="resize_axis")
    return data


@dataclass(frozen=True, slots=True)
class _Steps:
    """What is read along one of the given axes: for each result some elements, and their weights.

    Parameters
    ----------
    how : _How
    place : int
        Of the axis, among those that are given.
    count : int
        How many are given.
    """

    how: _How
    place: int
    count: int

    def places(self, size: tirx.Expr, out: tirx.Expr, scales: te.Tensor, region: te.Tensor | None = None) -> te.Tensor:
        """Which elements are read: [out, elements]."""
        last = _real(size) - 1.0

        def element(i: tirx.Expr, n: tirx.Expr) -> tirx.Expr:
            x = self._read_at(i, size, out, scales, region)
            found = (
                _left(x) + _real(n + (1 - self.how.reach))
                if self.how.reach
                else self.how.rounded(x, scales(self.place))
            )
            index = te.max(te.min(found, last), tirx.const(0.0, "float64")).astype("int64")
            return tirx.Select(tirx.all(x >= 0.0, x <= last), index, _OUTSIDE) if region is not None else index

        return te.compute((out, max(1, 2 * self.how.reach)), element, name="places")

    def weights(self, size: tirx.Expr, out: tirx.Expr, scales: te.Tensor, region: te.Tensor | None = None) -> te.Tensor:
        """How much each element counts: [out, elements]."""
        how, count = self.how, 2 * self.how.reach
        outside = bool(how.attributes.get("exclude_outside", 0))

        def weight(i: tirx.Expr, n: tirx.Expr) -> tirx.Expr:
            x = self._read_at(i, size, out, scales, region)
            place = _real(n + (1 - how.reach))
            away = tirx.abs(place - (x - _left(x)))
            if how.mode == "linear":
                found = te.max(1.0 - away, tirx.const(0.0, "float64"))
            else:
                found = cubic(away, how.attributes.get("cubic_coeff_a", -0.75), _choose)
            there = _left(x) + place
            return _choose(tirx.all(there >= 0.0, there < _real(size)), found, 0.0) if outside else found

        single = te.compute((out, count), weight, name="weights")
        if not outside:
            return single
        return te.compute((out, count), lambda i, n: single(i, n) / sum(single(i, k) for k in range(count)))

    def _read_at(
        self, i: tirx.Expr, size: tirx.Expr, out: tirx.Expr, scales: te.Tensor, region: te.Tensor | None
    ) -> tirx.Expr:
        ends = (0.0, 1.0) if region is None else (region(self.place), region(self.place + self.count))
        axis = Axis(self.place, _real(size), _real(out), scales(self.place), *ends)
        return read_at(axis, self.how.coordinates, _real(i), _choose)


def _left(x: tirx.Expr) -> tirx.Expr:
    return tirx.ceil(x) - 1.0


def _real(value: Any) -> tirx.Expr:
    return value.astype("float64") if isinstance(value, tirx.Expr) else tirx.const(float(value), "float64")


def _choose(condition: Any, a: Any, b: Any) -> tirx.Expr:
    return tirx.Select(condition, _real(a), _real(b))


def _read(
    data: te.Tensor, axis: int, extrapolation: float, places: te.Tensor, weights: te.Tensor | None = None
) -> te.Tensor:
    """Elements along an axis, or weighted sums of them; what counts nothing is not read."""
    dtype, taps = data.dtype, int(places.shape[1])
    wide = "float64" if dtype == "float64" else "float32"

    def one(at: Sequence[tirx.Expr], tap: int) -> tirx.Expr:
        return data(*at[:axis], te.max(places(at[axis], tap), tirx.const(0, "int64")), *at[axis + 1 :])

    def term(at: Sequence[tirx.Expr], tap: int, weights: te.Tensor) -> tirx.Expr:
        weight = weights(at[axis], tap).astype(wide)
        nothing = tirx.const(0, wide)
        return tirx.if_then_else(weight == nothing, nothing, weight * one(at, tap).astype(wide))

    def element(*at: tirx.Expr) -> tirx.Expr:
        terms = [one(at, 0)] if weights is None else [term(at, tap, weights) for tap in range(taps)]
        found = sum(terms[1:], terms[0]).astype(dtype)
        return tirx.if_then_else(places(at[axis], 0) < 0, tirx.const(extrapolation, dtype), found)

    shape = [*data.shape[:axis], places.shape[0], *data.shape[axis + 1 :]]
    return te.compute(shape, element, name="resized")
