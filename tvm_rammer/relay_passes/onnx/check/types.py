"""Element types that TVM does not compute in, and sizes that cannot be addressed, are refused."""

from collections.abc import Mapping

import onnx
from onnx import TensorProto

from ....errors import ModelError, UnsupportedOperatorError
from ....ir import MOST_ELEMENTS
from ..infer import static_dims
from ..inline import all_nodes
from ..read import elements
from .names import describe

_NO_TYPES = frozenset(
    number
    for name, number in TensorProto.DataType.items()
    if name.startswith(("FLOAT8", "FLOAT4", "INT4", "INT2", "UINT4", "UINT2", "STRING", "COMPLEX"))
)
"""Types in which this compiler does not compute."""

_SHAPES = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1, "Tile": 1}
"""Operators that take a shape, and as which input."""


def check_types(model: onnx.ModelProto, types: Mapping[str, onnx.TypeProto.Tensor]) -> None:
    """Check that TVM computes in all element types of a model, and that all sizes can be addressed.

    Raises
    ------
    UnsupportedOperatorError
        Names an operator that reads or makes another type.
    ModelError
        A tensor is too large, or has a negative size, or cannot be the shape that it is taken for.
    """
    kinds = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    kinds |= {name: kind.elem_type for name, kind in types.items()}
    ranks = {tensor.name: len(tensor.dims) for tensor in model.graph.initializer}
    ranks |= {name: len(kind.shape.dim) for name, kind in types.items() if kind.HasField("shape")}
    for node in all_nodes(model.graph):
        for name in node.input[_SHAPES[node.op_type] :][:1] if node.op_type in _SHAPES else ():
            kind, rank = kinds.get(name, 0), ranks.get(name, 1)
            if kind not in (0, TensorProto.INT64) or rank != 1:
                raise ModelError(
                    f"{describe(node)} takes {name!r} for a shape, which has {TensorProto.DataType.Name(kind)} values "
                    f"and {rank} axes; give it INT64 values and one axis"
                )
        for name in (*node.input, *node.output):
            _check_type(kinds.get(name, 0), f"{describe(node)} has", f" in {name!r}")
        for name in node.output:
            dims = static_dims(types.get(name)) or []
            if elements(dims) >= MOST_ELEMENTS:
                raise ModelError(
                    f"{describe(node)} makes {name!r} of the shape {dims}: {elements(dims)} elements, of which less "
                    f"than {MOST_ELEMENTS} can be addressed; give smaller sizes"
                )
    for value in model.graph.output:  # which may be an input, or a constant
        _check_type(kinds.get(value.name, 0), f"the output {value.name!r} has")


def _check_type(kind: int, who: str, where: str = "") -> None:
    """Refuse an element type in which this compiler does not compute."""
    if kind in _NO_TYPES:
        remedy = "export the model with 8-bit integers, or with floating point of 16 bits or more"
        if kind == TensorProto.STRING:
            remedy = "keep the part of the model that is without strings (onnx.utils.extract_model)"
        raise UnsupportedOperatorError(
            f"{who} {TensorProto.DataType.Name(kind)} values{where}, for which TVM has no arithmetic here; {remedy}"
        )
