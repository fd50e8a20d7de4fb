"""PyTorch's compiler as a contender of `bench`."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")

from tvm_rammer.benchmark.bench import bench
from tvm_rammer.benchmark.torch_compiled import torch_module, torch_runner
from tvm_rammer.errors import ToolError
from tvm_rammer.zoo.inception_v3 import inception_v3
from tvm_rammer.zoo.light import light
from tvm_rammer.zoo.transformer import transformer_encoder

MODELS = {
    "shufflenet": lambda: light("shufflenet"),
    "inception v1": lambda: light("inception_v1"),
    "densenet": lambda: light("densenet121"),
    "resnet": lambda: light("resnet50"),
    "inception v3": lambda: inception_v3(width=0.25),
    "transformer": lambda: transformer_encoder(1, 4, 16),
}


@pytest.mark.parametrize("name", MODELS)
def test_its_operators_compute_what_the_model_does(name):
    model = MODELS[name]()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    x = np.random.default_rng(0).standard_normal(given.shape).astype(np.float32)
    (wanted,) = session.run(None, {given.name: x})
    with torch.no_grad():
        (got,) = torch_module(model)(torch.from_numpy(x))
    assert np.abs(got.numpy() - wanted).max() < 1e-5 * np.abs(wanted).max()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_it_computes_what_ours_does():
    found = bench(transformer_encoder(1, 4, 16), against=["torch"], repeat=1)
    assert not found["missing"]
    assert found["ratios"].keys() == {"torch"}
    assert found["results"]["rammer"]["max_rel_err"] < 1e-5


def unknown():
    """A model with an operator that the comparison does not know."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    return helper.make_model(helper.make_graph([helper.make_node("Cos", ["x"], ["y"])], "g", [x], [y]))


def test_what_it_does_not_know_is_named():
    with pytest.raises(ToolError, match="no operator Cos; leave it out for this model"):
        torch_runner(unknown().SerializeToString(), 1)


def test_a_model_that_it_does_not_know_is_timed_without_it():
    found = bench(unknown(), against=["torch"], repeat=1)
    assert "it cannot run the model: the comparison with PyTorch knows no operator Cos" in found["missing"]["torch"]
    assert found["results"].keys() == {"rammer"}
