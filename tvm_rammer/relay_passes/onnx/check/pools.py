"""Windows of pools that ceil_mode leaves out, since they begin behind the image: onnx's shape inference counts them."""

from collections.abc import Callable, Sequence

import onnx
from onnx import helper

POOLS = frozenset(["AveragePool", "LpPool", "MaxPool"])


def leave_out(
    kind: onnx.TypeProto, image: onnx.TypeProto, attribute: Callable[[str], onnx.AttributeProto | None]
) -> onnx.TypeProto:
    """The type of a pool's result, with as many windows as it has.

    Parameters
    ----------
    kind : onnx.TypeProto
        As onnx infers it.
    image : onnx.TypeProto
        Of what the pool reads.
    attribute : callable
        From the name of an attribute of the pool to the attribute.
    """

    def numbers(name: str, default: Sequence[int]) -> Sequence[int]:
        found = attribute(name)
        return list(helper.get_attribute_value(found)) if found is not None else default

    ceil, padding = attribute("ceil_mode"), attribute("auto_pad")
    corrected = onnx.TypeProto()
    corrected.CopyFrom(kind)
    dims, sizes = corrected.tensor_type.shape.dim[2:], image.tensor_type.shape.dim[2:]
    if ceil is None or not ceil.i or (padding is not None and padding.s.startswith(b"SAME")) or len(dims) != len(sizes):
        return corrected
    strides, pads = numbers("strides", [1] * len(dims)), numbers("pads", [0] * 2 * len(dims))
    for dim, size, stride, pad in zip(dims, sizes, strides, pads, strict=False):
        known = dim.HasField("dim_value") and size.HasField("dim_value")
        if known and (dim.dim_value - 1) * stride >= size.dim_value + pad:
            dim.dim_value -= 1
    return corrected
