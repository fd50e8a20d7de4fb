"""Prices of a GPU: kernels that are right when they are emulated, measured on a fake driver, and taken by `compile`."""

import dataclasses
import json

import numpy as np
import pytest

from tests.emulation.emulate import EmulationError, emulated_library, run_emulated
from tests.marks import needs_nvcc
from tests.wavefront.graphs import make_graph, make_kernels
from tvm_rammer.compilation.target import resolve_device
from tvm_rammer.device import preset
from tvm_rammer.errors import TargetError, ToolError
from tvm_rammer.gpu_bundle.files import Files
from tvm_rammer.gpu_bundle.onsite.plan import plan_to_json
from tvm_rammer.gpu_bundle.onsite.times.prices import measured_spec, plan_path
from tvm_rammer.gpu_bundle.prices import price_plans, prices_source
from tvm_rammer.nvcc import measure_resources
from tvm_rammer.wavefront import schedule

from . import mini

SMALL = dataclasses.replace(preset("cuda:h200"), name="small", units=4)
TEXT = f"  #define ushort unsigned short\n#endif\n{prices_source()}"
"""As the emulation knows texts: behind the end of TVM's header."""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("kernel", "blocks", "threads", "arrivals"),
    [("price_hops", 2, 32, {64: 5, 96: 5}), ("price_barriers", 4, 128, {64: 20})],
)
def test_each_round_of_each_run_counts(kernel, blocks, threads, arrivals, seed):
    arguments = {"rounds": np.array([5], np.int32), "state": np.zeros(128, np.int32)}
    for run in (1, 2, 3):
        run_emulated(TEXT, kernel, (blocks,), (threads,), 0, arguments, seed, {"rounds"})
        found = {n: int(word) for n, word in enumerate(arguments["state"]) if word}
        assert found == {32: run * blocks} | {n: run * count for n, count in arrivals.items()}


@pytest.mark.parametrize(("kernel", "blocks", "threads"), [("price_hops", 2, 32), ("price_barriers", 4, 128)])
def test_its_waits_wait(kernel, blocks, threads):
    arguments = {"rounds": np.array([5], np.int32), "state": np.zeros(128, np.int32)}
    text = TEXT.replace("rammer_signal(state_ptr, signals, 0, 1);", ";")
    with pytest.raises(EmulationError, match="deadlock"):
        run_emulated(text, kernel, (blocks,), (threads,), 0, arguments, 0)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What gpu_bench finds where kernels are emulated: figures of a processor, but all that leads to them."""
    folder = tmp_path_factory.mktemp("bundle")
    files = Files(folder)
    cubin = files.write("prices/sm_90.cubin", str(emulated_library(TEXT)))
    plans = price_plans(files, SMALL, {"sm_90": cubin})
    given = {plan_path(folder, n).relative_to(folder): json.dumps(plan_to_json(p)) for n, p in plans.items()}
    about = {"device": dataclasses.asdict(SMALL)}
    mini.make(folder, {"twice": {"rammer": mini.plan("double_kernel")}}, given=given, about=about)
    done = mini.run(folder, "--minutes", "0.2", "--rounds", "1", "--patience", "110", libcuda=mini.fake_cuda())
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "results"


def test_prices_are_measured_and_told(results):
    prices = json.loads((results / "results.json").read_text())["prices"]
    assert prices.keys() == {"launch_us", "node_us", "signal_us", "barrier_us"}
    assert all(us > 0 for us in prices.values())
    assert f"| signal_us | {prices['signal_us']:.2f} | {SMALL.signal_us} |" in (results / "results.md").read_text()


def test_compile_takes_the_measured_device(results):
    device = resolve_device(str(results / "device.json"))
    prices = json.loads((results / "results.json").read_text())["prices"]
    assert device == dataclasses.replace(SMALL, name="small, measured", **prices)
    graph, kernels = make_graph({"a": ""}), make_kernels(a=(4, 1.0))
    (program,) = schedule(graph, kernels, device, veus=device.units)
    assert program.makespan_us == pytest.approx(device.launch_us + 1.0)


def test_another_gpu_is_not_described_by_the_figures_of_this_one():
    with pytest.raises(ToolError, match=r"made for small \(sm_90\), and this GPU is sm_80"):
        measured_spec(dataclasses.asdict(SMALL), {"architecture": "sm_80", "multiprocessors": 108}, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"launch_us": "2"}, "wrong are launch_us"),
        ({"units": 1.5}, "wrong are units"),
        ({"signal_us": -1.0}, "wrong are signal_us"),
        ({"speed": 1}, "wrong are speed"),
        ({"kind": "rocm"}, "wrong are kind"),
    ],
)
def test_a_file_that_is_no_device_is_refused(change, message, tmp_path):
    file = tmp_path / "device.json"
    file.write_text(json.dumps(dataclasses.asdict(SMALL) | change))
    with pytest.raises(TargetError, match=message):
        preset(str(file))


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"kind": "cuda"}'])
def test_a_file_without_a_device_is_refused(text, tmp_path):
    file = tmp_path / "device.json"
    file.write_text(text)
    with pytest.raises(TargetError, match="device"):
        preset(str(file))
    with pytest.raises(TargetError, match="cannot be read"):
        preset(str(tmp_path / "none.json"))


@needs_nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_nvcc_compiles_them_without_a_spill(arch):
    assert measure_resources(prices_source(), arch).spill_bytes == 0
