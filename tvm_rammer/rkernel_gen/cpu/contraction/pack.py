"""How weights are packed: a vector of output channels lies together."""

from tvm import tirx
from tvm.ir import Expr

from ....kernel import Pack
from .tile import ContractionTile


def pack_of(shape: tuple[int, ...], dim: int, tile: ContractionTile, dot: int = 1) -> Pack:
    """Pack weights with the vector axis split: [.., channel, ..] becomes [channel // simd, .., channel % simd].

    With `dot`, where the weights are a matrix, its other axis is split, too: `dot` elements of each channel come last.
    """
    simd, (channels, _) = tile.simd, tile.covered(shape[dim], 1)
    blocks = (dim, simd) if channels > shape[dim] else None
    shape = (*shape[:dim], channels, *shape[dim + 1 :])
    if dot > 1:
        steps = (simd, dot) if dim == 0 else (dot, simd)
        split = tuple(n for extent, step in zip(shape, steps, strict=True) for n in (extent // step, step))
        channel, term = 2 * dim, 2 * (1 - dim)
        return Pack(shape, split, (channel, term, channel + 1, term + 1), blocks=blocks)
    split = (*shape[:dim], shape[dim] // simd, simd, *shape[dim + 1 :])
    rest = [a for a in range(len(split)) if a not in (dim, dim + 1)]
    return Pack(shape, split, (dim, *rest, dim + 1), blocks=blocks)


def index_map_of(dim: int, simd: int, ndim: int, dot: int = 1) -> tirx.IndexMap:
    """The same for TVM: where each element of weights of `ndim` dimensions goes."""

    def ends(*index: Expr) -> tuple[Expr, ...]:
        return (index[dim] // simd, *index[:dim], *index[dim + 1 :], index[dim] % simd)

    def groups(*index: Expr) -> tuple[Expr, ...]:
        channel, term = index[dim], index[1 - dim]
        return (channel // simd, term // dot, channel % simd, term % dot)

    return tirx.IndexMap.from_func(ends if dot == 1 else groups, ndim=ndim)
