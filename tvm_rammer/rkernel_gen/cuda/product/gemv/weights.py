"""The weights of a product with few rows: which parameter they are, and how they are packed."""

from collections.abc import Collection

from tvm import tirx
from tvm.ir import TensorLoad

from .....kernel import Pack
from ..elements import has_calls
from ..parts import Product
from ..problem import padded
from .tile import GemvTile


def weights_of(func: tirx.PrimFunc, product: Product, constants: Collection[int]) -> int | None:
    """The parameter that is the product's weights, single precision, of a plain matrix; None where there is none."""
    value = product.operands[1].value
    plain = product.s.extent == 1 and product.taps.extent == 1 and not has_calls(product.operands[0].value)
    if not plain or not isinstance(value, TensorLoad):
        return None
    if any(operand.dtype != "float32" for operand in product.operands) or product.dtype != "float32":
        return None
    found = [n for n in constants if func.params[n].same_as(value.source)]
    return found[0] if found and _dimensions(product) is not None else None


def _dimensions(product: Product) -> tuple[int, int] | None:
    """The dimensions of the weights that are terms and columns, if each is one."""
    load = product.operands[1].value
    found = []
    for axes in (product.channels, product.j):
        moving = [v for v, extent in zip(axes.variables, axes.extents, strict=True) if extent > 1]
        dims = [d for d, index in enumerate(load.indices) if any(index.same_as(v) for v in moving)]
        if len(moving) != 1 or len(dims) != 1 or int(load.source.shape[dims[0]]) != axes.extent:
            return None
        found += dims
    others = [int(n) for d, n in enumerate(load.source.shape) if d not in found]
    return (found[0], found[1]) if all(n == 1 for n in others) else None


def pack_of(product: Product, tile: GemvTile) -> Pack:
    """The weights of each rTask side by side, term by term, padded to whole tiles."""
    dims = _dimensions(product)
    if dims is None:
        raise ValueError("the weights are no matrix of terms and columns")
    terms, columns = dims
    shape = [int(n) for n in product.operands[1].value.source.shape]
    batch = tile.batch(product.channels.extent, product.i.extent) * tile.teams
    shape[terms] = padded(product.channels.extent, batch)
    shape[columns] = padded(product.j.extent, tile.columns)
    split = [[n] for n in shape]
    split[columns] = [shape[columns] // tile.columns, tile.columns]
    first = {d: sum(len(part) for part in split[:d]) for d in range(len(shape))}
    chosen = [first[columns], first[terms], first[columns] + 1]
    whole = tuple(n for part in split for n in part)
    return Pack(tuple(shape), whole, (*(a for a in range(len(whole)) if a not in chosen), *chosen))
