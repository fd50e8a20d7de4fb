"""A model as the comparison with PyTorch reads it: nodes, and the files of weights and inputs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ..files import Files


def torch_graph(model: onnx.ModelProto, inputs: Mapping[str, str], files: Files) -> dict[str, Any]:
    """Describe a model for `onsite.torch_peer`.

    Parameters
    ----------
    model : onnx.ModelProto
    inputs : mapping of str to str
        The file of each input.
    files : Files
        Takes the weights; those that another plan has are there already.

    Returns
    -------
    dict
        `nodes` (`op`, `inputs`, `outputs`, `attributes`), `weights` and `inputs` (`file` and `shape`; whole numbers are
        `values` in the place of a file), `outputs`.
    """
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    return {
        "nodes": nodes_of(model),
        "weights": {name: _weight(array, files) for name, array in arrays.items()},
        "inputs": {name: {"file": file, "shape": shapes[name]} for name, file in inputs.items()},
        "outputs": [output.name for output in model.graph.output],
    }


def nodes_of(model: onnx.ModelProto) -> list[dict[str, Any]]:
    """The operators of a model as `onsite.torch_operators` takes them: `op`, `inputs`, `outputs`, `attributes`."""
    return [
        {
            "op": node.op_type,
            "inputs": list(node.input),
            "outputs": list(node.output),
            "attributes": {a.name: _attribute(a) for a in node.attribute},
        }
        for node in model.graph.node
    ]


def _attribute(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _weight(array: np.ndarray, files: Files) -> dict[str, Any]:
    if array.dtype == np.float32:
        return {"file": files.add_array(array), "shape": list(array.shape)}
    return {"file": "", "values": array.tolist()}
