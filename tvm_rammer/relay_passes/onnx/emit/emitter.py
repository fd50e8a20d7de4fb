"""The nodes that take the place of another one, in the making."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import helper, numpy_helper

from ..inline import copy_tensor
from .element_types import HALVES


class Emitter:
    """Collects the nodes and constants that take a node's place. Equal nodes are one.

    Whatever adds a node returns the name of its result.

    Parameters
    ----------
    node : onnx.NodeProto
        Has at least one result that has a name; all new names begin with it, and go on with `how`.
    opset : int
        Of the model, 10 or later.
    dtype : numpy.dtype
        Of constants that are numbers.
    how : str
        Another one for each pass, since what a pass makes of a node may have the same results.

    Attributes
    ----------
    opset : int
    dtype : numpy.dtype
    nodes, tensors : list
        What was added.
    reals : dict of str to str
        Integer results, and under which names they are there as floating-point numbers.
    """

    def __init__(self, node: onnx.NodeProto, opset: int, dtype: DTypeLike = np.float32, how: str = "unrolled") -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.reals: dict[str, str] = {}
        # A node that took the place of another has the same results: count, or the names within would be the same, too.
        self._depth = int(node.doc_string) if node.doc_string.isdecimal() else 0
        self.prefix = f"{next(name for name in node.output if name)}/:{how}{self._depth or ''}/"
        self.opset, self.dtype = opset, dtype
        self._made: dict[object, str] = {}

    @property
    def elem(self) -> int:
        """ONNX's type of constants that are numbers."""
        return helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))

    @property
    def is_half(self) -> bool:
        """Whether these are of half precision."""
        return self.elem in HALVES

    def inner(self) -> "Emitter":
        """Another one, for the nodes of a subgraph."""
        inner = copy(self)
        inner.nodes, inner.tensors, inner.reals, inner._made = [], [], {}, {}
        inner.prefix = f"{self.prefix}step/"
        return inner

    def in_type(self, dtype: DTypeLike) -> "Emitter":
        """The same one for numbers of another type: what either adds, both have."""
        other = copy(self)
        other.dtype = dtype
        return other

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of one result."""
        key = (kind, inputs, repr(attributes))
        if key not in self._made:
            self._made[key] = f"{self.prefix}{kind}{len(self.nodes)}"
            self.nodes.append(helper.make_node(kind, list(inputs), [self._made[key]], **attributes))
        return self._made[key]

    def number(self, value: float) -> str:
        """A constant scalar of the type that all is computed in."""
        return self.constant(np.array(value, self.dtype))

    def constant(self, array: np.ndarray) -> str:
        """A constant."""
        key = (str(array.dtype), array.shape, array.tobytes())
        if key not in self._made:
            self._made[key] = f"{self.prefix}constant{len(self.tensors)}"
            self.tensors.append(numpy_helper.from_array(array, self._made[key]))
        return self._made[key]

    def copy(self, tensor: onnx.TensorProto) -> str:
        """A constant that is one already, under a new name."""
        self.tensors.append(copy_tensor(tensor, f"{self.prefix}body/{tensor.name}"))
        return self.tensors[-1].name

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        """The same elements in another shape."""
        return self("Reshape", value, self.constant(np.array(shape, np.int64)))

    def part(self, value: str, axis: int, begin: int, end: int) -> str:
        """`value[..., begin:end, ...]` on one axis."""
        bounds = [self.constant(np.array([n], np.int64)) for n in (begin, end, axis)]
        return self("Slice", value, *bounds)

    def axes(self, kind: str, value: str, axis: int) -> str:
        """Squeeze or Unsqueeze one axis: an input since opset 13."""
        if self.opset < 13:
            return self(kind, value, axes=[axis])
        return self(kind, value, self.constant(np.array([axis], np.int64)))

    def sums(self, value: str, axis: int) -> str:
        """Sums along one axis, which stays with one element: an input since opset 13."""
        if self.opset < 13:
            return self("ReduceSum", value, axes=[axis], keepdims=1)
        return self("ReduceSum", value, self.constant(np.array([axis], np.int64)), keepdims=1)

    def join(self, values: Sequence[str], axis: int) -> str:
        """Values side by side on one axis."""
        return values[0] if len(values) == 1 else self("Concat", *values, axis=axis)

    def last(self, kind: str, *inputs: str, outputs: Sequence[str], **attributes: Any) -> None:
        """Add a node whose results have names already."""
        again = str(self._depth + 1)
        self.nodes.append(helper.make_node(kind, list(inputs), list(outputs), doc_string=again, **attributes))

    def name(self, value: str, name: str) -> None:
        """Give a value one more name."""
        self.last("Identity", value, outputs=[name])
