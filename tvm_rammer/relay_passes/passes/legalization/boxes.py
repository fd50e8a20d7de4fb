"""RoiAlign: what pixels weigh along each axis of a box's bins, and then the weighted sums of the pixels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import relax, te, tirx
from tvm.ir import Call
from tvm.script import tirx as T
from tvm.tirx import Expr

from ...bindings import static_shape
from ..bound_chains import OPAQUE
from .stock import Legalization, has_halves, stock, widened

_NEAR = 6
"""Samples of a bin that a pixel has to look at, where their number follows from the bin's length: they are more than
half a pixel apart then, and weigh on pixels less than one away. That makes four, and roundings may add one at each end.
"""

_MOST = 16
"""Samples along an axis of a bin that the model asks for, at most: each is two terms of a sum."""

_LANES = 16
"""Channels of a vector, at most."""


def aligned_boxes(cpu: bool) -> dict[str, Legalization]:
    """Legalizations of RoiAlign by the operator's name, for a CPU or for a GPU.

    TVM takes each sample of a bin for each channel anew. How many there are follows from the box where the model does
    not say it: a box of a million pixels has as many along an axis, most of them outside of the image. Bilinear samples
    (He et al., Mask R-CNN, section 3) on a grid are separable: a pixel's weight is a product of one along each axis,
    and all channels share it. A box of any size takes no longer than the image has pixels: on a CPU those between the
    first and the last one that a sample is near are looked at; on a GPU, whose rTasks have loops of known extents, all.
    But for that last form the channels go last meanwhile, for vectors.
    """
    return {"relax.vision.roi_align": lambda bb, call: _legalize(bb, call, cpu)}


def _legalize(bb: relax.BlockBuilder, call: Call, cpu: bool) -> relax.Expr:
    if has_halves(call):
        return widened(bb, call)  # coordinates of half precision are pixels apart
    (data, rois), attrs = call.args, call.attrs
    image, bins = static_shape(data.ty), tuple(map(int, attrs.pooled_size))
    if image is None or 0 in (*image, *(static_shape(rois.ty) or ())) or not isinstance(rois.ty.shape, relax.ShapeExpr):
        return stock(bb, call)
    if str(attrs.mode) != "avg" or attrs.layout != "NCHW":
        return stock(bb, call)
    if {str(data.ty.dtype), str(rois.ty.dtype)} != {"float32"} or int(attrs.sample_ratio) > _MOST:
        return stock(bb, call)
    arrays = []
    for axis in range(2):
        along = _Bins(
            axis, image[2 + axis], bins[axis], float(attrs.spatial_scale), bool(attrs.aligned), int(attrs.sample_ratio)
        )
        for array in (along.pixels, along.weights):
            arrays.append(
                bb.emit_te(array, rois, primfunc_name_hint="box_weights", primfunc_attrs={"op_pattern": OPAQUE})
            )
    named = {"primfunc_name_hint": "box_sums", "primfunc_attrs": {"op_pattern": OPAQUE}}
    adaptive = int(attrs.sample_ratio) <= 0
    if adaptive and not cpu:
        return bb.call_te(_sums_of_all, data, rois, *arrays, **named)
    rows = bb.emit(relax.op.permute_dims(data, [0, 2, 3, 1]))
    if adaptive:
        name = bb.add_func(_sums_of_ranges(rois.ty.shape[0], image, bins), "box_sums")
        shape = [rois.ty.shape[0], *bins, image[1]]
        sums = bb.emit(relax.call_tir(name, [rows, rois, *arrays], out_ty=relax.TensorType(shape, "float32")))
    else:
        sums = bb.emit_te(_sums_of_taps, rows, rois, *arrays, **named)
    return relax.op.permute_dims(sums, [0, 3, 1, 2])


@dataclass(frozen=True, slots=True)
class _Bins:
    """The bins of all boxes along one axis.

    Parameters
    ----------
    axis : int
        0 for rows, 1 for columns.
    size, bins : int
        Pixels of the image, and bins of a box.
    scale : float
        Pixels for a unit of the boxes.
    aligned : bool
        Whether a box may be shorter than a pixel.
    ratio : int
        Samples of a bin; 0 or less for as many as it has pixels.
    """

    axis: int
    size: int
    bins: int
    scale: float
    aligned: bool
    ratio: int

    def pixels(self, rois: te.Tensor) -> te.Tensor:
        """int32 [boxes, bins, n]: with a ratio two pixels of each sample; else the first one, and the one behind."""

        def pixel(box: Expr, number: Expr, n: Expr) -> Expr:
            if self.ratio > 0:
                _, below = self._sample(rois, box, number, (n // 2).astype("float32"))
                return (te.min(below + (n % 2).astype("float32"), self._last)).astype("int32")
            samples = self._bin(rois, box, number)[2]
            place = self._place(rois, box, number, tirx.Select(n < 1, _float(0), samples - 1.0))
            return te.floor(self._within(place)).astype("int32") + tirx.Select(n < 1, 0, 2)

        return te.compute([rois.shape[0], *_extents(self.bins, self._taps or 2)], pixel, name="pixels")

    def weights(self, rois: te.Tensor) -> te.Tensor:
        """[boxes, bins, n]: what those pixels weigh; without a ratio what all pixels of the image weigh."""

        def of_tap(box: Expr, number: Expr, n: Expr) -> Expr:
            place, below = self._sample(rois, box, number, (n // 2).astype("float32"))
            above = self._within(place) - below
            weight = tirx.Select(tirx.EQ(n % 2, tirx.const(0, n.ty.dtype)), 1.0 - above, above)
            return tirx.Select(self._is_inside(place), weight, _float(0)) / _float(self.ratio)

        def of_pixel(box: Expr, number: Expr, n: Expr) -> Expr:
            begin, length, samples = self._bin(rois, box, number)
            at, total = n.astype("float32"), _float(0)
            first = te.max(te.floor((at - 1.0 - begin) * samples / length - 0.5), _float(0))
            for near in range(_NEAR):
                place = self._place(rois, box, number, first + float(near))
                counts = tirx.all(first + float(near) < samples, self._is_inside(place))
                weight = te.max(1.0 - te.abs(self._within(place) - at), _float(0))
                total = total + tirx.Select(counts, weight, _float(0))
            return total / te.max(samples, _float(1))

        shape = [rois.shape[0], *_extents(self.bins, self._taps or self.size)]
        return te.compute(shape, of_tap if self.ratio > 0 else of_pixel, name="weights")

    @property
    def _taps(self) -> int:
        return 2 * max(0, self.ratio)

    @property
    def _last(self) -> Expr:
        return _float(self.size - 1)

    def _bin(self, rois: te.Tensor, box: Expr, number: Expr) -> tuple[Expr, Expr, Expr]:
        """Where a bin begins, how long it is, and how many samples it has: all in pixels."""
        first, last = (rois[box, n - self.axis] * _float(self.scale) for n in (2, 4))
        length = last - first if self.aligned else te.max(last - first, _float(1))
        length = length / _float(self.bins)
        return (
            first + number.astype("float32") * length,
            length,
            _float(self.ratio) if self.ratio > 0 else te.ceil(length),
        )

    def _place(self, rois: te.Tensor, box: Expr, number: Expr, sample: Expr) -> Expr:
        begin, length, samples = self._bin(rois, box, number)
        return begin + (sample + 0.5) * length / samples

    def _sample(self, rois: te.Tensor, box: Expr, number: Expr, sample: Expr) -> tuple[Expr, Expr]:
        """Where a sample is, and the last pixel before it."""
        place = self._place(rois, box, number, sample)
        return place, te.floor(self._within(place))

    def _within(self, place: Expr) -> Expr:
        """The place of the image that is nearest; the first one, where it is no number."""
        return tirx.Select(place > _float(0), te.min(place, self._last), _float(0))

    def _is_inside(self, place: Expr) -> Expr:
        """Whether a sample counts: up to a pixel outside of the image it does."""
        return tirx.all(place >= _float(-1), place <= _float(self.size))


def _sums_of_taps(data: te.Tensor, rois: te.Tensor, *arrays: te.Tensor) -> te.Tensor:
    """[boxes, rows, columns, channels] of `data` [images, rows, columns, channels]: sums over the taps of both axes."""
    rows, of_row, columns, of_column = arrays
    a, b = (te.reduce_axis((0, pixels.shape[2]), name) for pixels, name in ((rows, "a"), (columns, "b")))

    def bin_(box: Expr, row: Expr, column: Expr, channel: Expr) -> Expr:
        y, x = rows[box, row, a].astype("int64"), columns[box, column, b].astype("int64")
        weight = of_row[box, row, a] * of_column[box, column, b]
        return te.sum(data[_image(rois, box), y, x, channel] * weight, axis=[a, b])

    return te.compute([rois.shape[0], rows.shape[1], columns.shape[1], data.shape[3]], bin_, name="sums")


def _sums_of_ranges(number: Expr, image: Sequence[int], bins: Sequence[int]) -> tirx.PrimFunc:
    """A function of images whose channels come last, boxes, and what `_Bins` says of both axes.

    Its result [boxes, rows, columns, channels] are sums over the pixels from the first one that a bin has to the last.
    """
    images, channels, height, width = image
    boxes = int(number) if isinstance(number, tirx.IntImm) else tirx.Var("boxes", "int64")
    lanes = math.gcd(channels, _LANES)

    @T.prim_func(private=True, s_tir=True)  # type: ignore[untyped-decorator]  # TVM's are
    def box_sums(a: T.handle, b: T.handle, c: T.handle, d: T.handle, e: T.handle, f: T.handle, g: T.handle) -> None:
        data = T.match_buffer(a, (images, height, width, channels), "float32")
        rois = T.match_buffer(b, (boxes, 5), "float32")
        rows = T.match_buffer(c, (boxes, bins[0], 2), "int32")
        of_row = T.match_buffer(d, (boxes, bins[0], height), "float32")
        columns = T.match_buffer(e, (boxes, bins[1], 2), "int32")
        of_column = T.match_buffer(f, (boxes, bins[1], width), "float32")
        sums = T.match_buffer(g, (boxes, bins[0], bins[1], channels), "float32")
        for i, j, k in T.grid(boxes, *bins):
            with T.sblock("sums"):
                box, row, column = T.axis.remap("SSS", [i, j, k])
                for n in T.serial(channels // lanes):
                    for m in T.vectorized(lanes):
                        sums[box, row, column, n * lanes + m] = T.float32(0)
                for y in T.serial(rows[box, row, 0], _end(rows, box, row, height)):
                    for x in T.serial(columns[box, column, 0], _end(columns, box, column, width)):
                        for n in T.serial(channels // lanes):
                            for m in T.vectorized(lanes):
                                sums[box, row, column, n * lanes + m] += (
                                    of_row[box, row, y]
                                    * of_column[box, column, x]
                                    * data[T.Cast("int64", rois[box, 0]), y, x, n * lanes + m]
                                )

    return box_sums.with_attr("op_pattern", OPAQUE)


def _end(ends: tirx.Var, box: Expr, number: Expr, size: int) -> Expr:
    """The pixel behind the last one that a bin has along an axis."""
    return tirx.max(tirx.min(ends[box, number, 1], size), ends[box, number, 0])


def _sums_of_all(data: te.Tensor, rois: te.Tensor, *arrays: te.Tensor) -> te.Tensor:
    """The same over all pixels; what weighs nothing may be infinite."""
    rows, of_row, columns, of_column = arrays
    y, x = (te.reduce_axis((0, size), name) for size, name in zip(data.shape[2:], "yx", strict=True))

    def bin_(box: Expr, channel: Expr, row: Expr, column: Expr) -> Expr:
        weight = of_row[box, row, y] * of_column[box, column, x]
        pixel = data[_image(rois, box), channel, y, x]
        return te.sum(tirx.Select(weight > _float(0), pixel * weight, _float(0)), axis=[y, x])

    return te.compute([rois.shape[0], data.shape[1], rows.shape[1], columns.shape[1]], bin_, name="sums")


def _image(rois: te.Tensor, box: Expr) -> Expr:
    return rois[box, 0].astype("int64")


def _float(value: float) -> Expr:
    return tirx.const(float(value), "float32")


def _extents(*sizes: int) -> list[Expr]:
    return [tirx.const(n, "int64") for n in sizes]
