"""Saved models: what is written is what is loaded, and what cannot be loaded is refused by name."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tests.two_inputs import two_inputs
from tvm_rammer.errors import ModelError, RammerError, SavedModelError, ToolError
from tvm_rammer.saving import file as saved_file

ROOT = pathlib.Path(tvm_rammer.__file__).parents[1]


@pytest.fixture(scope="module")
def module():
    return tvm_rammer.compile(two_inputs())


@pytest.fixture(scope="module")
def saved(module, tmp_path_factory):
    return module.save(tmp_path_factory.mktemp("saved") / "model.rammer")


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(1)
    return rng.standard_normal((2, 16)).astype("float32"), rng.standard_normal((2, 32)).astype("float32")


def test_a_loaded_model_is_the_saved_one(module, saved, arrays):
    loaded = tvm_rammer.load(saved)
    for got, want in zip(loaded(*arrays), module(*arrays), strict=True):
        np.testing.assert_array_equal(got, want)
    assert (loaded.inputs, loaded.outputs) == (module.inputs, module.outputs)
    assert [(s.name, s.shape, s.dtype) for s in loaded.outputs] == [(n, (2, 32), "float32") for n in ("y", "z")]
    for told in ("explain", "report", "schedule_svg", "trace"):
        assert getattr(loaded, told)() == getattr(module, told)()
    assert loaded.compilation == module.compilation
    with pytest.raises(ModelError, match="no value for the inputs b"):
        loaded(arrays[0])


def test_a_loaded_model_takes_tensors_of_tvm(saved, arrays, module):
    got = tvm_rammer.load(saved)(*map(tvm.runtime.tensor, arrays))
    assert all(isinstance(t, tvm.runtime.Tensor) for t in got)
    np.testing.assert_array_equal(got[0].numpy(), module(*arrays)[0])


def test_loading_needs_no_compiler(saved, module, arrays, tmp_path):
    np.savez(tmp_path / "in.npz", *arrays)
    script = (
        "import sys, numpy as np, tvm_rammer\n"
        "folder, path = sys.argv[1:]\n"
        "with np.load(folder + '/in.npz') as given: arrays = [given[k] for k in given.files]\n"
        "module = tvm_rammer.load(path)\n"
        "np.savez(folder + '/out.npz', *module(*arrays))\n"
        "assert 'tvm' not in sys.modules and 'onnx' not in sys.modules\n"
        "import tvm\n"
        "after = module(*map(tvm.runtime.tensor, arrays))\n"
        "np.testing.assert_array_equal(after[0].numpy(), module(*arrays)[0])\n"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", script, str(tmp_path), str(saved)], check=True, timeout=300, env=env)
    with np.load(tmp_path / "out.npz") as got:
        np.testing.assert_array_equal(got["arr_0"], module(*arrays)[0])


def test_calls_of_stock_tvm_run_in_a_new_process(tmp_path):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, n]) for name, n in (("x", 12), ("y", 3))]
    nodes = [helper.make_node("TopK", ["x", "k"], ["best", "at"]), helper.make_node("Tanh", ["best"], ["y"])]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [numpy_helper.from_array(np.array([3]), "k")])
    module = tvm_rammer.compile(helper.make_model(graph))
    assert module.compilation.stock_calls
    path = module.save(tmp_path / "m.rammer")
    script = (
        "import sys, numpy as np, tvm_rammer\n"
        "x = np.arange(24, dtype='float32').reshape(2, 12) / 24\n"
        "np.save(sys.argv[2], tvm_rammer.load(sys.argv[1])(x))\n"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    out = tmp_path / "y.npy"
    subprocess.run([sys.executable, "-c", script, str(path), str(out)], check=True, timeout=300, env=env)
    np.testing.assert_allclose(np.load(out)[0], np.tanh(np.float32([11, 10, 9]) / 24), rtol=1e-5)


def test_plain_tvm_loads_the_file_under_the_name_of_a_library(saved, module, arrays, tmp_path):
    shutil.copy(saved, tmp_path / "model.so")
    main = relax.VirtualMachine(tvm.runtime.load_module(str(tmp_path / "model.so")), tvm.cpu())["main"]
    np.testing.assert_array_equal(main(*map(tvm.runtime.tensor, arrays))[0].numpy(), module(*arrays)[0])


def test_a_loaded_model_can_be_saved_and_exported_again_even_when_its_file_is_gone(saved, tmp_path, arrays, module):
    moved = pathlib.Path(shutil.copy(saved, tmp_path / "moved.rammer"))
    loaded = tvm_rammer.load(moved)
    moved.unlink()
    again = tvm_rammer.load(loaded.save(tmp_path / "again.rammer"))
    np.testing.assert_array_equal(again(*arrays)[0], module(*arrays)[0])
    library = loaded.export_library(tmp_path / "model.so")
    assert not zipfile.is_zipfile(library)
    main = relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())["main"]
    np.testing.assert_array_equal(main(*map(tvm.runtime.tensor, arrays))[0].numpy(), module(*arrays)[0])
    assert loaded.explain() == module.explain()
    assert loaded.executable.stats() == module.executable.stats()


def test_a_file_that_takes_the_place_of_another_is_loaded(tmp_path):
    path = tmp_path / "model.rammer"
    kept = []
    for factor in (2.0, 3.0, 2.0):
        mod = relax_module([(3,)], lambda x, factor=factor: relax.op.multiply(x, relax.const(factor, "float32")))
        tvm_rammer.compile(mod).save(path)
        kept.append((factor, tvm_rammer.load(path)))
        for expected, loaded in kept:
            np.testing.assert_array_equal(loaded(np.ones(3, "float32")), np.full(3, expected, "float32"))


@pytest.mark.usefixtures("with_cache")
@pytest.mark.parametrize("shapes", [[(3, 0)], [(0,), (2, 0, 3), (0, 4)]])
def test_results_without_elements_come_back(shapes, tmp_path):
    """TVM cannot read what it writes of constants with these shapes."""
    empty = {f"c{i}": np.zeros(shape) for i, shape in enumerate(shapes)}
    nodes = [helper.make_node("Relu", ["x"], ["y"]), *(helper.make_node("Neg", [n], [f"z{n}"]) for n in empty)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    results = [helper.make_tensor_value_info(f"z{n}", TensorProto.DOUBLE, a.shape) for n, a in empty.items()]
    constants = [numpy_helper.from_array(a, n) for n, a in empty.items()]
    model = helper.make_model(helper.make_graph(nodes, "empty", [x], [y, *results], constants))
    module = tvm_rammer.compile(model, cache=False)
    library = shutil.copy(module.export_library(tmp_path / "m.so"), tmp_path / f"{len(shapes)}.so")
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())
    value = np.float32([-1, 2])
    ways = [module, tvm_rammer.load(module.save(tmp_path / "m.rammer"))]
    ways += [tvm_rammer.compile(model, cache=tmp_path / "cache") for _ in range(2)]
    for got in (*(way(value) for way in ways), [t.numpy() for t in machine["main"](tvm.runtime.tensor(value))]):
        np.testing.assert_array_equal(got[0], [0, 2])
        assert [(a.shape, str(a.dtype)) for a in got[1:]] == [(shape, "float64") for shape in shapes]


def test_an_index_outside_is_an_error_of_a_loaded_model_too(tmp_path):
    mod = relax_module([(4, 3)], lambda x: relax.op.take(x, relax.op.astype(relax.op.sum(x), "int64"), axis=0))
    loaded = tvm_rammer.load(tvm_rammer.compile(mod).save(tmp_path / "m.rammer"))
    loaded(np.zeros((4, 3), "float32"))
    with pytest.raises(ModelError, match="index"):
        loaded(np.ones((4, 3), "float32"))


def rewritten(saved: pathlib.Path, path: pathlib.Path, change) -> pathlib.Path:
    """A copy of a saved model that says something else of itself."""
    with zipfile.ZipFile(saved) as archive:
        told = json.loads(archive.read(saved_file.FACTS))
    change(told)
    path.write_bytes(saved.read_bytes()[: told["library_bytes"]])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(saved_file.FACTS, json.dumps(told))
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda told: told["versions"].update(tvm_rammer="0.0.1"), "was saved by tvm_rammer 0.0.1, TVM .* and this is"),
        (lambda told: told["versions"].update(TVM="0.99"), "TVM 0.99"),
        (lambda told: told.update(format=0), r"format 0\)"),
        (lambda told: told.update(library_crc32=1), "is damaged"),
        (lambda told: told.pop("device"), "no saved model"),
        (lambda told: told.pop("versions"), "no saved model"),
        (lambda told: told["device"].update(speed=1), "no saved model"),
        (lambda told: told["device"].update(target='{"kind": "llvm", "mtriple": "aarch64-linux-gnu"}'), "aarch64"),
    ],
)
def test_what_cannot_be_loaded_here_is_refused(saved, tmp_path, change, message):
    with pytest.raises(SavedModelError, match=message):
        tvm_rammer.load(rewritten(saved, tmp_path / "other.rammer", change))


def test_a_processor_that_lacks_instructions_is_refused(saved, monkeypatch):
    monkeypatch.setattr("tvm_rammer.device.host.cpu_flags", lambda: {"sse2"})
    if json.loads(zipfile.ZipFile(saved).read(saved_file.FACTS))["device"]["vector_bytes"] > 16:
        with pytest.raises(SavedModelError, match="cannot run here: this processor has no"):
            tvm_rammer.load(saved)


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(saved, tmp_path, keep):
    data = saved.read_bytes()
    path = tmp_path / "cut.rammer"
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(SavedModelError, match="it is truncated"):
        tvm_rammer.load(path)


def test_a_damaged_library_is_refused(saved, tmp_path):
    data = bytearray(saved.read_bytes())
    data[len(data) // 4] ^= 255
    (tmp_path / "bad.rammer").write_bytes(data)
    with pytest.raises(SavedModelError, match="is damaged"):
        tvm_rammer.load(tmp_path / "bad.rammer")


def test_foreign_files_are_refused(module, tmp_path):
    with pytest.raises(SavedModelError, match="there is no file"):
        tvm_rammer.load(tmp_path / "nowhere.rammer")
    (tmp_path / "text").write_text("no model")
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("a", "b")
    module.export_library(tmp_path / "plain.so")
    for name in ("text", "archive", "plain.so", "."):
        with pytest.raises(SavedModelError, match="no saved model"):
            tvm_rammer.load(tmp_path / name)


def test_a_record_holds_no_other_classes(saved, tmp_path):
    import pickle

    data = pickle.dumps(os.getcwd)
    path = rewritten(saved, tmp_path / "evil.rammer", lambda told: None)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(saved_file.RECORD, data)
    loaded = tvm_rammer.load(path)
    with pytest.raises(SavedModelError, match="no part of a record"):
        loaded.explain()


def test_what_cannot_be_saved_leaves_what_was_there(module, tmp_path, monkeypatch):
    path = tmp_path / "model.rammer"
    path.write_text("the model of before")
    with pytest.raises(RammerError, match="there is no folder"):
        module.save(tmp_path / "nowhere" / "model.rammer")
    monkeypatch.setattr("tvm.support.cc.get_cc", lambda: None)
    with pytest.raises(ToolError, match="no C compiler"):
        module.save(path)
    assert path.read_text() == "the model of before"
    assert os.listdir(tmp_path) == ["model.rammer"]


def test_a_model_for_a_gpu_keeps_its_source(tmp_path):
    module = tvm_rammer.compile(two_inputs(), target="cuda:h200")
    loaded = tvm_rammer.load(module.save(tmp_path / "gpu.rammer"))
    assert loaded.cuda_source() == module.cuda_source()
    assert loaded.explain() == module.explain()
    assert dataclasses.asdict(loaded.compilation.device) == dataclasses.asdict(module.compilation.device)
    if not tvm.cuda().exist:
        with pytest.raises(ToolError, match="no CUDA device"):
            loaded(np.zeros((2, 16), "float32"), np.zeros((2, 32), "float32"))
