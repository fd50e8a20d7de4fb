"""A node of an ONNX graph, and what is known of its inputs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ....errors import ModelError, UnsupportedOperatorError
from ..check.names import name_of
from ..infer import static_dims
from .element_types import FLOATS

Constants = Mapping[str, onnx.TensorProto]

Types = Mapping[str, onnx.TypeProto.Tensor]


def attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """An attribute of a node, or what it is by default: in float32, as ONNX keeps numbers."""
    default = float(np.float32(default)) if isinstance(default, float) else default
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node, and what is known of its inputs.

    Parameters
    ----------
    node : onnx.NodeProto
    constants : mapping of str to onnx.TensorProto
        All that it can see.
    types : mapping of str to onnx.TypeProto.Tensor
        Of the model's values, as far as they are known.
    last : bool
        Whether no more constants will become known.
    """

    node: onnx.NodeProto
    constants: Constants
    types: Types
    last: bool = False

    def input(self, index: int) -> str:
        """The name of an input; empty where it is left out."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def array(self, index: int) -> np.ndarray | None:
        """The values of an input that is a constant, else None."""
        tensor = self.constants.get(self.input(index))
        return None if tensor is None else numpy_helper.to_array(tensor)

    def dims(self, index: int) -> list[int] | None:
        """The static shape of an input; None where it is not known."""
        tensor = self.constants.get(self.input(index))
        return list(tensor.dims) if tensor is not None else static_dims(self.types.get(self.input(index)))

    def extents(self, index: int) -> list[int | None] | None:
        """The shape of an input, with None for what only the data say; None where not even its rank is known."""
        if (dims := self.dims(index)) is not None:
            return list(dims)
        ty = self.types.get(self.input(index))
        if ty is None or not ty.HasField("shape"):
            return None
        return [dim.dim_value if dim.HasField("dim_value") else None for dim in ty.shape.dim]

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute, or what it is by default."""
        return attribute(self.node, name, default)

    def given(self, names: Iterable[str]) -> dict[str, Any]:
        """Those of some attributes that the node has."""
        found = {name: self.attribute(name, None) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def float_dtype(self) -> np.dtype[Any]:
        """The type of the first input that is a floating one, else float32."""
        elements = (kind.elem_type for kind in map(self.types.get, self.node.input) if kind)
        first = next((element for element in elements if element in FLOATS), TensorProto.FLOAT)
        return np.dtype(helper.tensor_dtype_to_np_dtype(first))

    def require(self, holds: bool, what: str) -> None:
        """Refuse a node that says something impossible.

        Raises
        ------
        ModelError
        """
        if not holds:
            self.deny(what)

    def deny(self, what: str) -> NoReturn:
        """Refuse a node that says something impossible, as `require` does where it does not hold."""
        raise ModelError(f"{self._told} has {what}; export the model again")

    def refuse(self, what: str, remedy: str) -> NoReturn:
        """Refuse a node that is legal, and that cannot be compiled.

        Raises
        ------
        UnsupportedOperatorError
        """
        raise UnsupportedOperatorError(f"{self._told} {what}; {remedy}")

    def refuse_at_last(self, what: str, remedy: str) -> None:
        """Refuse a node as `refuse` does, but not while what it lacks may become known: it may be made of shapes."""
        if self.last:
            self.refuse(what, remedy)

    @property
    def output(self) -> str:
        """The name of the first result."""
        return str(self.node.output[0])

    @property
    def _told(self) -> str:
        return f"{self.node.op_type} {name_of(self.node)!r}"
