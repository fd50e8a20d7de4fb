"""Recognises a fused function as a sliding window."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.s_tir.schedule import SBlockRV, ScheduleError

from ...analysis.blocks import SPATIAL, blocks_of, has_branch, is_reduction, new_schedule, one_result, outputs_of
from .index import are, evaluate, groups_of, linear
from .problem import Epilogue, Phases, Window

LOWEST = -3.4028234663852886e38
"""Initial value of a maximum: the least float32."""
MAX_UPSAMPLING = 8
"""Stride of a transposed convolution, at most."""


def find_window(func: tirx.PrimFunc) -> Window | None:
    """The window of a function; None where it has none, or is not float32."""
    sch = new_schedule(func)
    reductions = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(reductions) != 1 or not one_result(sch) or {str(p.dtype) for p in func.params} != {"float32"}:
        return None
    window = reductions[0]
    try:
        before = _only_padding(sch, window)
        for block in blocks_of(sch):
            kept = any(sch.get(block).same_as(sch.get(b)) for b in (window, *before))
            if sch.get_consumers(block) and not kept:
                sch.compute_inline(block)
    except ScheduleError:
        return None
    last = outputs_of(sch)[0]
    if len(blocks_of(sch)) != 1 + len(before) + (not is_reduction(sch, last)):
        return None
    epilogue = None if is_reduction(sch, last) else sch.get(last)
    found = _read(sch.get(window), [sch.get(b) for b in before], epilogue)
    if found is None or any(
        b is not None and not any(b.same_as(p) for p in func.params) for b in (found.data, found.weight, found.out)
    ):
        return None
    return found


def _only_padding(sch: s_tir.Schedule, block: SBlockRV) -> list[SBlockRV]:
    """The blocks that pad or upsample the image, if there are any; copies are inlined."""
    found: list[SBlockRV] = []
    while True:
        for producer in list(sch.get_producers(block)):
            if not has_branch(sch, producer):
                sch.compute_inline(producer)
        producers = list(sch.get_producers(block))
        if not producers:
            return found
        if len(producers) > 1 or len(found) == 2:
            raise ScheduleError("the window reads a computed value that is no padding")
        block = producers[0]
        found.insert(0, block)


@dataclass(frozen=True, slots=True)
class _Image:
    """The input of a window: an image, upsampled with zeros between its elements, then padded."""

    data: tirx.Buffer
    upsampled: tuple[int, ...]
    padding: tuple[int, ...]
    fill: float


def _read(block: s_tir.SBlock, before: Sequence[s_tir.SBlock], last: s_tir.SBlock | None) -> Window | None:
    axes, types = [axis.var for axis in block.iter_vars], [axis.iter_type for axis in block.iter_vars]
    extents = [int(axis.dom.extent) for axis in block.iter_vars]
    terms = _terms(block.body)
    if terms is None:
        return None
    maximum, data, weight = terms
    rank = len(data.indices) - 2
    spatial, reduced = 2 + rank, rank + (weight is not None)
    if rank not in (1, 2) or types[:spatial] != [SPATIAL] * spatial or len(axes) != spatial + reduced:
        return None
    if (
        SPATIAL in types[spatial:]
        or not data.indices[0].same_as(axes[0])
        or not are(block.body.indices, axes[:spatial])
    ):
        return None
    channel = axes[spatial] if weight is not None else None
    channels = extents[spatial] if weight is not None else 1
    groups = groups_of(data.indices[1], axes[1], channel, extents[1], channels)
    found = [linear(data.indices[2 + d], axes[2 + d], axes[d - rank]) for d in range(rank)]
    lines = [line for line in found if line is not None]
    image = _image(before, data.source, rank)
    if groups is None or len(lines) < rank or image is None:
        return None
    epilogue = _epilogue(last, block, extents[:spatial]) if last is not None else None
    if last is not None and epilogue is None:
        return None
    flipped = weight is not None and _is_flipped(weight, axes[1], axes[spatial], axes[-rank:], extents[-rank:])
    if weight is not None and not flipped and not are(weight.indices, [axes[1], *axes[spatial:]]):
        return None
    window = Window(
        data=image.data, weight=weight.source if weight is not None else None,
        out=(last or block).writes[0].source, maximum=maximum,
        batch=extents[0], groups=groups, filters=extents[1] // groups, channels=channels,
        rows=_pair(extents[2:spatial], 1)[0], columns=extents[spatial - 1],
        kernel=_pair(extents[-rank:], 1), stride=_pair([line[0] for line in lines], 1),
        dilation=_pair([line[1] for line in lines], 1),
        padding=_pair([pad - line[2] for pad, line in zip(image.padding, lines, strict=True)], 0),
        fill=image.fill, epilogue=epilogue, rank=rank,
    )  # fmt: skip
    upsampled = _pair(image.upsampled, 1)
    if flipped:
        return _transposed(window, upsampled)
    return window if upsampled == (1, 1) else None


def _pair(values: Sequence[int], missing: int) -> tuple[int, int]:
    """Vertical and horizontal value; a window over rows has no vertical one."""
    return (missing, values[0]) if len(values) == 1 else (values[0], values[1])


def _transposed(window: Window, stride: tuple[int, int]) -> Window | None:
    """The phases of a transposed convolution, which was read as a window over the upsampled image."""
    if window.stride != (1, 1) or window.dilation != (1, 1) or window.groups != 1:
        return None
    shift = tuple(k - 1 - p for k, p in zip(window.kernel, window.padding, strict=True))
    phases = Phases(stride, (shift[0], shift[1]), window.rows, window.columns)
    taps = [-(-k // s) for k, s in zip(window.kernel, stride, strict=True)]
    padding = [t - 1 - a // s for t, a, s in zip(taps, shift, stride, strict=True)]
    return replace(
        window, phases=phases, kernel=(taps[0], taps[1]), padding=(padding[0], padding[1]),
        rows=-(-window.rows // stride[0]), columns=-(-window.columns // stride[1]),
    )  # fmt: skip


def _is_flipped(weight: TensorLoad, f: tirx.Var, c: tirx.Var, taps: Sequence[tirx.Var], extents: Sequence[int]) -> bool:
    """Whether the weight is read as `weight[c, f, last - ry, last - rx]`, as a transposed convolution does."""
    if len(weight.indices) != 2 + len(taps) or not are(weight.indices[:2], [c, f]):
        return False
    places = [
        [evaluate(index, {tap: at}) for at in range(extent)]
        for index, tap, extent in zip(weight.indices[2:], taps, extents, strict=True)
    ]
    return all(place == list(reversed(range(extent))) for place, extent in zip(places, extents, strict=True))


def _epilogue(last: s_tir.SBlock, block: s_tir.SBlock, extents: Sequence[int]) -> Epilogue | None:
    if not are(last.body.indices, [axis.var for axis in last.iter_vars]):
        return None
    if [int(axis.dom.extent) for axis in last.iter_vars] != extents:  # the result is padded
        return None
    epilogue = Epilogue(tuple(axis.var for axis in last.iter_vars), last.body.value, block.writes[0].source)
    return epilogue if _reads_in_place(epilogue) else None


def _image(before: Sequence[s_tir.SBlock], read: tirx.Buffer, rank: int) -> _Image | None:
    """Read the blocks before the window; the first of them reads the image."""
    plain = _Image(read, (1,) * rank, (0,) * rank, LOWEST)
    if not before:
        return plain
    *first, last = before
    if not last.writes[0].source.same_as(read):
        return None
    upsampled = _upsampled(last, rank)
    if upsampled is not None:
        return replace(plain, data=upsampled[0], upsampled=upsampled[1], fill=0.0) if not first else None
    padding = _padding(last, rank)
    if padding is None:
        return None
    image = _Image(padding[0], (1,) * rank, padding[1], padding[2])
    if not first:
        return image
    upsampled = _upsampled(first[0], rank)
    if upsampled is None or image.fill != 0 or not first[0].writes[0].source.same_as(image.data):
        return None
    return replace(image, data=upsampled[0], upsampled=upsampled[1])


def _terms(store: tirx.Stmt) -> tuple[bool, TensorLoad, TensorLoad | None] | None:
    """Whether a block computes a maximum; its load of data; its load of the weight, if any."""
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, tirx.Add | tirx.Max):
        return None
    maximum, term = isinstance(store.value, tirx.Max), store.value.b
    if isinstance(term, tirx.Mul) and not maximum:
        is_product = isinstance(term.a, TensorLoad) and isinstance(term.b, TensorLoad)
        return (False, term.a, term.b) if is_product else None
    return (maximum, term, None) if isinstance(term, TensorLoad) else None


def _selection(block: s_tir.SBlock, rank: int) -> tuple[Expr, TensorLoad, float] | None:
    """The condition, the element and the constant of a block `if_then_else(condition, element, constant)`."""
    value, axes = block.body.value, [axis.var for axis in block.iter_vars]
    if not (isinstance(value, Call) and value.op.name.endswith("if_then_else")):
        return None
    condition, inside, fill = value.args
    if not isinstance(inside, TensorLoad) or not isinstance(fill, tirx.FloatImm) or len(inside.indices) != 2 + rank:
        return None
    return (condition, inside, float(fill.value)) if are(inside.indices[:2], axes[:2]) else None


def _padding(pad: s_tir.SBlock, rank: int) -> tuple[tirx.Buffer, tuple[int, ...], float] | None:
    """The image that a block pads, its padding at top and left, and the value."""
    selection, axes = _selection(pad, rank), [axis.var for axis in pad.iter_vars]
    if selection is None:
        return None
    _, inside, fill = selection
    padding = []
    for axis, index in zip(axes[2:], inside.indices[2:], strict=True):
        shift = evaluate(index, {axis: 0})
        if shift is None or evaluate(index, {axis: 9}) != shift + 9:
            return None
        padding.append(-shift)
    return inside.source, tuple(padding), fill


def _upsampled(block: s_tir.SBlock, rank: int) -> tuple[tirx.Buffer, tuple[int, ...]] | None:
    """The image that a block upsamples with zeros between its elements, and the factors."""
    selection, axes = _selection(block, rank), [axis.var for axis in block.iter_vars][2:]
    if selection is None or selection[2] != 0:
        return None
    condition, inside, _ = selection
    factors = []
    for axis, index in zip(axes, inside.indices[2:], strict=True):
        places = [evaluate(index, {axis: at}) for at in range(2 * MAX_UPSAMPLING)]
        factor = places.count(0)
        rest = dict.fromkeys(axes, 0)
        selected = [evaluate(condition, {**rest, axis: at}) for at in range(2 * MAX_UPSAMPLING)]
        if not factor or any(
            p != at // factor or t != (at % factor == 0) for at, (p, t) in enumerate(zip(places, selected, strict=True))
        ):
            return None
        factors.append(factor)
    return inside.source, tuple(factors)


def _reads_in_place(epilogue: Epilogue) -> bool:
    """Whether each result of the window is used only for the output element of the same index."""
    in_place: list[bool] = []

    def load(node: TensorLoad) -> None:
        if node.source.same_as(epilogue.source):
            in_place.append(are(node.indices, list(epilogue.axes)))

    tvm_ffi.structural_walk(epilogue.value, [(TensorLoad, load)], order="pre")
    return all(in_place)
