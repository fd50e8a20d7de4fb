"""What the tests of the zoo ask of any model."""

import collections

import numpy as np
import onnx
import onnxruntime


def inputs_of(model: onnx.ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    """Seeded normal inputs, by name."""
    rng = np.random.default_rng(seed)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def run(model: onnx.ModelProto) -> np.ndarray:
    """Check a model, and run it on `inputs_of` it."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, inputs_of(model))[0]


def count(model: onnx.ModelProto) -> collections.Counter[str]:
    """How many nodes of each kind a model has."""
    return collections.Counter(node.op_type for node in model.graph.node)


def tells_right_from_wrong(output: np.ndarray) -> bool:
    """Whether an output is finite, neither tiny nor huge, and far from flat."""
    largest = np.abs(output).max()
    return bool(np.isfinite(output).all() and 1e-3 < largest < 1e3 and output.std() > 0.05 * largest)
