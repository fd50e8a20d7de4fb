"""ONNX's reference evaluator as the judge: it knows what ONNX Runtime lacks."""

import numpy as np
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from tvm_rammer.relay_passes import load_model

from ...models import model, node, tensor, value


def by_reference(run, proto, shapes=None, **inputs):
    """Load and run a model; compare shapes, types and values with the reference's. Returns the module."""
    mod = load_model(proto, shapes)
    got = run(mod, *inputs.values())
    expected = ReferenceEvaluator(proto).run(None, inputs)
    for left, right in zip(got if isinstance(got, list) else [got], expected, strict=True):
        assert (left.shape, left.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)
    return mod


def check(run, op, arrays, constants=(), outputs=1, opset=21, **attributes):
    """One operator; a constant is an array after the inputs."""
    names = [f"i{n}" for n in range(len(arrays))]
    fixed = [f"c{n}" if c is not None else "" for n, c in enumerate(constants)]
    inputs = [value(n, a.shape, TensorProto.DataType.Value(kind_of(a))) for n, a in zip(names, arrays, strict=True)]
    results = [f"y{n}" for n in range(outputs)]
    tensors = [tensor(n, c) for n, c in zip(fixed, constants, strict=True) if c is not None]
    proto = model([node(op, [*names, *fixed], results, **attributes)], inputs, results, tensors, opset=opset, ir=10)
    return by_reference(run, proto, **dict(zip(names, arrays, strict=True)))


def kind_of(array):
    return {"float32": "FLOAT", "float64": "DOUBLE"}.get(str(array.dtype), str(array.dtype).upper())
