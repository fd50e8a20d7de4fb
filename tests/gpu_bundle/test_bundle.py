"""What is packed is right: emulated with the very buffers of the plan, and whole on the disk."""

import dataclasses
import functools
import hashlib
import re
import shutil

import numpy as np
import pytest

from tests.emulation.emulate import kernel_parameters, run_emulated
from tvm_rammer.device import preset
from tvm_rammer.errors import ModelError, ToolError
from tvm_rammer.gpu_bundle import toolchain
from tvm_rammer.gpu_bundle.bundle import make_bundle, make_plan, read_manifest
from tvm_rammer.gpu_bundle.files import Files
from tvm_rammer.gpu_bundle.lower import SINGLE_LAUNCHES, VARIANTS, WATCHED
from tvm_rammer.gpu_bundle.models import BundleModel
from tvm_rammer.gpu_bundle.models.reference import model_inputs, reference_outputs
from tvm_rammer.gpu_bundle.onsite.edges import dependences
from tvm_rammer.nvcc import compile_cuda
from tvm_rammer.zoo.inception_module import inception_module
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.onnx_lstm import onnx_lstm

from . import mini

SMALL_GPU = dataclasses.replace(preset("cuda:h200"), name="small", units=4)
MODELS = {
    "lstm": lambda: lstm_stack(2, 2, 32),
    "inception": lambda: inception_module(channels=6, size=7, widths=(4, 3, 5, 2, 3, 4)),
    "layers": lambda: onnx_lstm(2, 4, 16),
    "more steps": lambda: onnx_lstm(2, 9, 16),
}
DTYPES = {"float": np.float32, "int": np.int32, "uchar": np.uint8, "unsigned char": np.uint8, "uint8_t": np.uint8}
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="a bundle holds kernels that nvcc compiles")


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """Of a model and a variant: the folder with its buffers, the plan, its text, and the reference."""

    @functools.cache
    def packed(model, variant, apart=False):
        folder, proto = tmp_path_factory.mktemp("packed"), MODELS[model]()
        files, inputs = Files(folder), model_inputs(proto)
        plan, source = make_plan(
            files, proto, variant, SMALL_GPU, {n: files.add_array(a) for n, a in inputs.items()}, apart=apart
        )
        return folder, plan, source, reference_outputs(proto, inputs)

    return packed


def emulate(plan, source, memory, seed, order=None):
    """Do all launches of a plan once."""
    for number in order or range(len(plan.launches)):
        launch = plan.launches[number]
        parameters = kernel_parameters(source, launch.kernel)
        arguments = {}
        for (name, kind), view in zip(parameters, launch.arguments, strict=True):
            data = memory[view.buffer][view.offset : view.offset + view.nbytes]
            arguments[name.removesuffix("_ptr")] = data.view(DTYPES[kind.removesuffix("*").strip()])
        run_emulated(source, launch.kernel, launch.grid, launch.block, launch.shared_bytes, arguments, seed)


def memory_of(folder, plan):
    """The buffers of a plan, as they are before the first run."""
    return [
        np.frombuffer((folder / b.file).read_bytes(), np.uint8).copy() if b.file else np.full(b.nbytes, 0xFF, np.uint8)
        for b in plan.buffers
    ]


def check_outputs(plan, memory, reference):
    """Compare what the launches have written."""
    for view, want in zip(plan.outputs, reference, strict=True):
        got = memory[view.buffer][view.offset : view.offset + view.nbytes].view(np.float32).reshape(want.shape)
        assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


CASES = pytest.mark.parametrize(
    ("model", "variant"),
    [
        pytest.param(m, v, marks=[pytest.mark.slow] * (m != "lstm"))
        for m in MODELS
        if m != "more steps"
        for v in VARIANTS
    ],
)


@CASES
def test_emulated_runs_with_the_packed_buffers_are_right(pack, model, variant):
    folder, plan, source, reference = pack(model, variant)
    memory = memory_of(folder, plan)
    assert [m.size for m in memory] == [b.nbytes for b in plan.buffers]
    for seed in range(3 if plan.launches[0].cooperative else 1):  # counters of a persistent kernel grow run by run
        for buffer, data in zip(plan.buffers, memory, strict=True):
            if buffer.kind == "memory":
                data[:] = 0xFF
        emulate(plan, source, memory, seed)
        check_outputs(plan, memory, reference)


def test_loops_stay_loops_in_the_persistent_kernel(pack):
    def table_growth(variant):
        """How many more bytes of constants five more steps take: rows of the plan."""
        plans = [pack(model, variant)[1] for model in ("layers", "more steps")]
        few, more = (sum(b.nbytes for b in plan.buffers if b.kind == "constant") for plan in plans)
        return more - few

    assert table_growth("rammer") < 0.2 * table_growth("rammer-global")


def last_first(before):
    """An order of launches in which of those that may come next the last one does."""
    order, left = [], set(range(len(before)))
    while left:
        order.append(max(n for n in left if left.isdisjoint(before[n])))
        left.remove(order[-1])
    return order


@pytest.mark.parametrize("variant", SINGLE_LAUNCHES)
def test_edges_are_enough_and_leave_branches_side_by_side(pack, variant):
    folder, plan, source, reference = pack("lstm", variant, apart=True)
    before = dependences(plan)
    order = last_first(before)
    assert order != sorted(order)
    assert any(len(launches) > 1 for launches in before)
    memory = memory_of(folder, plan)
    emulate(plan, source, memory, 0, order)
    check_outputs(plan, memory, reference)
    with pytest.raises(AssertionError):  # without edges
        memory = memory_of(folder, plan)
        emulate(plan, source, memory, 0, range(len(before) - 1, -1, -1))
        check_outputs(plan, memory, reference)


@CASES
def test_launches_fit_the_text(pack, model, variant):
    _, plan, source, _ = pack(model, variant)
    for launch in plan.launches:
        assert len(kernel_parameters(source, launch.kernel)) == len(launch.arguments)
        bounds = re.search(rf"__launch_bounds__\((\d+)[, \d]*\) {launch.kernel}\(", source)
        assert np.prod(launch.block) <= int(bounds[1])
        assert not launch.shared_bytes or "extern __shared__" in source
    persistent = variant.startswith("rammer")
    assert [launch.cooperative for launch in plan.launches] == [persistent] * len(plan.launches)
    if persistent:
        assert [launch.grid for launch in plan.launches] == [(4, 1, 1)]


def test_one_constant_is_one_buffer_but_each_plan_has_its_own_state(pack):
    _, plan, _, _ = pack("lstm", "stock")
    files = [b.file for b in plan.buffers if b.kind == "constant"]
    assert len(files) == len(set(files)) == 6
    _, plan, _, _ = pack("lstm", "rammer")
    assert len({b.file for b in plan.buffers if b.kind == "constant"}) == 4


def test_a_flat_reference_is_refused():
    model = lstm_stack(1, 1, 4)
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.float_data[:] = [0.0] * int(np.prod(tensor.dims))
    with pytest.raises(ModelError, match="output 'h' is flat"):
        reference_outputs(model, model_inputs(model))


def test_without_nvcc_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"nvcc is not on the PATH.*install the CUDA toolkit"):
        compile_cuda("", "sm_90")
    with pytest.raises(ToolError, match=r"no C compiler .* is on the PATH; install one"):
        toolchain.build_launcher(tmp_path / "launcher.so")


def test_a_folder_that_is_no_bundle_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ToolError, match="holds something that is no bundle"):
        make_bundle(tmp_path, SMALL_GPU, {})
    assert (tmp_path / "thesis.tex").exists()


@needs_nvcc
def test_nvcc_rejects():
    with pytest.raises(ToolError, match="nvcc rejects"):
        compile_cuda("this is no CUDA", "sm_90")


@needs_nvcc
@pytest.mark.slow
def test_a_whole_bundle(tmp_path):
    folder = tmp_path / "bundle"
    models = {name: BundleModel(f"Small {name}.", MODELS[name], 1e-3) for name in ("lstm", "inception")}
    said = []
    size = make_bundle(folder, SMALL_GPU, models, say=said.append)
    present = [p for p in folder.rglob("*") if p.is_file()]
    assert size == sum(p.stat().st_size for p in present) < 4_000_000
    listed = read_manifest(folder)
    assert {str(p.relative_to(folder)) for p in present} == {*listed, "manifest.json"}
    for path, facts in listed.items():
        assert hashlib.sha256((folder / path).read_bytes()).hexdigest() == facts["sha256"]
    cubins = [p for p in present if p.suffix == ".cubin"]
    assert len(cubins) == (1 + len(models) * (len(VARIANTS) + len(WATCHED)))
    assert all(p.read_bytes().startswith(b"\x7fELF") for p in cubins)
    assert said[:2] == ["prices", "lstm: the reference in float64"]

    # The fake driver knows none of the kernels: everything loads and launches, and the results are found wrong.
    done = mini.run(folder, "--minutes", "0.5", libcuda=mini.fake_cuda())
    assert done.returncode == 1, done.stdout + done.stderr
    for found in mini.results(folder)["models"].values():
        assert found["failures"] == []
        assert set(found["contenders"]) == {
            name + way for name in VARIANTS for way in ("", "+graph", *["+edges"] * (name in SINGLE_LAUNCHES))
        }
        assert {c["status"] for c in found["contenders"].values()} == {"wrong"}

    make_bundle(folder, SMALL_GPU, {})  # a bundle may be made anew in its folder
    assert not (folder / "models").exists()
