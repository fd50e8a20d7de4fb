"""The arguments of `compile`: targets, policies, shapes; a wrong one is refused with what there is."""

import numpy as np
import pytest
import tvm

import tvm_rammer
from tests.two_inputs import agrees, arrays, results, two_inputs
from tvm_rammer.device import PRESETS, host_cpu
from tvm_rammer.errors import ModelError, ScheduleError, ShapeError, TargetError, ToolError, TuningLogError
from tvm_rammer.wavefront import POLICIES, PolicyOptions

ARRAYS = arrays()
WANT = results(*ARRAYS)


@pytest.mark.parametrize("target", ["cpu", host_cpu(), tvm.target.Target({"kind": "llvm", "num-cores": 2})])
def test_targets(target):
    agrees(tvm_rammer.compile(two_inputs(), target=target)(*ARRAYS), WANT)


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_with_options(policy):
    module = tvm_rammer.compile(two_inputs(), policy=policy, options=PolicyOptions(budget=3, r=2))
    assert module.report()["policy"] == policy
    agrees(module(*ARRAYS), WANT)


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"target": "gpu"}, TargetError, "unknown target 'gpu'; give one of cpu, cuda:h200"),
        ({"target": 3}, TargetError, "int is no target"),
        ({"target": tvm.target.Target({"kind": "c"})}, TargetError, "target kind 'c' has no vDevice"),
        ({"policy": "best"}, ScheduleError, "unknown policy 'best'; choose one of auto"),
        ({"sync": "never"}, ScheduleError, "unknown sync 'never'"),
        ({"shapes": {"y": (1,)}}, ShapeError, "'y'"),
        ({"policy": ["auto"]}, ScheduleError, r"policy is \['auto'\]; give a name"),
        ({"tuning_logs": "nowhere"}, TuningLogError, "'nowhere' is no folder"),
        ({"tuning_logs": 3}, TuningLogError, "3 is no path"),
        ({"threads": 10**9}, TargetError, "threads is 1000000000; give an integer, from 1 to 1024"),
        ({"threads": True}, TargetError, "threads is True; give an integer"),
        ({"explore": 1.5}, ModelError, "explore is 1.5; give an integer, at least 0"),
        ({"loops": "no"}, ModelError, "loops is 'no'; give True or False"),
    ],
)
def test_a_wrong_choice_says_what_there_is(how, error, message):
    with pytest.raises(error, match=message):
        tvm_rammer.compile(two_inputs(), **how)


def test_numbers_of_numpy_are_numbers():
    module = tvm_rammer.compile(two_inputs(), threads=np.int64(1), concurrency=np.int32(2), explore=np.uint8(0))
    assert module.report()["veus"] == 1


def test_a_model_that_is_compiled_already_says_so(tmp_path):
    module = tvm_rammer.compile(two_inputs())
    with pytest.raises(ModelError, match=r"is compiled already; give the model itself, or tvm_rammer\.load it"):
        tvm_rammer.compile(module.save(tmp_path / "model.rammer"))


@pytest.mark.parametrize("name", PRESETS)
def test_every_gpu_preset_plans_and_writes_cuda(name):
    module = tvm_rammer.compile(two_inputs(), target=name)
    text = module.cuda_source()
    assert text.count("__global__ void") // 2 == len(module.rprograms)  # each is declared, then defined
    (resources,) = module.report()["resources"].values()
    if "unknown" in resources:
        assert name == "cuda:v100" or "nvcc is not on the PATH" in resources["unknown"]
    else:
        assert resources["resident_blocks_per_unit"] >= 1
    if not tvm.cuda().exist:
        with pytest.raises(ToolError, match="no CUDA device"):
            module(np.zeros((2, 16), "float32"), np.zeros((2, 32), "float32"))


def test_symbolic_batch():
    model = two_inputs("batch")
    with pytest.raises(ShapeError, match="x"):
        tvm_rammer.compile_together([model])
    agrees(tvm_rammer.compile(model, shapes={"x": (2, 16), "b": (2, 32)})(*ARRAYS), WANT)
