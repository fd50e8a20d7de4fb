"""The command line, as a user types it."""

import importlib.util
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.two_inputs import two_inputs
from tvm_rammer.benchmark.bench import CONTENDERS, PEERS, bench
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.cli import main
from tvm_rammer.cli.export import identifier_of
from tvm_rammer.cli.options import _letters, model_of
from tvm_rammer.errors import ModelError
from tvm_rammer.zoo.models import MODELS

from .shell import relu


@pytest.fixture
def model(tmp_path):
    onnx.save(two_inputs("batch"), tmp_path / "model.onnx")
    return str(tmp_path / "model.onnx")


SHAPES = ["--shape", "x=2,16", "--shape", "b=2,32"]


def test_explain(model, capsys, tmp_path):
    drawn = ["--svg", str(tmp_path / "plan.svg"), "--trace", str(tmp_path / "plan.json")]
    assert main(["explain", model, *SHAPES, *drawn]) == 0
    assert "rOperators in one launch" in capsys.readouterr().out
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "plan.json").read_text())["traceEvents"]


def test_compile_writes_a_library(model, tmp_path):
    assert main(["compile", model, *SHAPES, "-o", str(tmp_path / "model.so")]) == 0
    assert (tmp_path / "model.so").stat().st_size > 0


def test_a_saved_model_is_run_and_explained(model, tmp_path, capsys):
    saved = str(tmp_path / "model.rammer")
    assert main(["compile", model, "--shape", "batch=2", "--threads", "1", "-o", saved]) == 0
    out = tmp_path / "out.npz"
    assert main(["run", saved, "--output", str(out)]) == 0
    with np.load(out) as results:
        assert {name: results[name].shape for name in results.files} == {"y": (2, 32), "z": (2, 32)}
    assert main(["explain", saved]) == 0
    assert "1 vEUs" in capsys.readouterr().out
    assert main(["run", saved, "--policy", "list", "--shape", "x=1,16"]) == 1
    assert "is compiled already; leave out --shape, --policy" in capsys.readouterr().err
    (tmp_path / "foreign.rammer").touch()
    assert main(["run", str(tmp_path / "foreign.rammer")]) == 1
    assert "no saved model" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["zoo:Inception module", "zoo:inception-module", "light:ShuffleNet"])
def test_models_of_this_package_have_names(name):
    assert model_of(name).graph.node


def test_no_two_models_have_names_that_mean_the_same():
    assert len({_letters(name) for name in MODELS}) == len(MODELS)


@pytest.mark.parametrize("name", ["zoo:nothing", "light:nothing"])
def test_a_model_that_is_not_there_is_named(name, capsys):
    assert main(["explain", name]) == 1
    assert f"there is no model '{name}'; choose from {name.partition(':')[0]}:" in capsys.readouterr().err


def test_the_cache_is_shown_and_cleared(model, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("RAMMER_CACHE", str(tmp_path / "cache"))
    assert main(["cache"]) == 0
    assert "0 models, 0.0 MB; it is off" in capsys.readouterr().out
    monkeypatch.setenv("RAMMER_CACHE_BYTES", "1000000000")
    for _ in range(2):
        assert main(["run", model, *SHAPES]) == 0
    assert main(["run", model, *SHAPES, "--no-cache", "--threads", "1"]) == 0
    capsys.readouterr()
    assert main(["cache"]) == 0
    told = capsys.readouterr().out
    assert "cache/models: 1 models, 0." in told and "MB of 1000 MB" in told
    assert "x float32[2, 16], b float32[2, 32] -> y float32[2, 32], z float32[2, 32]" in told
    assert main(["cache", "--clear"]) == 0
    assert "removed 1 models" in capsys.readouterr().out
    assert not list((tmp_path / "cache" / "models").iterdir())


def test_the_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"tvm-rammer {tvm_rammer.__version__}\n"


def test_compile_for_a_gpu_writes_cuda(model, tmp_path):
    out = tmp_path / "model.cu"
    command = ["compile", model, *SHAPES, "--target", "cuda:h200", "-o", str(tmp_path / "m.so"), "--cuda-source"]
    assert main([*command, str(out)]) == 0
    assert "__global__" in out.read_text()


def test_export_writes_a_project(model, tmp_path, capsys):
    x = np.random.default_rng(3).standard_normal((2, 16)).astype("float32")
    np.save(tmp_path / "x.npy", x)
    command = ["export", model, *SHAPES, "--target", "cuda:h200", "-o", str(tmp_path / "out")]
    assert main([*command, "--input", f"x={tmp_path / 'x.npy'}"]) == 0
    assert "cmake -B build" in capsys.readouterr().out
    files = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    recorded = {"recorded/inputs.bin", "recorded/outputs.bin"}
    assert files == {"model.cu", "model.h", "model.weights", "main.cpp", "CMakeLists.txt", "manifest.json", *recorded}
    assert (tmp_path / "out" / "recorded" / "inputs.bin").read_bytes().startswith(x.tobytes())
    assert main([*command[:-1], str(tmp_path)]) == 1
    assert "holds something that is no exported project; name a new folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "name"), [("zoo:Inception v1", "inception_v1"), ("a/3D net.onnx", "m_3d_net"), ("light:vgg.2", "vgg_2")]
)
def test_the_name_of_a_project_is_an_identifier(model, name):
    assert identifier_of(model) == name


def test_run_reads_and_writes_arrays(model, tmp_path):
    x = np.random.default_rng(3).standard_normal((2, 16)).astype("float32")
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "out.npz"
    assert main(["run", model, *SHAPES, "--input", f"x={tmp_path / 'x.npy'}", "--output", str(out)]) == 0
    w = np.random.default_rng(0).standard_normal((16, 32)).astype("float32")
    with np.load(out) as results:
        np.testing.assert_allclose(results["z"], x @ w, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_bench_writes_all_figures(model, tmp_path, capsys):
    out = tmp_path / "bench.json"
    there = [name for name in CONTENDERS if name not in PEERS or importlib.util.find_spec(name)]
    against = ",".join(there)
    command = ["bench", model, *SHAPES, "--against", against, "--repeat", "3", "--json", str(out)]
    assert main(command) == 0
    found = json.loads(out.read_text())
    assert {"model", "target", "results", "ratios", "report"} <= found.keys()
    assert found["results"].keys() == {"rammer", *there}
    ours = found["results"]["rammer"]["median_ms"]
    for name, result in found["results"].items():
        assert result["n"] >= 3
        assert 0 < result["median_ms"] <= result["p90_ms"]
        assert result["max_rel_err"] <= 1e-4
        if name != "rammer":
            assert found["ratios"][name] == pytest.approx(result["median_ms"] / ours)
    assert "stock-same-kernels" in capsys.readouterr().out


@pytest.mark.parametrize("name", PEERS)
def test_a_contender_that_is_not_installed_is_named(name, model, monkeypatch, capsys):
    monkeypatch.setattr("tvm_rammer.benchmark.bench.importlib.util.find_spec", lambda name: None)
    assert main(["bench", model, *SHAPES, "--against", name, "--repeat", "1"]) == 0
    assert f"missing: the package {name} is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "nowhere.onnx"], "nowhere.onnx"),
        (["explain", "{model}"], "x"),
        (["explain", "{model}", "--shape", "x=2,a"], "--shape 'x=2,a' is not of the form"),
        (["explain", "{model}", *SHAPES, "--target", "tpu"], "unknown target 'tpu'"),
        (["explain", "{model}", *SHAPES, "--policy", "luck"], "unknown policy 'luck'"),
        (["explain", "{model}", *SHAPES, "--svg", "nowhere/plan.svg"], "cannot write 'nowhere/plan.svg'"),
        (["export", "{model}", *SHAPES, "-o", "nowhere/out"], "export writes CUDA, and "),
        (["bench", "{model}", *SHAPES, "--against", "magic"], "unknown contenders magic"),
        (["bench", "{model}", *SHAPES, "--repeat", "0"], "repeat is 0"),
        (["bench", "{model}", *SHAPES, "--tolerance", "nan"], "tolerance is nan; give a number from 0 on"),
        (["bench", "{model}", *SHAPES, "--tolerance", "-1"], "tolerance is -1.0; give a number from 0 on"),
        (["run", "{model}", *SHAPES, "--input", "x=nowhere.npy"], "nowhere.npy"),
    ],
)
def test_what_is_wrong_is_one_line_on_standard_error(model, arguments, message, capsys):
    assert main([a.replace("{model}", model) for a in arguments]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("tvm-rammer: ")
    assert message in error


def test_results_that_differ_are_not_timed(model, monkeypatch):
    class WrongSession:
        def __init__(self, *arguments, **how):
            self.outputs = [np.zeros((2, 32), "float32")] * 2

        def run(self, names, feed):
            return self.outputs

    monkeypatch.setattr("onnxruntime.InferenceSession", WrongSession)
    with pytest.raises(ModelError, match="nothing was timed"):
        bench(model, against=["onnxruntime"], shapes={"x": (2, 16), "b": (2, 32)}, repeat=1)


@pytest.mark.parametrize(
    ("got", "want", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.2], [1.0, 2.0], 0.1),
        ([1.0, np.nan], [1.0, 2.0], np.inf),
        ([1.0, 2.0], [1.0, np.nan], np.inf),
        ([1.0, np.inf], [1.0, np.nan], np.inf),
        ([1.0, np.inf], [1.0, -np.inf], np.inf),
        ([1.0, np.inf, np.nan], [1.0, np.inf, np.nan], 0.0),
        ([1.0], [1.0, 2.0], np.inf),
    ],
)
def test_relative_error(got, want, error):
    assert relative_error(np.array(got), np.array(want)) == pytest.approx(error)


def test_an_unsupported_operator_is_named(tmp_path, capsys):
    node = helper.make_node("Multinomial", ["x"], ["y"], name="dice")
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 3])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, [3, 1])]
    onnx.save(helper.make_model(helper.make_graph([node], "g", inputs, outputs)), tmp_path / "dice.onnx")
    assert main(["explain", str(tmp_path / "dice.onnx")]) == 1
    assert "Multinomial 'dice'" in capsys.readouterr().err


def test_fix_makes_constants_of_inputs(tmp_path, capsys):
    node = helper.make_node("Mul", ["x", "s"], ["y"])
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [3]), ("s", []))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])]
    onnx.save(helper.make_model(helper.make_graph([node], "g", inputs, outputs)), tmp_path / "m.onnx")
    fixed = tmp_path / "fixed.onnx"
    assert main(["fix", str(tmp_path / "m.onnx"), "s=2.5", "-o", str(fixed)]) == 0
    assert "its inputs are x" in capsys.readouterr().out
    assert [i.name for i in onnx.load(fixed).graph.input] == ["x"]
    assert main(["fix", str(tmp_path / "m.onnx"), "s=fast", "-o", str(fixed)]) == 1
    assert "give NAME=NUMBER" in capsys.readouterr().err
    assert main(["fix", str(tmp_path / "m.onnx"), "t=1", "-o", str(fixed)]) == 1
    assert "'t', which is no input" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "profile", "bench --against stock --repeat 2"])
def test_a_batch_of_none_is_a_batch(tmp_path, command):
    proto = relu()
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    onnx.save(proto, tmp_path / "open.onnx")
    command, *options = command.split()
    assert main([command, str(tmp_path / "open.onnx"), "--shape", "n=0", *options]) == 0


def test_outputs_may_have_any_name(tmp_path):
    """`numpy.savez` takes some for its own parameters."""
    proto = relu()
    proto.graph.node[0].output[0] = proto.graph.output[0].name = "file"
    onnx.save(proto, tmp_path / "model.onnx")
    assert main(["run", str(tmp_path / "model.onnx"), "--output", str(tmp_path / "y.npz")]) == 0
    with np.load(tmp_path / "y.npz") as results:
        assert list(results) == ["file"]
        assert results["file"].shape == (3,)


def test_run_tells_the_time_of_warm_calls(model, capsys):
    assert main(["run", model, *SHAPES]) == 0
    assert "(median of 5; the first run took" in capsys.readouterr().out
