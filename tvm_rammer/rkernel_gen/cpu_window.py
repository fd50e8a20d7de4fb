"""Reading a fused function as a sliding window: convolutions of any groups, and pools, over NCHW images."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.s_tir.schedule import SBlockRV, ScheduleError

from .anchor import SPATIAL, blocks_of, has_branch, is_reduction, outputs_of


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What is done with each result of the window before it is stored.

    Parameters
    ----------
    axes : tuple of tirx.Var
        n, channel, y, x of the output.
    value : Expr
        In these axes; loads of `source` stand for the window's result.
    source : tirx.Buffer
    """

    axes: tuple[tirx.Var, ...]
    value: Expr
    source: tirx.Buffer

    def at(self, index: tuple[Expr, ...], result: Expr) -> Expr:
        """The value to store at an index of the output."""
        by_axis = dict(zip(self.axes, index, strict=True))

        def load(node: TensorLoad) -> Expr:
            return result if node.source.same_as(self.source) else node

        def axis(var: tirx.Var) -> Expr:
            return by_axis.get(var, var)

        return tvm_ffi.structural_map(self.value, [(TensorLoad, load), (tirx.Var, axis)], order="post")


@dataclass(frozen=True)
class Window:
    """`out[n, f, y, x]` is the sum, over c, ry, rx, of `data[n, c', y*sy + ry*dy - top, ..] * weight[f, c, ry, rx]`.

    Parameters
    ----------
    data, out : tirx.Buffer
        Parameters of the function.
    weight : tirx.Buffer or None
        None in a pool.
    maximum : bool
        Whether the terms are combined by their maximum instead of their sum.
    batch, groups, filters, channels : int
        Filters and channels of one group.
    rows, columns : int
        Of the output.
    kernel, stride, dilation, padding : pair of int
        Vertical, horizontal; of the padding top and left.
    fill : float
        What the image is padded with; where the combination starts, for a maximum.
    epilogue : Epilogue or None
    """

    data: tirx.Buffer
    weight: tirx.Buffer | None
    out: tirx.Buffer
    maximum: bool
    batch: int
    groups: int
    filters: int
    channels: int
    rows: int
    columns: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    fill: float
    epilogue: Epilogue | None

    @property
    def taps(self) -> int:
        """Terms of one result."""
        return self.channels * math.prod(self.kernel)

    @cached_property
    def flat(self) -> bool:
        """Whether the image can be read as it lies, as one long row: 1x1, stride 1, no padding."""
        return self.kernel == (1, 1) == self.stride and self.padding == (0, 0) and self._epilogue_is_flat()

    def _epilogue_is_flat(self) -> bool:
        """Whether the epilogue uses y and x only as the last two indices of arrays with images of the output's size."""
        if self.epilogue is None:
            return True
        y, x = self.epilogue.axes[2:]
        size, counts = (self.rows, self.columns), {"all": 0, "good": 0}

        def var(node: tirx.Var) -> None:
            counts["all"] += node.same_as(y) or node.same_as(x)

        def load(node: TensorLoad) -> None:
            index, shape = list(node.indices), tuple(int(s) for s in node.source.shape)
            if len(index) >= 2 and index[-2].same_as(y) and index[-1].same_as(x) and shape[-2:] == size:
                counts["good"] += 2

        tvm_ffi.structural_walk(self.epilogue.value, [(tirx.Var, var), (TensorLoad, load)], order="pre")
        return counts["all"] == counts["good"]


def find_window(func: tirx.PrimFunc) -> Window | None:
    """Read a function as a window; None where it is something else, or not of float32."""
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    reductions = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(reductions) != 1 or len(outputs_of(sch)) != 1 or {str(p.dtype) for p in func.params} != {"float32"}:
        return None
    window = reductions[0]
    try:
        pad = _only_padding(sch, window)
        for block in blocks_of(sch):
            kept = any(sch.get(block).same_as(sch.get(b)) for b in (window, pad) if b is not None)
            if sch.get_consumers(block) and not kept:
                sch.compute_inline(block)
    except ScheduleError:
        return None
    last = outputs_of(sch)[0]
    if len(blocks_of(sch)) != 1 + (pad is not None) + (not is_reduction(sch, last)):
        return None
    found = _read(
        sch.get(window), sch.get(pad) if pad is not None else None, None if is_reduction(sch, last) else sch.get(last)
    )
    if found is None or any(
        b is not None and not any(b.same_as(p) for p in func.params) for b in (found.data, found.weight, found.out)
    ):
        return None
    return found


def _only_padding(sch: s_tir.Schedule, block: SBlockRV) -> SBlockRV | None:
    """The block that pads the image, if there is one; a mere copy of the image is inlined."""
    for producer in list(sch.get_producers(block)):
        if not has_branch(sch, producer):
            sch.compute_inline(producer)
    producers = list(sch.get_producers(block))
    if len(producers) > 1 or (producers and sch.get_producers(producers[0])):
        raise ScheduleError("the window reads something computed that is no padding")
    return producers[0] if producers else None


def _read(block: s_tir.SBlock, pad: s_tir.SBlock | None, last: s_tir.SBlock | None) -> Window | None:
    axes = [axis.var for axis in block.iter_vars]
    types = [axis.iter_type for axis in block.iter_vars]
    extents = [int(axis.dom.extent) for axis in block.iter_vars]
    reduced = len(axes) - 4
    if types[:4] != [SPATIAL] * 4 or SPATIAL in types[4:] or reduced not in (2, 3):
        return None
    terms = _terms(block.body)
    if terms is None:
        return None
    maximum, data, weight = terms
    if (weight is not None) != (reduced == 3) or len(data.indices) != 4:
        return None
    if weight is not None and not _is(weight.indices, [axes[1], *axes[4:]]):
        return None
    n, f, y, x = axes[:4]
    ry, rx = axes[-2:]
    channels = extents[4] if weight is not None else 1
    if not data.indices[0].same_as(n) or not _is(block.body.indices, axes[:4]):
        return None
    groups = _groups(data.indices[1], f, axes[4] if weight is not None else None, extents[1], channels)
    vertical, horizontal = _linear(data.indices[2], y, ry), _linear(data.indices[3], x, rx)
    if groups is None or vertical is None or horizontal is None:
        return None
    padding = _padding(pad, data.source) if pad is not None else (data.source, (0, 0), -3.4028234663852886e38)
    if padding is None:
        return None
    image, (top, left), fill = padding
    epilogue = None
    if last is not None:
        if not _is(last.body.indices, [axis.var for axis in last.iter_vars]):
            return None
        if [int(axis.dom.extent) for axis in last.iter_vars] != extents[:4]:  # as where the result is padded
            return None
        epilogue = Epilogue(tuple(axis.var for axis in last.iter_vars), last.body.value, block.writes[0].source)
        if not _reads_in_place(epilogue):
            return None
    return Window(
        data=image, weight=weight.source if weight is not None else None,
        out=(last or block).writes[0].source, maximum=maximum,
        batch=extents[0], groups=groups, filters=extents[1] // groups, channels=channels,
        rows=extents[2], columns=extents[3], kernel=(extents[-2], extents[-1]),
        stride=(vertical[0], horizontal[0]), dilation=(vertical[1], horizontal[1]),
        padding=(top - vertical[2], left - horizontal[2]), fill=fill, epilogue=epilogue,
    )  # fmt: skip


def _terms(store: tirx.Stmt) -> tuple[bool, TensorLoad, TensorLoad | None] | None:
    """Whether a block takes a maximum; its data; its weight."""
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, tirx.Add | tirx.Max):
        return None
    maximum, term = isinstance(store.value, tirx.Max), store.value.b
    if isinstance(term, tirx.Mul) and not maximum:
        loads = (term.a, term.b)
        return (False, *loads) if all(isinstance(load, TensorLoad) for load in loads) else None
    return (maximum, term, None) if isinstance(term, TensorLoad) else None


def _is(indices: list[Expr], axes: list[tirx.Var]) -> bool:
    return len(indices) == len(axes) and all(i.same_as(a) for i, a in zip(indices, axes, strict=True))


def _evaluate(expr: Expr, values: Mapping[tirx.Var, int]) -> int | None:
    """An index with numbers for its axes; None where something is left."""
    found = tvm.sym.Analyzer().simplify(
        tvm_ffi.structural_map(
            expr, [(tirx.Var, lambda v: tirx.IntImm(str(v.ty.dtype), values[v]) if v in values else v)], order="post"
        )
    )
    return int(found) if isinstance(found, tirx.IntImm) else None


def _linear(expr: Expr, axis: tirx.Var, tap: tirx.Var) -> tuple[int, int, int] | None:
    """Stride, dilation and offset of `axis * stride + tap * dilation + offset`, checked at several places."""
    at: Callable[[int, int], int | None] = lambda a, t: _evaluate(expr, {axis: a, tap: t})  # noqa: E731
    offset, stride, dilation = at(0, 0), at(1, 0), at(0, 1)
    if offset is None or stride is None or dilation is None:
        return None
    stride, dilation = stride - offset, dilation - offset
    if any(at(a, t) != a * stride + t * dilation + offset for a, t in ((5, 0), (0, 3), (7, 2), (3, 5))):
        return None
    return (stride, dilation, offset) if stride > 0 and dilation > 0 else None


def _groups(expr: Expr, f: tirx.Var, c: tirx.Var | None, filters: int, channels: int) -> int | None:
    """Into how many groups the channels are cut; None where the data's channel is anything else."""
    if c is None:
        return filters if expr.same_as(f) else None
    if expr.same_as(c):
        return 1
    last = _evaluate(expr, {f: filters - 1, c: 0})
    if last is None or last % channels:
        return None
    groups = last // channels + 1
    if filters % groups:
        return None
    for filt in {0, filters // groups - 1, filters // groups, filters // 2, filters - 1} - {filters}:
        if _evaluate(expr, {f: filt, c: channels - 1}) != filt // (filters // groups) * channels + channels - 1:
            return None
    return groups


def _padding(pad: s_tir.SBlock, padded: tirx.Buffer) -> tuple[tirx.Buffer, tuple[int, int], float] | None:
    """The image that a block pads, by how much at top and left, and the value."""
    value, axes = pad.body.value, [axis.var for axis in pad.iter_vars]
    if not (isinstance(value, Call) and value.op.name.endswith("if_then_else")) or not pad.writes[0].source.same_as(
        padded
    ):
        return None
    _, inside, fill = value.args
    if not isinstance(inside, TensorLoad) or not isinstance(fill, tirx.FloatImm) or len(inside.indices) != 4:
        return None
    if not _is(inside.indices[:2], axes[:2]):
        return None
    shift = [_evaluate(inside.indices[d], {axes[d]: 0}) for d in (2, 3)]
    if None in shift or any(_evaluate(inside.indices[d], {axes[d]: 9}) != shift[d - 2] + 9 for d in (2, 3)):
        return None
    return inside.source, (-shift[0], -shift[1]), float(fill.value)


def _reads_in_place(epilogue: Epilogue) -> bool:
    """Whether each result of the window is used only where it is stored."""
    good: list[bool] = []

    def load(node: TensorLoad) -> None:
        if node.source.same_as(epilogue.source):
            good.append(_is(node.indices, list(epilogue.axes)))

    tvm_ffi.structural_walk(epilogue.value, [(TensorLoad, load)], order="pre")
    return all(good)
