"""Recognises a fused function as a sliding window: all that `Window` says of it is proven, or it is none."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import TensorLoad
from tvm.s_tir.schedule import SBlockRV, ScheduleError

from ...analysis.accumulation import read_accumulation
from ...analysis.affine import are, linear
from ...analysis.blocks import SPATIAL, blocks_of, has_branch, is_reduction, new_schedule, one_result, outputs_of
from ...analysis.work import shape_of
from .image import read_image
from .index import groups_of, is_filter_of_group, line
from .problem import Epilogue, Phases, Window


@lru_cache(maxsize=64)  # asked for each tiling, by two rules
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
    return found if found is not None and _accesses_parameters(found, func) else None


def _accesses_parameters(window: Window, func: tirx.PrimFunc) -> bool:
    """Whether all buffers of a window are parameters of a function, the image, the weight and the output different."""
    own = [buffer for buffer in (window.data, window.weight, window.out) if buffer is not None]
    others: list[tirx.Var] = []
    if window.epilogue is not None:
        loads: list[TensorLoad] = []
        tvm_ffi.structural_walk(window.epilogue.value, [(TensorLoad, loads.append)], order="pre")
        others = [load.source for load in loads if not load.source.same_as(window.epilogue.source)]
    params = set(func.params)
    return len(set(own)) == len(own) and params >= {*own, *others} and window.out not in others


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


def _read(block: s_tir.SBlock, before: Sequence[s_tir.SBlock], last: s_tir.SBlock | None) -> Window | None:
    axes, types = [axis.var for axis in block.iter_vars], [axis.iter_type for axis in block.iter_vars]
    extents = [int(axis.dom.extent) for axis in block.iter_vars]
    terms = _terms(block)
    if terms is None:
        return None
    maximum, initial, data, weight = terms
    rank = len(data.indices) - 2
    spatial, reduced = 2 + rank, rank + (weight is not None)
    if rank not in (1, 2) or types[:spatial] != [SPATIAL] * spatial or len(axes) != spatial + reduced:
        return None
    if SPATIAL in types[spatial:] or not data.indices[0].same_as(axes[0]):
        return None
    if not are(block.body.indices, axes[:spatial]):
        return None
    channel = axes[spatial] if weight is not None else None
    channels = extents[spatial] if weight is not None else 1
    groups = groups_of(data.indices[1], axes[1], channel, extents[1], channels)
    found = [line(data.indices[2 + d], axes, axes[2 + d], axes[d - rank]) for d in range(rank)]
    lines = [one for one in found if one is not None]
    image = read_image(before, data.source, rank)
    if groups is None or len(lines) < rank or image is None:
        return None
    epilogue = _epilogue(last, block, extents[:spatial]) if last is not None else None
    if last is not None and epilogue is None:
        return None
    flipped = weight is not None and _is_flipped(weight, data, axes, extents, rank, groups)
    if weight is not None and not flipped and not _is_plain(weight, axes, extents, rank):
        return None
    window = Window(
        data=image.data, weight=weight.source if weight is not None else None,
        out=(last or block).writes[0].source, maximum=maximum,
        batch=extents[0], groups=groups, filters=extents[1] // groups, channels=channels,
        rows=_pair(extents[2:spatial], 1)[0], columns=extents[spatial - 1],
        kernel=_pair(extents[-rank:], 1), stride=_pair([one[0] for one in lines], 1),
        dilation=_pair([one[1] for one in lines], 1),
        padding=_pair([pad - one[2] for pad, one in zip(image.padding, lines, strict=True)], 0),
        fill=image.fill, initial=initial, epilogue=epilogue, rank=rank,
    )  # fmt: skip
    upsampled = _pair(image.upsampled, 1)
    if flipped:
        return _transposed(window, upsampled)
    return window if upsampled == (1, 1) else None


def _terms(block: s_tir.SBlock) -> tuple[bool, float, TensorLoad, TensorLoad | None] | None:
    """Whether a block computes a maximum; from which value; its load of data; its load of the weight, if any."""
    found = read_accumulation(block)
    if found is None or found.combine not in ("sum", "maximum"):
        return None
    term, maximum = found.term, found.combine == "maximum"
    if isinstance(term, tirx.Mul) and not maximum:
        is_product = isinstance(term.a, TensorLoad) and isinstance(term.b, TensorLoad)
        return (False, found.initial, term.a, term.b) if is_product else None
    return (maximum, found.initial, term, None) if isinstance(term, TensorLoad) else None


def _pair(values: Sequence[int], missing: int) -> tuple[int, int]:
    """Vertical and horizontal value; a window over rows has no vertical one."""
    return (missing, values[0]) if len(values) == 1 else (values[0], values[1])


def _transposed(window: Window, stride: tuple[int, int]) -> Window | None:
    """The phases of a transposed convolution, which was read as a window over the upsampled image."""
    if window.stride != (1, 1) or window.dilation != (1, 1):
        return None
    shift = tuple(k - 1 - p for k, p in zip(window.kernel, window.padding, strict=True))
    phases = Phases(stride, (shift[0], shift[1]), window.kernel, window.rows, window.columns)
    taps = [-(-k // s) for k, s in zip(window.kernel, stride, strict=True)]
    padding = [t - 1 - a // s for t, a, s in zip(taps, shift, stride, strict=True)]
    return replace(
        window, phases=phases, kernel=(taps[0], taps[1]), padding=(padding[0], padding[1]),
        rows=-(-window.rows // stride[0]), columns=-(-window.columns // stride[1]),
    )  # fmt: skip


def _is_plain(weight: TensorLoad, axes: Sequence[tirx.Var], extents: Sequence[int], rank: int) -> bool:
    """Whether the weight is read as `weight[f, c, ry, rx]`, and is no larger than that."""
    used = [1, *range(2 + rank, len(axes))]
    return are(weight.indices, [axes[a] for a in used]) and shape_of(weight.source) == tuple(extents[a] for a in used)


def _is_flipped(
    weight: TensorLoad, data: TensorLoad, axes: Sequence[tirx.Var], extents: Sequence[int], rank: int, groups: int
) -> bool:
    """Whether the weight is read as `weight[c', f', last - ry, last - rx]`, as a transposed convolution does.

    c' is the channel that is read of the data, f' the filter within its group.
    """
    taps, filters = list(range(3 + rank, len(axes))), extents[1] // groups
    shape = (extents[2 + rank] * groups, filters, *(extents[a] for a in taps))
    if shape_of(weight.source) != shape or not is_filter_of_group(weight.indices[1], axes[1], extents[1], filters):
        return False
    if not tvm_ffi.structural_equal(weight.indices[0], data.indices[1]):
        return False
    pairs = zip(weight.indices[2:], taps, strict=True)
    return all(linear(index, [axes[a]]) == (-1, extents[a] - 1) for index, a in pairs)


def _epilogue(last: s_tir.SBlock, block: s_tir.SBlock, extents: Sequence[int]) -> Epilogue | None:
    axes = [axis.var for axis in last.iter_vars]
    if not isinstance(last.body, tirx.BufferStore) or not are(last.body.indices, axes):
        return None
    if [int(axis.dom.extent) for axis in last.iter_vars] != extents:  # the result is padded
        return None
    epilogue = Epilogue(tuple(axes), last.body.value, block.writes[0].source)
    return epilogue if _reads_in_place(epilogue) else None


def _reads_in_place(epilogue: Epilogue) -> bool:
    """Whether each result of the window is used only for the output element of the same index."""
    in_place: list[bool] = []

    def load(node: TensorLoad) -> None:
        if node.source.same_as(epilogue.source):
            in_place.append(are(node.indices, list(epilogue.axes)))

    tvm_ffi.structural_walk(epilogue.value, [(TensorLoad, load)], order="pre")
    return all(in_place)
