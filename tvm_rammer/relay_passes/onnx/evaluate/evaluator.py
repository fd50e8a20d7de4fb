"""onnx's reference evaluator, without its mistakes."""

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator


def evaluator(model: onnx.ModelProto) -> "ReferenceEvaluator":
    """Make an evaluator of a model.

    Parameters
    ----------
    model : onnx.ModelProto

    Returns
    -------
    onnx.reference.ReferenceEvaluator
        It reads nodes as ONNX defines them where its own operators do not.
    """
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model, new_ops=_corrected())


def run_node(
    node: onnx.NodeProto, arrays: Mapping[str, np.ndarray], model: onnx.ModelProto
) -> list[onnx.TensorProto] | None:
    """Evaluate one node; None where onnx's reference evaluator cannot, or would be wrong."""
    if _begins_before(node, arrays):
        return None
    try:
        inputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in arrays.items()
        ]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "fold", inputs, outputs)
        alone = helper.make_model(graph, opset_imports=model.opset_import)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = evaluator(alone).run(None, dict(arrays))
        names = [name for name in node.output if name]
        if not all(isinstance(r, np.ndarray | np.generic) for r in results):
            return None
        return [numpy_helper.from_array(np.asarray(r), n) for n, r in zip(names, results, strict=True)]
    except Exception:  # whatever the evaluator lacks stays in the graph
        return None


def _begins_before(node: onnx.NodeProto, arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether a Slice goes backwards from before an axis: ONNX has an element there, and its evaluator none."""
    if node.op_type != "Slice" or len(node.input) < 5:
        return False
    data, begins, _, axes, steps = (arrays.get(name) for name in node.input)
    if data is None or begins is None or steps is None:
        return False
    places = range(begins.size) if axes is None else axes.ravel().tolist()
    numbers = zip(places, begins.ravel().tolist(), steps.ravel().tolist(), strict=False)
    return any(by < 0 and -data.ndim <= n < data.ndim and first < -data.shape[n] for n, first, by in numbers)


@cache
def _corrected() -> list[type]:
    """Operators in the place of the evaluator's own; to import it takes time, so they are made when they are needed."""
    from onnx.reference.op_run import OpRun

    class Clip(OpRun):
        """A bound that is not given is no bound to the evaluator, and the least or largest number by ONNX."""

        def _run(self, data: np.ndarray, *bounds: np.ndarray | None, **given: float | None) -> tuple[Any, ...]:
            ends = np.finfo(data.dtype) if data.dtype.kind == "f" else np.iinfo(data.dtype)
            low, high = (*bounds, None, None)[:2] if not given else (given["min"], given["max"])
            clipped = np.clip(data, ends.min if low is None else low, ends.max if high is None else high)
            return (clipped.astype(data.dtype),)

    class Unsqueeze(OpRun):
        """Before opset 13 the evaluator adds one axis after the other, as if each counted those before it alone."""

        def _run(self, data: np.ndarray, axes: Sequence[int] | np.ndarray) -> tuple[Any, ...]:
            return (np.expand_dims(data, tuple(np.ravel(axes).tolist())),)

    class Squeeze(OpRun):
        """An empty input of axes is none to the evaluator, and all to ONNX Runtime: a node that has it is refused."""

        def _run(self, data: np.ndarray, axes: Sequence[int] | np.ndarray | None = None) -> tuple[Any, ...]:
            if isinstance(axes, np.ndarray) and axes.size == 0 and 1 in data.shape:
                raise NotImplementedError("an empty list of axes")
            chosen = () if axes is None else tuple(np.ravel(axes).tolist())
            return (np.squeeze(data, chosen or None),)

    return [Clip, Squeeze, Unsqueeze]
