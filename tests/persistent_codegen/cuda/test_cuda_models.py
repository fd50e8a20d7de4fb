"""A whole model as one persistent kernel, emulated at its full size."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.emulation.programs import plan, reference, run_all
from tests.relay_passes.models import light
from tvm_rammer import relay_passes


def with_random_weights(path):
    """The light models' weights are all equal, and their outputs flat: nothing would show."""
    model = onnx.load(path)
    rng = np.random.default_rng(0)
    shapes = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        shape = shapes[node.input[0]]
        scale = np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0.05
        weights = (rng.standard_normal(shape) * scale).astype("float32")
        model.graph.initializer.append(numpy_helper.from_array(weights, node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


@pytest.mark.slow
def test_squeezenet_runs_as_one_kernel():
    module = relay_passes.load_model(with_random_weights(light("squeezenet")))
    (built,) = plan(module, veus=8)
    (source,) = [b.name for b in built.program.graph.buffers if b.kind == "input"]
    shape = [int(n) for n in module["main"].params[0].ty.shape]
    image = np.random.default_rng(1).standard_normal(shape).astype("float32")
    (want,) = reference(module, [image])
    assert want.std() > 1e-3
    for seed in range(3):
        written = run_all([built], {source: image}, seed)
        (got,) = [written[b.name] for b in built.program.graph.buffers if b.kind == "output"]
        np.testing.assert_allclose(got.reshape(-1), want.reshape(-1), rtol=1e-3, atol=1e-5)
