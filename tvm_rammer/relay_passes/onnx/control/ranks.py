"""One element with an axis, and without: where no reader can tell them apart, what depends on data may be either.

Exporters (of PaddlePaddle) mix them: one branch of an If returns a number, the other one a vector of it. A call has
results of one shape; so such a result is reshaped, if all that reads it makes the same of both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper

from ...bindings import dtype_of, sizes_of, tensor_fields
from ..inline import subgraphs
from ..lower.elementwise import BY_ELEMENT
from .part import Reader

_ONE = ((), (1,))


@dataclass(frozen=True, slots=True)
class Result:
    """What a module returns: an element type, and sizes, as far as they are known; None where not even how many.

    Its `shape` is None unless it is static.
    """

    dtype: str
    sizes: tuple[int | None, ...] | None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape, if it is static."""
        known = tuple(size for size in self.sizes or () if size is not None)
        return known if self.sizes is not None and len(known) == len(self.sizes) else None

    def __str__(self) -> str:
        sizes = ["..."] if self.sizes is None else ["?" if size is None else str(size) for size in self.sizes]
        return f"{self.dtype}[{', '.join(sizes)}]"


def either(a: Result, b: Result) -> Result | None:
    """What is known of a result that is one of two; None where they differ in more than their sizes."""
    if a == b:
        return a
    if a.dtype != b.dtype or a.sizes is None or b.sizes is None or len(a.sizes) != len(b.sizes):
        return None
    return Result(a.dtype, tuple(n if n == m else None for n, m in zip(a.sizes, b.sizes, strict=True)))


def results_of(mod: tvm.IRModule) -> list[Result]:
    """What the "main" of a module returns."""
    return [Result(dtype_of(field), sizes_of(field)) for field in tensor_fields(mod["main"].ret_ty) or []]


def make_alike(
    graph: onnx.GraphProto,
    first: int,
    found: Sequence[Result],
    wanted: Sequence[Result],
    readers: Sequence[Iterable[Reader]],
) -> bool:
    """Reshape results of a graph, in place, where one element has no axis or one, and nobody can tell which.

    Parameters
    ----------
    graph : onnx.GraphProto
        A branch or a body.
    first : int
        Where in it the results begin that are looked at.
    found, wanted : sequence of Result
        What these are, and what they are to be.
    readers : sequence of iterable of Reader
        For each, under which names it is read.

    Returns
    -------
    bool
        Whether any was reshaped.
    """
    changed = False
    for at, (result, other, read) in enumerate(zip(found, wanted, readers, strict=True)):
        if result == other or result.dtype != other.dtype or {result.shape, other.shape} != set(_ONE):
            continue
        if not any(_told_apart(each) for each in read):
            output = graph.output[first + at]
            alike, shape = f"{output.name}/alike", f"{output.name}/alike/shape"
            graph.initializer.append(numpy_helper.from_array(np.array(other.shape, np.int64), shape))
            graph.node.append(helper.make_node("Reshape", [output.name, shape], [alike]))
            output.CopyFrom(helper.make_empty_tensor_value_info(alike))
            changed = True
    return changed


def _told_apart(reader: Reader) -> bool:
    """Whether the results of a graph depend on the axis of one value."""
    ranks = {name: len(kind.shape.dim) for name, kind in reader.types.items() if kind.HasField("shape")}
    return bool(reader.name) and _spreads(reader.graph, {reader.name}, ranks, {})


def _spreads(
    graph: onnx.GraphProto, names: Iterable[str], ranks: Mapping[str, int], outer: Mapping[str, onnx.TensorProto]
) -> bool:
    """Whether values that may have an axis or none come to a result, or to a node that makes another thing of each."""
    constants = {**outer, **{tensor.name: tensor for tensor in graph.initializer}}
    ranks = {**ranks, **{tensor.name: len(tensor.dims) for tensor in graph.initializer}}
    either = set(names)
    for node in graph.node:
        if any(_spreads(inner, either, ranks, constants) for inner in subgraphs(node)):
            return True
        read = [name for name in node.input if name in either]
        if not read or _takes_both(node, read, constants):
            continue
        if node.domain not in ("", "ai.onnx") or node.op_type not in BY_ELEMENT - {"PRelu"}:
            return True
        if not any(ranks.get(name, 0) for name in node.input if name not in either):
            either.update(node.output)
    return any(value.name in either for value in graph.output)


def _takes_both(node: onnx.NodeProto, read: Sequence[str], constants: Mapping[str, onnx.TensorProto]) -> bool:
    """Whether a node makes the same of a number and a vector of it: a condition, or what gets a shape of its own."""
    if node.domain not in ("", "ai.onnx") or len(read) > 1:
        return False
    if node.op_type in ("If", "Loop"):
        return read[0] not in node.input[2:]
    shape = constants.get(node.input[1]) if node.op_type == "Reshape" else None
    return shape is not None and read[0] == node.input[0] and bool(numpy_helper.to_array(shape).all())
