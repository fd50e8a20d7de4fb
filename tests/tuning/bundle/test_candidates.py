"""A folder of candidates: its launches are right, its program checks and times them, and the log takes the times."""

import dataclasses
import functools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import pytest

from tests.emulation.emulate import kernel_parameters, run_emulated
from tests.gpu_bundle.mini import fake_cuda
from tests.tuning.models import small_model
from tvm_rammer.cli.main import main
from tvm_rammer.device import preset
from tvm_rammer.errors import ToolError, TuningLogError
from tvm_rammer.gpu_bundle.files import Files
from tvm_rammer.rkernel_gen import construct
from tvm_rammer.rkernel_gen.measured import code_hash
from tvm_rammer.tuning.bundle import imported
from tvm_rammer.tuning.bundle.candidates import make_candidates
from tvm_rammer.tuning.bundle.imported import import_times, outcome_of
from tvm_rammer.tuning.log.reader import TuningLog, identity
from tvm_rammer.tuning.tasks import tasks_of
from tvm_rammer.tuning.trial import Outcome, Trial

GPU = dataclasses.replace(preset("cuda:h200"), units=4)
"""What the fake driver says of its GPU."""


@pytest.fixture
def no_nvcc(monkeypatch):
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "nvcc" else which(name))


@functools.cache
def fake_nvrtc():
    target = pathlib.Path(tempfile.mkdtemp(), "libfake_nvrtc.so")
    source = pathlib.Path(__file__).with_name("fake_nvrtc.c")
    subprocess.run(["gcc", "-Wall", "-fPIC", "-shared", str(source), "-o", str(target)], check=True)
    return target


def trials_of(model, device, each=3):
    """The best predicted tilings of each function."""
    tasks = tasks_of([model], device)
    return tasks, [Trial(t, tiling, construct.build(t.function, tiling)) for t in tasks for tiling in t.space[:each]]


def read(path):
    return json.loads(path.read_text())


def time_candidates(folder, *arguments):
    """Run the folder's program with the fake driver."""
    command = [sys.executable, "time_candidates.py", "--libcuda", str(fake_cuda()), *arguments]
    env = {"PATH": "/usr/bin:/bin", "PYTHONSAFEPATH": "1"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=env)


def times_of(folder):
    return {line["number"]: line for line in map(json.loads, (folder / "times.jsonl").read_text().splitlines())}


def make_fake(folder, kernels, cubin="kernels.cubin", source="kernels.cu"):
    """A folder whose kernels the fake driver knows."""
    make_candidates(folder, [], GPU)
    files = Files(folder)
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    files.write("kernels.cubin", b"\x7fELF fake")
    files.write("kernels.cu", "text")
    output = {"file": files.add_array(2 * x), "shape": [64], "dtype": "float32", "tolerance": 1e-5}
    about = read(folder / "candidates.json")
    about["functions"] = {"f": {"name": "twice", "outputs": [output]}}
    about["nothing"] |= {"cubin": cubin, "source": source}
    about["candidates"] = [
        {
            "number": number, "function": "f", "name": name, "rule": "fake", "choices": {"n": number},
            "num_rtasks": 2, "code": "c", "kernel": name, "grid": [2, 1, 1], "block": [32, 1, 1], "shared_bytes": 0,
            "arguments": [{"file": files.add_array(x)}, {"output": 0}], "source": source, "cubin": cubin,
        }
        for number, name in enumerate(kernels)
    ]  # fmt: skip
    files.write_json("candidates.json", about)
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("no_nvcc")
def test_launches_give_the_right_results_where_they_are_emulated(tmp_path):
    _, trials = trials_of(small_model(), GPU, each=2)
    assert make_candidates(tmp_path / "made", trials, GPU) == len(trials)
    about = read(tmp_path / "made" / "candidates.json")
    assert len({c["function"] for c in about["candidates"]}) == len(about["functions"]) > 1
    for candidate in about["candidates"]:
        source = (tmp_path / "made" / candidate["source"]).read_text()
        outputs = about["functions"][candidate["function"]]["outputs"]
        made = [np.full(output["shape"], np.nan, output["dtype"]) for output in outputs]
        names = [name.removesuffix("_ptr") for name, _ in kernel_parameters(source, candidate["kernel"])]
        args = {}
        for name, argument in zip(names, candidate["arguments"], strict=True):
            file = argument.get("file")
            args[name] = np.fromfile(tmp_path / "made" / file, np.float32) if file else made[argument["output"]]
        launch = (candidate["grid"], candidate["block"], candidate["shared_bytes"])
        run_emulated(source, candidate["kernel"], *launch, args, seed=0)
        for output, got in zip(outputs, made, strict=True):
            want = np.fromfile(tmp_path / "made" / output["file"], np.float32).reshape(got.shape)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_right_kernels_are_timed_and_bad_ones_told(tmp_path):
    names = ["double_0", "wrong_1", "crash_2", "double_3", "hang_4", "fault_5", "nothing_6", "double_7"]
    folder = make_fake(tmp_path / "made", names)
    done = time_candidates(folder, "--patience", "4")
    assert done.returncode == 0, done.stderr
    found = times_of(folder)
    assert sorted(found) == list(range(8))
    for number in (0, 3, 7):
        assert len(found[number]["run_us"]) == 7
        assert min(found[number]["run_us"]) > 0
        assert found[number]["nothing_us"] > 0
    assert "wrong result: output 0: off by" in found[1]["error"]
    assert "ended with status" in found[2]["error"]
    assert "without a word" in found[4]["error"]
    assert "CUDA_ERROR_LAUNCH_FAILED" in found[5]["error"]
    assert "values are not finite" in found[6]["error"]


def test_a_second_run_times_what_is_left(tmp_path):
    folder = make_fake(tmp_path / "made", ["double_0", "double_1"])
    assert time_candidates(folder).returncode == 0
    first, second = (folder / "times.jsonl").read_text().splitlines(keepends=True)
    (folder / "times.jsonl").write_text(first + second[:30])
    assert time_candidates(folder).returncode == 0
    lines = (folder / "times.jsonl").read_text().splitlines()
    assert [lines[0] + "\n", lines[1]] == [first, second[:30]]
    assert json.loads(lines[2])["number"] == 1


def test_without_cubins_nvrtc_compiles(tmp_path):
    folder = make_fake(tmp_path / "made", ["double_0"], cubin="")
    done = time_candidates(folder, "--libnvrtc", str(fake_nvrtc()))
    assert done.returncode == 0, done.stderr
    assert "run_us" in times_of(folder)[0]
    (folder / "times.jsonl").unlink()
    (folder / "kernels.cu.cubin").unlink()
    (folder / "kernels.cu").write_text("reject")
    done = time_candidates(folder, "--libnvrtc", str(fake_nvrtc()))
    assert done.returncode == 2
    assert "NVRTC rejects the text" in done.stderr


def test_without_a_driver_it_says_so(tmp_path):
    folder = make_fake(tmp_path / "made", ["double_0"])
    done = time_candidates(folder, "--libcuda", "/nowhere/libcuda.so")
    assert done.returncode == 2
    assert "there is no CUDA driver here" in done.stderr


def line_of(trial, number=0, **changes):
    """What `time_candidates.py` would write of a trial."""
    gpu = {"name": "Fake", "architecture": "sm_90", "multiprocessors": 4}
    return {
        "number": number, "function": trial.task.function.key, "name": trial.kernel.spec.name,
        "rule": trial.tiling.rule, "choices": dict(trial.tiling.choices), "num_rtasks": trial.kernel.spec.num_rtasks,
        "code": code_hash(trial.kernel), "run_us": [3.0, 4.0, 5.0], "nothing_us": 1.0, "gpu": gpu,
        "device": identity(GPU),
    } | changes  # fmt: skip


def test_times_are_taken_into_the_log_once(tmp_path):
    tasks, trials = trials_of(small_model(), GPU)
    lines = [
        line_of(trials[0]),
        line_of(trials[1], error="wrong result"),
        line_of(trials[2], code="another"),
        line_of(trials[0], function="unknown"),
        line_of(trials[0]),
    ]
    (tmp_path / "times.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    counts = import_times(tmp_path / "times.jsonl", tasks, GPU, tmp_path / "logs")
    assert counts == {"taken": 2, "of other code": 1, "of other models": 1, "known": 1}
    measured = TuningLog(tmp_path / "logs").measured(trials[0].task.function)
    assert measured.pop(trials[1].tiling).wrong
    ((tiling, time),) = measured.items()
    assert tiling == trials[0].tiling
    assert (time.operator_us, time.rtask_us) == (4.0, 3.0 / -(-trials[0].kernel.spec.num_rtasks // 4))


def test_an_rtask_takes_the_kernel_without_its_launch_over_its_waves():
    line = {"run_us": [10.0], "nothing_us": 2.0, "num_rtasks": 9}
    assert outcome_of(line, 4) == Outcome((10.0,), round(8.0 / 3, 5))
    assert outcome_of({**line, "nothing_us": 10.0}, 4).rtask_us == pytest.approx(
        imported.MIN_KERNEL_SHARE * 10.0 / 3, rel=1e-4
    )
    assert outcome_of({**line, "error": "hangs"}, 4) == Outcome(error="hangs")


@pytest.mark.parametrize("changes", [{"gpu": {"name": "A100", "architecture": "sm_80", "multiprocessors": 108}},
                                     {"device": {"name": "cuda:a100", "arch": "sm_80", "units": 108}}])  # fmt: skip
def test_times_of_another_device_are_refused(tmp_path, changes):
    tasks, trials = trials_of(small_model(), GPU, each=1)
    (tmp_path / "times.jsonl").write_text(json.dumps(line_of(trials[0], **changes)) + "\n")
    with pytest.raises(TuningLogError, match="they say nothing of cuda:h200"):
        import_times(tmp_path / "times.jsonl", tasks, GPU, tmp_path / "logs")


@pytest.mark.filterwarnings("ignore:.*is not JSON")
@pytest.mark.parametrize("text", ["", "hello\n", "{}\n", "[1]\n"])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    (tmp_path / "times.jsonl").write_text(text)
    with pytest.raises(TuningLogError, match="holds something else than times"):
        import_times(tmp_path / "times.jsonl", [], GPU, tmp_path / "logs")


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "precious").write_text("")
    with pytest.raises(ToolError, match="holds something that is no folder of candidates"):
        make_candidates(tmp_path, [], GPU)
    with pytest.raises(TuningLogError, match="there is no file"):
        import_times(tmp_path / "times.jsonl", [], GPU, tmp_path / "logs")


def test_times_in_a_folder_are_not_deleted(tmp_path):
    make_candidates(tmp_path / "folder", [], GPU)
    make_candidates(tmp_path / "folder", [], GPU)
    (tmp_path / "folder" / "times.jsonl").write_text("{}\n")
    with pytest.raises(ToolError, match=r"holds times\.jsonl, which would be lost; take it out, or name a new"):
        make_candidates(tmp_path / "folder", [], GPU)
    assert (tmp_path / "folder" / "times.jsonl").exists()


@pytest.mark.slow
def test_the_command_exports_and_imports(tmp_path, capsys):
    model, folder, logs = str(tmp_path / "small.onnx"), tmp_path / "made", str(tmp_path / "logs")
    onnx.save(small_model(), model)
    command = ["tune", model, "--target", "cuda:h200", "--logs", logs, "--trials", "8"]
    assert main([*command, "--export", str(folder)]) == 0
    assert "8 candidates of 4 functions" in capsys.readouterr().out
    numbers = [c["number"] for c in read(folder / "candidates.json")["candidates"]]
    assert numbers == list(range(8))
    assert main(["tune", model, "--export", str(folder)]) == 1
    assert "are for GPUs" in capsys.readouterr().err
    tasks, trials = trials_of(small_model(), preset("cuda:h200"), each=1)
    gpu = {"name": "H200", "architecture": "sm_90", "multiprocessors": 132}
    line = line_of(trials[0], gpu=gpu, device=identity(preset("cuda:h200")))
    (tmp_path / "times.jsonl").write_text(json.dumps(line) + "\n")
    assert main([*command, "--import", str(tmp_path / "times.jsonl")]) == 0
    assert "1 taken" in capsys.readouterr().out
    assert tasks
