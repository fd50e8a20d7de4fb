"""Exported projects build, check themselves on the emulated GPU, and find what is wrong; nvcc builds them, too."""

import dataclasses
import re
import shutil
import subprocess

import numpy as np
import pytest
from onnx import TensorProto

from tests.emulation.projects import build_project, run_project
from tests.relay_passes.models import model, node, random, tensor, value
from tvm_rammer import rkernel_gen
from tvm_rammer.compilation.compiler import load_request, lower_loaded
from tvm_rammer.device import preset
from tvm_rammer.errors import CodegenError, ModelError, TargetError, ToolError
from tvm_rammer.export.project import export_project
from tvm_rammer.ir import Signal, Wait
from tvm_rammer.persistent_codegen.cuda.rtask import extract_cuda
from tvm_rammer.relay_passes.onnx.lower.recurrence import recurrent
from tvm_rammer.rkernel_gen.cuda.product.tile import GemmTile
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.onnx_lstm import onnx_lstm

from .small import request


def mixed():
    """Rows of a table by index, a product, tanh, another product; one output is an input, and two are the same."""
    nodes = [
        node("Gather", ["table", "i"], ["rows"]),
        node("MatMul", ["rows", "w"], ["a"]),
        node("Tanh", ["a"], ["b"]),
        node("MatMul", ["b", "w"], ["y"]),
        node("Identity", ["y"], ["again"]),
        node("Identity", ["i"], ["same"]),
    ]
    inits = [tensor("table", random(5, 32)), tensor("w", random(32, 32, seed=1))]
    return model(nodes, [value("i", [4], TensorProto.INT64)], ["y", "again", "same", "b"], inits)


def kernels_kept(keep):
    """Make kernels as ever, and keep those of each function that `keep` returns."""
    real = rkernel_gen.make_kernels

    def fewer(graphs, functions, device, log):
        made = real(graphs, functions, device, log)
        kept = {name: tuple(keep(name, kernels, device)) for name, kernels in made.kernels.items()}
        return dataclasses.replace(made, kernels=kept)

    return fewer


def none_of_tanh(name, kernels, device):
    return () if "tanh" in name else kernels


def tiles_of_vectors(name, kernels, device):
    """Kernels whose shared tiles are arrays of vectors, or any where there is none."""
    if device.kind == "cpu":
        return kernels
    return [k for k in kernels if {d for _, d in extract_cuda(k, device).scratch} == {"float32x4"}] or kernels


@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 2])
def test_a_loop_whose_weights_stay_on_chip_checks_itself(layers, tmp_path):
    folder = export_project(request(onnx_lstm(layers, 8, 128)), tmp_path / "loop", "loop")
    assert any("rammer_keep((&" in path.read_text(encoding="utf-8") for path in folder.rglob("*.cu"))
    done = run_project(build_project(folder), seed=1)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("seed", range(3))
def test_a_project_checks_itself(lstm, seed):
    done = run_project(lstm[1], seed=seed)
    assert done.returncode == 0, done.stdout + done.stderr
    errors = [float(e) for e in re.findall(r"relative error (\S+), right", done.stdout)]
    assert len(errors) == 3 and max(errors) < 1e-5
    assert "us a run, 100 runs back to back" in done.stdout


def test_launches_on_another_stream_wait_for_the_run_before(lstm, tmp_path):
    assert run_project(lstm[1], env={"EMU_LOG": str(tmp_path / "log")}).returncode == 0
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[:4] == [
        "stream 1 waits for stream 0",
        "launch 4,1,1 256,1,1 0 1 stream 1",
        "stream 1 waits for stream 1",
        lines[1],
    ] or re.fullmatch(r"launch 4,1,1 \d+,1,1 \d+ 1 stream 1", lines[1])
    captured = {"EMU_CAPTURING": "1", "EMU_LOG": str(tmp_path / "captured")}
    assert run_project(lstm[1], env=captured).returncode == 0
    assert "waits" not in (tmp_path / "captured").read_text()


@pytest.mark.parametrize(
    ("file", "status", "says"),
    [
        ("lstm.weights", 2, "does not hold the weights that this model was compiled with"),
        ("recorded/outputs.bin", 1, "WRONG"),
        ("recorded/inputs.bin", 1, "WRONG"),
    ],
)
def test_what_is_wrong_is_found(lstm, tmp_path, file, status, says):
    copy = shutil.copytree(lstm[0], tmp_path / "lstm")
    data = bytearray((copy / file).read_bytes())
    data[-1] ^= 0x55
    data[3] ^= 0x41
    (copy / file).write_bytes(data)
    done = run_project(copy / "emulated")
    assert done.returncode == status and says in done.stdout + done.stderr


def test_weights_that_are_too_short_or_too_long_are_refused(lstm, tmp_path):
    copy = shutil.copytree(lstm[0], tmp_path / "lstm")
    whole = (copy / "lstm.weights").read_bytes()
    for data in (whole[:-1], whole + b"\0", b""):
        (copy / "lstm.weights").write_bytes(data)
        assert run_project(copy / "emulated").returncode == 2
    (copy / "lstm.weights").unlink()
    assert "cannot open" in run_project(copy / "emulated").stderr


@pytest.mark.parametrize(("units", "says"), [(3, "blocks that must all run at once"), (0, "cudaErrorNoDevice")])
def test_a_gpu_that_does_not_do_is_refused(lstm, units, says):
    done = run_project(lstm[1], units=units)
    assert done.returncode == 2 and says in done.stderr


@pytest.mark.parametrize("run", [1, 3])
def test_a_run_that_hangs_is_told_by_what_its_blocks_wait_for(lstm, tmp_path, run):
    """From a run on, a block that others wait for does not say that it has arrived."""
    asked = request(lstm_stack(2, 2, 32))
    (program,) = lower_loaded(asked, load_request(asked))[1].programs
    awaited = {(v, i.event) for v, lane in enumerate(program.lanes) for i in lane if isinstance(i, Wait)}
    silent = next(
        v
        for v, lane in enumerate(program.lanes)
        if any(isinstance(i, Signal) and i.event == event and waits != v for i in lane for waits, event in awaited)
    )
    copy = shutil.copytree(lstm[0], tmp_path / "lstm")
    signal = re.compile(r"__nv_atomic_add\([^;]*__NV_ATOMIC_RELEASE[^;]*;")
    text, signals = signal.subn(
        lambda found: f"if (blockIdx.x != {silent} || emu::runs < {run}) {found[0]}", (copy / "lstm.cu").read_text()
    )
    assert signals  # several times the same, under one include guard
    (copy / "lstm.cu").write_text(text)
    done = run_project(build_project(copy), "1e-3", "0.05")
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.count("right") == run - 1
    first, *lines = done.stderr.splitlines()
    assert first == "lstm_check: a run has not ended after 0.05 s"
    told = re.compile(r"region0_0: vEU (\d+), row (\d+): waits for event (\d+), expected (\d+), seen (\d+)")
    waits = [tuple(map(int, told.fullmatch(line).groups())) for line in lines]
    assert waits
    for veu, row, event, expected, seen in waits:
        wait = program.lanes[veu][row]
        assert wait == Wait(event, wait.arrivals)
        assert expected == wait.arrivals * run > seen >= wait.arrivals * (run - 1)
    assert any(Signal(event) in program.lanes[silent] for _, _, event, _, _ in waits)


def test_stock_kernels_regions_and_copied_outputs_in_one_project(tmp_path, monkeypatch):
    monkeypatch.setattr(rkernel_gen, "make_kernels", kernels_kept(none_of_tanh))
    folder = export_project(request(mixed()), tmp_path / "mixed", "mixed", {"i": np.array([4, 0, 2, 2])})
    text = (folder / "mixed.cu").read_text()
    launches = re.findall(r"^    \{\(const void\*\)(\w+), .*, (true|false), \d+, \d+\},$", text, re.MULTILINE)
    kinds = [cooperative for _, cooperative in launches]
    assert kinds[0] == kinds[-1] == "true" and kinds.count("false") == 1  # tanh
    assert len(re.findall(r"_begin\[\]", text)) == 2
    program = build_project(folder)
    for seed in range(3):
        done = run_project(program, seed=seed)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("right") == 3 * 4


@pytest.mark.parametrize(("sizes", "arena"), [((1,), "float4 arena_ptr["), ((1, 3), "(float4*)(arena_ptr")])
def test_scratch_arrays_of_vectors_lie_in_the_arena(sizes, arena, tmp_path, monkeypatch):
    """Image and packed weights of a 1 x 1 convolution come in vectors, so TVM makes its tiles arrays of vectors.

    But for those through which results go, too; that is left out here, as where results do not fit.
    """
    monkeypatch.setattr(GemmTile, "staged", property(lambda tile: tile.slices > 1))
    monkeypatch.setattr(rkernel_gen, "make_kernels", kernels_kept(tiles_of_vectors))
    names = ["x", *(f"h{i}" for i in range(len(sizes)))]
    nodes = [node("Conv", [names[i], f"w{i}"], [names[i + 1]], pads=[size // 2] * 4) for i, size in enumerate(sizes)]
    inits = [tensor(f"w{i}", random(64, 64, n, n, seed=n) / np.float32(8 * n)) for i, n in enumerate(sizes)]
    proto = model(nodes, [value("x", [1, 64, 16, 16])], names[-1:], inits)
    folder = export_project(request(proto), tmp_path / "convolutions", "convolutions")
    assert arena in (folder / "convolutions.cu").read_text()
    done = run_project(build_project(folder))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_loop_is_exported_as_a_loop(tmp_path, monkeypatch):
    monkeypatch.setattr(recurrent, "MOST_STEPS", 5)
    folder = export_project(request(onnx_lstm(1, 12, 32)), tmp_path / "layer", "layer")
    program = build_project(folder)
    for seed in range(3):
        done = run_project(program, seed=seed)
        assert done.returncode == 0, done.stdout + done.stderr


def test_kernels_that_tvm_wrote_by_hand_are_exported(tmp_path):
    nodes = [node("Relu", ["x"], ["r"]), node("TopK", ["r", "k"], ["values", "at"])]
    proto = model(nodes, [value("x", [4, 16])], ["values", "at"], [tensor("k", np.array([3]))])
    done = run_project(build_project(export_project(request(proto), tmp_path / "sorting", "sorting")))
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_needs_tvm_is_refused(tmp_path):
    places = model([node("NonZero", ["x"], ["at"]), node("Shape", ["at"], ["y"])], [value("x", [4, 16])], ["y"])
    with pytest.raises(CodegenError, match=r"needs TVM to run: .* takes \w+ beside tensors.*Left to stock TVM: "):
        export_project(request(places), tmp_path / "places", "places")
    assert not (tmp_path / "places").exists()


def test_bad_arguments_are_found_before_anything_is_compiled(tmp_path, compilations):
    with pytest.raises(TargetError, match=r"writes CUDA, and .* is no GPU; give --target cuda:h200"):
        export_project(request("nowhere.onnx", preset("cpu")), tmp_path / "cpu", "cpu")
    with pytest.raises(ToolError, match="cannot be called 'Übung'"):
        export_project(request("nowhere.onnx"), tmp_path / "name", "Übung")
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ToolError, match="holds something that is no exported project"):
        export_project(request("nowhere.onnx"), tmp_path, "mine")
    with pytest.raises(ToolError, match="cannot become a folder"):
        export_project(request("nowhere.onnx"), tmp_path / "thesis.tex", "mine")
    assert not compilations


def test_an_input_that_does_not_fit_leaves_the_folder_alone(tmp_path):
    with pytest.raises(ModelError, match="the model has no input 'z'"):
        export_project(request(lstm_stack(1, 1, 32)), tmp_path / "lstm", "lstm", {"z": np.zeros(3)})
    assert not (tmp_path / "lstm").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None or shutil.which("cmake") is None, reason="nvcc and CMake build it")
def test_nvcc_builds_a_project(lstm, tmp_path):
    build = tmp_path / "build"
    for command in (["cmake", "-S", lstm[0], "-B", build, "-DBUILD_SHARED_LIBS=ON"], ["cmake", "--build", build]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stdout + done.stderr
    done = subprocess.run([build / "lstm_check", lstm[0]], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 2), done.stdout + done.stderr
    if done.returncode:  # there is no GPU here
        assert re.search("cudaErrorNoDevice|cudaErrorInsufficientDriver", done.stderr)
