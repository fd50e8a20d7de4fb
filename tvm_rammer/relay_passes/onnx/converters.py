"""Operators that go straight to Relax, since no others of ONNX say what they do, or TVM's converter is wrong."""

from collections.abc import Callable, Sequence
from typing import Any

import onnx
from onnx import helper
from tvm import relax, te, tirx


def _bit_cast(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """The same bits as another type of the same width."""
    dtype = str(helper.tensor_dtype_to_np_dtype(attributes["to"]))
    source = str(inputs[0].ty.dtype)
    if dtype == source:
        return inputs[0]
    narrow = {"bool": "uint8"}

    def element(value: Any) -> Any:
        value = value.astype("uint8") if source == "bool" else value
        if narrow.get(source, source) == dtype:
            return value
        return value.astype("bool") if dtype == "bool" else tirx.reinterpret(dtype, value)

    return bb.emit_te(lambda x: te.compute(x.shape, lambda *i: element(x(*i)), name="bitcast"), inputs[0])


def _cum_prod(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """Products along an axis."""
    axis = int(inputs[1].value.numpy().item())
    value, backward = inputs[0], bool(attributes.get("reverse", 0))
    if backward:
        value = bb.emit(relax.op.flip(value, axis))
    value = relax.op.cumprod(value, axis, exclusive=bool(attributes.get("exclusive", 0)))
    return relax.op.flip(bb.emit(value), axis) if backward else value


def _sequence_insert(_bb: relax.BlockBuilder, inputs: Sequence[Any], _attributes: dict[str, Any]) -> relax.Expr:
    """A negative position counts from the last, before which it inserts."""
    items = list(inputs[0])
    place = int(inputs[2].value.numpy().item()) if len(inputs) > 2 and inputs[2] is not None else len(items)
    if not -len(items) <= place <= len(items):
        raise ValueError(f"position {place} in a sequence of {len(items)}")
    items.insert(place, inputs[1])
    return relax.Tuple(items)


Converter = Callable[[relax.BlockBuilder, Sequence[Any], dict[str, Any]], relax.Expr]

CONVERTERS: dict[str, Converter] = {
    "BitCast": _bit_cast,
    "CumProd": _cum_prod,
    "SequenceInsert": _sequence_insert,
}
"""By the name of one of ONNX's own operators."""


def has_own(node: onnx.NodeProto) -> bool:
    """Whether a node's operator goes to Relax by a converter of ours."""
    return node.domain in ("", "ai.onnx") and node.op_type in CONVERTERS
