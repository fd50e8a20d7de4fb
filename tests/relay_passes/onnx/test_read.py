"""Files and models that are none, or damaged, end in an error of this package, never in a crash."""

import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.forking import python
from tvm_rammer.errors import ModelError, RammerError
from tvm_rammer.relay_passes import load_model

from ..models import model, node, random, rng, tensor, value


def small():
    """A model with most of what the importer looks at."""
    nodes = [
        node("Conv", ["x", "w", "b"], ["h"], pads=[1, 1, 1, 1]),
        node("Shape", ["h"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Concat", ["n", "minus"], ["t"], axis=0),
        node("Pad", ["h", "pads"], ["p"]),
        node("MaxPool", ["p"], ["m"], kernel_shape=[2, 2]),
        node("Reshape", ["h", "t"], ["r"]),
        node("Softmax", ["r"], ["y"], axis=1),
    ]
    constants = [
        tensor("w", random(2, 2, 3, 3)), tensor("b", random(2)), tensor("zero", np.array([0])),
        tensor("minus", np.array([-1])), tensor("pads", np.array([0, 0, 1, 1, 0, 0, 1, 1])),
    ]  # fmt: skip
    return model(nodes, [value("x", [1, 2, 4, 4])], ["y", "m"], constants).SerializeToString()


def attempts(seed, count):
    """`count` damaged versions of the model."""
    draw, whole = rng(seed), small()
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(int(draw.integers(1, 4))):
            data[int(draw.integers(len(data)))] = int(draw.integers(256))
        yield bytes(data[: int(draw.integers(len(data)))] if draw.random() < 0.2 else data)


def load_all(folder, seed, count):
    """Load damaged files; return how many loaded."""
    loaded = 0
    for i, data in enumerate(attempts(seed, count)):
        path = folder / f"{seed}.onnx"
        path.write_bytes(data)
        try:
            load_model(path)
            loaded += 1
        except RammerError:
            pass
        except Exception as error:
            raise AssertionError(f"seed {seed}, attempt {i}: {type(error).__name__}: {error}") from error
    return loaded


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files(tmp_path, seed):
    assert 0 < load_all(tmp_path, seed, 100) < 100


@pytest.mark.slow
def test_many_damaged_files_do_not_crash_the_process(tmp_path):
    code = (
        f"import pathlib, sys; sys.path.insert(0, {str(pathlib.Path(__file__).parents[3])!r})\n"
        "from tests.relay_passes.onnx.test_read import load_all\n"
        f"for seed in range(100, 120): load_all(pathlib.Path({str(tmp_path)!r}), seed, 100)"
    )
    done = subprocess.run([python(), "-c", code], check=False, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]


WILD = {
    "LayerNormalization": node("LayerNormalization", ["x", "scale"], ["y"], axis=2**31),
    "GatherND": node("GatherND", ["x", "i"], ["y"], batch_dims=-8),
    "Split": node("Split", ["x"], ["y"], num_outputs=2**31),
    "ReduceSum": node("ReduceSum", ["x"], ["y"], axes=[2**40]),
}


@pytest.mark.parametrize("name", WILD)
def test_axes_that_no_tensor_has_are_refused_before_anybody_relies_on_them(name):
    """onnx's checker lets them pass, and its shape inference ends the process, or does not end."""
    constants = [tensor("scale", random(4)), tensor("i", np.array([[0]]))]
    proto = model([WILD[name]], [value("x", [2, 4])], ["y"], constants, 11 if name == "ReduceSum" else 18)
    with pytest.raises(RammerError, match=f"{name} 'y' has the (axis|axes|batch_dims|num_outputs) -?[0-9]+"):
        load_model(proto)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scan_output_axes": [-3]}, r"scan_output_axes \[-3\] .* for 1 outputs of \[1\] axes"),
        ({"scan_output_axes": [0, 0]}, r"scan_output_axes \[0, 0\]"),
        ({"scan_input_axes": [2]}, r"scan_input_axes \[2\]"),
        ({"scan_input_directions": [-1]}, r"scan_input_directions \[-1\]"),
        ({"scan_output_directions": [0, 1]}, r"scan_output_directions \[0, 1\]"),
    ],
)
def test_axes_of_a_scan_that_are_none_are_refused(wrong, message):
    """A result along another axis is of another shape."""
    nodes = [node("Add", ["s", "row"], ["next"]), node("Identity", ["next"], ["seen"])]
    given, results = [value("s", [3]), value("row", [3])], [value("next", [3]), value("seen", [3])]
    body = helper.make_graph(nodes, "body", given, results)
    scan = node("Scan", ["first", "x"], ["last", "y"], name="it", body=body, num_scan_inputs=1, **wrong)
    proto = model([scan], [value("first", [3]), value("x", [4, 3])], ["last", "y"])
    with pytest.raises(ModelError, match=f"Scan 'it' has .*{message}"):
        load_model(proto)


@pytest.mark.parametrize(
    "content", [b"", b"not a model, but a text\n" * 20, b"\x00" * 100], ids=["empty", "text", "zeros"]
)
def test_files_that_are_no_models(tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(ModelError, match=r"m\.onnx"):
        load_model(tmp_path / "m.onnx")


def test_a_truncated_file(tmp_path):
    whole = small()
    (tmp_path / "m.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="truncated"):
        load_model(tmp_path / "m.onnx")


def test_missing_files_and_other_objects(tmp_path):
    with pytest.raises(ModelError, match="no model file"):
        load_model(tmp_path / "none.onnx")
    with pytest.raises(ModelError, match="is a folder"):
        load_model(tmp_path)
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(ModelError, match=r"empty\.onnx' is empty"):
        load_model(tmp_path / "empty.onnx")
    with pytest.raises(ModelError, match=r"builtins\.int"):
        load_model(3)


def test_empty_graphs():
    with pytest.raises(ModelError, match="empty graph"):
        load_model(model([], [], []))
    with pytest.raises(ModelError, match="no output"):
        load_model(model([node("Relu", ["x"], ["y"])], [value("x", [1])], []))


def test_an_invalid_model_is_refused():
    with pytest.raises(ModelError, match="not a valid ONNX model"):
        load_model(model([node("Relu", ["nowhere"], ["y"])], [value("x", [1])], ["y"]))


def test_nodes_that_wait_for_each_other_are_refused():
    nodes = [node("Add", ["x", "b"], ["a"]), node("Neg", ["a"], ["b"])]
    with pytest.raises(ModelError, match="topologically sorted"):
        load_model(model(nodes, [value("x", [3])], ["b"]))


def test_external_data(tmp_path, run):
    proto = model([node("MatMul", ["x", "w"], ["y"])], [value("x", [2, 64])], ["y"], [tensor("w", random(64, 64))])
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    x = random(2, 64, seed=1)
    np.testing.assert_allclose(run(load_model(tmp_path / "m.onnx"), x), x @ random(64, 64), rtol=1e-4, atol=1e-4)
    (tmp_path / "m.bin").unlink()
    with pytest.raises(ModelError, match="external data"):
        load_model(tmp_path / "m.onnx")
