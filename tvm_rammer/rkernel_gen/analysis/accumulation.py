"""Reductions as values: `out[i] = combine(out[i], term)`, from an initial value."""

from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad

_COMBINE = {tirx.Add: "sum", tirx.Mul: "product", tirx.Max: "maximum", tirx.Min: "minimum"}


@dataclass(frozen=True, slots=True)
class Accumulation:
    """What a reduction does in each iteration.

    Parameters
    ----------
    combine : str
        "sum", "product", "maximum" or "minimum".
    initial : float
    term : Expr
        It does not read what the block writes.
    """

    combine: str
    initial: float
    term: Expr


def read_accumulation(block: s_tir.SBlock) -> Accumulation | None:
    """The accumulation of a block; None where it is of another form, or begins with no constant."""
    store, init = block.body, block.init
    if not isinstance(store, tirx.BufferStore) or not isinstance(init, tirx.BufferStore):
        return None
    combine = _COMBINE.get(type(store.value))
    if combine is None or not _same_element(store, init.buffer, init.indices):
        return None
    old, term = store.value.a, store.value.b
    if not isinstance(old, TensorLoad) or not _same_element(store, old.source, old.indices):
        return None
    if not isinstance(init.value, tirx.FloatImm | tirx.IntImm) or _reads(term, store.buffer):
        return None
    return Accumulation(combine, float(init.value.value), term)


def _same_element(store: tirx.BufferStore, buffer: tirx.Var, indices: list[Expr]) -> bool:
    return bool(buffer.same_as(store.buffer)) and tvm_ffi.structural_equal(store.indices, indices)


def _reads(value: Expr, buffer: tirx.Var) -> bool:
    found: list[bool] = []
    tvm_ffi.structural_walk(value, [(TensorLoad, lambda load: found.append(load.source.same_as(buffer)))], order="pre")
    return any(found)
