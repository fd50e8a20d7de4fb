"""All light models of the onnx package on the CPU vDevice: one launch each, and right."""

import functools

import numpy as np
import onnx
import pytest
import tvm
from onnx import numpy_helper

import tvm_rammer
from tests.end_to_end.models import by_onnxruntime, image, is_flat
from tests.marks import slow_but
from tests.zoo.light_models import narrow_light
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.device import host_cpu
from tvm_rammer.zoo.light import NAMES, expected_output_path, light, light_path


def test_there_are_nine_light_models():
    assert len(NAMES) == 9


@pytest.mark.parametrize("name", slow_but(["shufflenet"], NAMES))
def test_random_weights_agree_with_onnxruntime_before_the_softmax(name):
    model = narrow_light(name)
    module = tvm_rammer.compile(model)
    x = image(module.inputs[0].shape)
    (want,) = by_onnxruntime(model, x)
    assert not is_flat(want)
    assert relative_error(module(x), want) <= 1e-4
    facts = module.report()
    assert facts["rprogram_launches"] <= 3
    assert facts["left_to_stock"] == 0
    for kernels in module.compilation.kernels.values():
        assert len({k.num_rtasks for k in kernels}) >= 2


@functools.cache
def squeezenet() -> tvm_rammer.RammerModule:
    return tvm_rammer.compile(light_path("squeezenet"))


@pytest.mark.parametrize("name", slow_but(["squeezenet"], NAMES))
def test_the_expected_output_of_the_package(name):
    expected = onnx.TensorProto()
    expected.ParseFromString(expected_output_path(name).read_bytes())
    module = squeezenet() if name == "squeezenet" else tvm_rammer.compile(light_path(name))
    got = module(np.ones(module.inputs[0].shape, "float32"))
    assert relative_error(got, numpy_helper.to_array(expected)) <= 1e-4


def test_squeezenet_is_one_launch_where_stock_makes_41():
    facts = squeezenet().report()
    assert (facts["stock_launches"], facts["rprogram_launches"]) == (41, 1)
    assert facts["rkernels_considered"] >= 2 * len(squeezenet().compilation.kernels)
    assert 0 < facts["waits"] < 2 * facts["veus"] * 41
    assert facts["waves"] < 41


@pytest.mark.parametrize("mcpu", ["x86-64-v3", "x86-64"])
@pytest.mark.slow
@pytest.mark.skipif(host_cpu().vector_bytes < 32, reason="this processor does not run AVX2")
def test_narrower_vectors(mcpu):
    model = light("squeezenet")
    target = tvm.target.Target({"kind": "llvm", "mcpu": mcpu, "num-cores": 2})
    module = tvm_rammer.compile(model, target=target)
    assert module.report()["arch"] == mcpu
    x = image(module.inputs[0].shape)
    assert relative_error(module(x), by_onnxruntime(model, x)[0]) <= 1e-4
