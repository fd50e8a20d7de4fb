"""What a model should compute: ONNX's own reference, in float64."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from ...errors import ModelError


def model_inputs(model: onnx.ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    """Draw normal float32 values for each input that is no initializer.

    Raises
    ------
    ModelError
        An input is of another type, or of open shape.
    """
    rng = np.random.default_rng(seed)
    weights = {t.name for t in model.graph.initializer}
    made = {}
    for given in model.graph.input:
        if given.name in weights:
            continue
        kind = given.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
        if kind.elem_type != TensorProto.FLOAT or 0 in shape:
            raise ModelError(f"input {given.name!r} has shape {shape}; a bundle needs float32 inputs of static shape")
        made[given.name] = rng.standard_normal(shape).astype(np.float32)
    return made


def reference_outputs(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Run a model of float32 in float64.

    Parameters
    ----------
    model : onnx.ModelProto
        Is not changed.
    inputs : mapping of str to numpy.ndarray

    Returns
    -------
    list of numpy.ndarray
        float64, in the order of the model's outputs.

    Raises
    ------
    ModelError
        The result is flat or not finite: it could not tell right from wrong.
    """
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for tensor in wide.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in (*wide.graph.input, *wide.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    del wide.graph.value_info[:]
    results = ReferenceEvaluator(wide).run(None, {name: array.astype(np.float64) for name, array in inputs.items()})
    found = [np.asarray(r, np.float64) for r in results]
    for output, array in zip(model.graph.output, found, strict=True):
        if not (np.isfinite(array).all() and array.std() > 1e-3 * np.abs(array).max()):
            raise ModelError(
                f"output {output.name!r} is flat or not finite (standard deviation {array.std():.1e}); "
                "give the model other weights: zoo.onnx_tools.random_weights"
            )
    return found
