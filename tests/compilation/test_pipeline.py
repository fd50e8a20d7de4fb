"""The pipeline "rammer" as TVM users write it: any functions, beside other passes, calls and control flow."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.onnx import from_onnx
from tvm.script import ir as I
from tvm.script import relax as R

import tvm_rammer
from tests.marks import one_in
from tests.two_inputs import agrees, arrays, results, two_inputs
from tvm_rammer import relay_passes
from tvm_rammer.compilation.launch import schedule_regions
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.device import host_cpu
from tvm_rammer.errors import ScheduleError, TargetError

TARGET = tvm.target.Target(host_cpu().target_config())


class Net(nn.Module):
    """Two layers, used in different ways by several functions."""

    def __init__(self):
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x):
        return self.down(nn.op.relu(self.up(x)))

    def decode(self, x):
        return nn.op.softmax(self.up(x))

    def prefill(self, x):
        return self.forward(x)


@pytest.fixture(scope="module")
def net():
    spec = {
        "forward": {"x": nn.spec.Tensor([4, 16], "float32")},
        "decode": {"x": nn.spec.Tensor([1, 16], "float32")},
        "prefill": {"x": nn.spec.Tensor(["n", 16], "float32")},
    }
    mod, params = Net().export_tvm(spec)
    rng = np.random.default_rng(0)
    return mod, [rng.standard_normal([int(s) for s in p.shape]).astype("float32") for _, p in params]


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def run(mod, name, *arrays, pipeline="rammer"):
    executable = tvm.compile(mod, TARGET, relax_pipeline=pipeline)
    result = relax.VirtualMachine(executable, tvm.cpu())[name](*map(tvm.runtime.tensor, arrays))
    return result.numpy()


def agree(mod, name, *arrays):
    expected = run(mod, name, *arrays, pipeline="default")
    np.testing.assert_allclose(run(mod, name, *arrays), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "rows"), one_in(4, [("prefill", 5), ("forward", 4), ("decode", 1), ("prefill", 1)]))
def test_every_function_takes_part_whatever_its_name(net, name, rows):
    mod, weights = net
    agree(mod, name, random(rows, 16), *weights)


def test_regions_belong_to_their_functions_and_symbolic_calls_say_why_they_are_left(net):
    found = relay_passes.partition(relay_passes.prepare(TARGET)(net[0].clone()))
    assert {region.function for region in found.regions} >= {"forward", "decode"}
    assert len({region.graph.name for region in found.regions}) == len(found.regions)
    assert found.stock_calls and all(name.startswith("prefill.") for name, _ in found.stock_calls)
    assert any("symbolic" in reason or "static" in reason for _, reason in found.stock_calls)


@pytest.mark.slow
def test_a_function_named_as_our_programs_are_is_kept(net):
    mod = net[0].clone()
    mod.update_func(
        tvm.ir.GlobalVar("region0"), relax.utils.copy_with_new_vars(mod["decode"]).with_attr("global_symbol", "region0")
    )
    agree(mod, "region0", random(1, 16), *net[1])


@I.ir_module
class Branching:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), flag: R.Tensor((), "bool")) -> R.Tensor((4, 8), "float32"):
        y: R.Tensor((4, 8), "float32") = R.nn.relu(R.add(x, x))
        if flag:
            z: R.Tensor((4, 8), "float32") = R.multiply(y, y)
        else:
            w: R.Tensor((4, 8), "float32") = R.tanh(R.subtract(y, x))
            z: R.Tensor((4, 8), "float32") = R.subtract(w, x)
        return R.exp(R.negative(z))


@I.ir_module
class Calling:
    @R.function
    def main(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        y: R.Tensor((4, 8), "float32") = R.nn.relu(R.add(x, x))
        z = R.call_pure_packed("tests.compilation.twice", y, ty_args=(R.Tensor((4, 8), "float32"),))
        return R.nn.softmax(R.add(z, y))


@pytest.mark.parametrize("flag", [True, False])
def test_branches_at_run_time_stay_with_stock_tvm(flag):
    agree(Branching, "main", random(4, 8), np.array(flag))


def test_packed_calls_stay_where_they_are():
    tvm.register_global_func("tests.compilation.twice", lambda x: tvm.runtime.tensor(2 * x.numpy()), override=True)
    agree(Calling, "main", random(4, 8))


@pytest.mark.parametrize(
    "before",
    [
        [relax.transform.LegalizeOps()],
        [relax.transform.ConvertToDataflow(), relax.transform.CanonicalizeBindings()],
        [
            relax.transform.LegalizeOps(),
            relax.transform.AnnotateTIROpPattern(),
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
        ],
    ],
    ids=["legalized", "canonical", "fused"],
)
def test_other_passes_may_run_before(net, before):
    mod = tvm.transform.Sequential(before)(net[0])
    expected = run(net[0], "forward", random(4, 16), *net[1], pipeline="default")
    np.testing.assert_allclose(run(mod, "forward", random(4, 16), *net[1]), expected, rtol=1e-4, atol=1e-5)


def test_errors_come_out_of_the_passes_as_ours(net, monkeypatch):
    with pytest.raises(ScheduleError, match="unknown policy 'fastest'"):
        tvm.compile(net[0], TARGET, relax_pipeline=relax.get_pipeline("rammer", policy="fastest"))
    with pytest.raises(TargetError, match="runs without a target; give it one"):
        relax.get_pipeline("rammer")(net[0])
    with pytest.raises(tvm_rammer.RammerError), tvm.target.Target({"kind": "opencl"}):
        relax.get_pipeline("rammer")(net[0])


def test_the_record_names_what_was_left(net):
    record = Compilation(host_cpu())
    schedule_regions(relay_passes.prepare(TARGET)(net[0].clone()), record)
    assert record.programs and all("prefill" in name for name, _ in record.stock_calls)


def test_an_interrupt_within_a_pass_stays_one(net):
    @tvm.transform.module_pass(opt_level=0, name="Interrupted")
    def interrupted(mod, ctx):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted(net[0])


def test_the_pipeline_on_a_module_of_the_onnx_frontend(tmp_path):
    onnx.save(two_inputs(), tmp_path / "m.onnx")
    mod = from_onnx(onnx.load(tmp_path / "m.onnx"), keep_params_in_input=False)
    before = mod.script()
    target = tvm.target.Target(host_cpu().target_config())
    executable = tvm.compile(mod, target, relax_pipeline="rammer")
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](*(tvm.runtime.tensor(a) for a in arrays()))
    agrees(got, results(*arrays()))
    assert mod.script() == before


@pytest.mark.parametrize("first", ["tvm", "tvm_rammer"])
def test_the_pipeline_is_there_whatever_is_imported_first(first):
    second = {"tvm": "tvm_rammer", "tvm_rammer": "tvm"}[first]
    script = (
        f"import {first}, sys\n"
        "early = 'tvm' in sys.modules\n"
        f"import {second}\n"
        "from tvm import relax\n"
        "relax.get_pipeline('rammer')\n"
        f"assert early == ({first!r} == 'tvm')\n"
    )
    root = pathlib.Path(tvm_rammer.__file__).parents[1]
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300, env=os.environ | {"PYTHONPATH": str(root)})
