"""TopK of as many elements as the data say, such as the boxes of a detector that has at most so many."""

from collections.abc import Sequence
from typing import Any

from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import TopK, onnx_input

from .names import computed, shape_with_names


def top_k(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """Convert a TopK; where it finds as many as the data say, all elements are sorted, and the first ones taken.

    Parameters
    ----------
    bb : relax.BlockBuilder
    inputs : sequence
        The elements, and how many; before opset 10 an attribute says that.
    attributes : dict

    Returns
    -------
    relax.Expr
        A tuple: the elements, and where they are. That there are so many is checked like any other index.
    """
    if len(inputs) == 1:
        return TopK._impl_v1(bb, onnx_input(list(inputs)), attributes, [{}, {}])
    data, count = inputs
    if computed(count) is None:
        return TopK._impl_v11(bb, onnx_input(list(inputs)), attributes, [{}, {}])
    axis, largest = attributes.get("axis", -1), attributes.get("largest", 1)
    (names,) = shape_with_names(bb, [count])
    found = bb.emit(relax.op.topk(data, -1, axis, ret_type="both", largest=largest, dtype="int64"))
    first = bb.emit(relax.op.arange(0, names[0], 1, dtype="int64"))
    return relax.Tuple([bb.emit(relax.op.take(relax.TupleGetItem(found, n), first, axis)) for n in range(2)])
