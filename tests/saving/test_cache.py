"""The cache of compiled models: what is found, what is not, and what goes wrong without harm."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tests.two_inputs import two_inputs
from tvm_rammer.errors import ModelError
from tvm_rammer.saving.cache import entries, trim

from .relu import SHAPES, relu

pytestmark = pytest.mark.usefixtures("with_cache")


X = np.array([[-1, 0, 1]], "float32")


def names(folder: pathlib.Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_the_same_is_compiled_once(tmp_path, compilations):
    onnx.save(relu(), tmp_path / "m.onnx")
    cache = tmp_path / "cache"
    for model in (tmp_path / "m.onnx", str(tmp_path / "m.onnx")):
        module = tvm_rammer.compile(model, shapes=SHAPES, cache=cache)
        np.testing.assert_array_equal(module(X), np.maximum(X, 0))
    assert len(compilations) == len(names(cache)) == 1
    tvm_rammer.compile(tmp_path / "m.onnx", shapes={"x": (2, 3)}, cache=cache)
    tvm_rammer.compile(tmp_path / "m.onnx", shapes=SHAPES, cache=cache, policy="list")
    assert len(compilations) == len(names(cache)) == 3
    assert module.report() == tvm_rammer.compile(tmp_path / "m.onnx", shapes=SHAPES, cache=False).report()


def test_relax_modules_and_joined_models_are_kept_too(tmp_path, compilations):
    mod = relax_module([(3,)], lambda x: relax.op.negative(x))
    for _ in range(2):
        np.testing.assert_array_equal(tvm_rammer.compile(mod, cache=tmp_path)(np.ones(3, "float32")), -np.ones(3))
        both = tvm_rammer.compile_together([mod, relu()], shapes=[None, SHAPES], shares=[1, 1], cache=tmp_path)
        assert [s.name for s in both.outputs] == ["model0_output_0", "model1_y"]
    assert len(compilations) == 2
    tvm_rammer.compile_together([mod, relu()], shapes=[None, SHAPES], cache=tmp_path)
    assert len(compilations) == 3


@pytest.mark.parametrize("damage", [b"", b"half", None])
def test_a_damaged_entry_is_made_anew(tmp_path, compilations, damage):
    def compiled():
        return tvm_rammer.compile(relu(), shapes=SHAPES, cache=tmp_path)(X)

    compiled()
    (entry,) = tmp_path.iterdir()
    if damage is None:
        whole = entry.read_bytes()
        damage = bytes(b ^ 255 if n == 4000 else b for n, b in enumerate(whole))
    other = tmp_path / "other"
    other.write_bytes(damage)
    other.rename(entry)
    np.testing.assert_array_equal(compiled(), np.maximum(X, 0))
    assert len(compilations) == 2
    compiled()
    assert len(compilations) == 2


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nowhere", "a\0b"])
def test_a_folder_that_cannot_be_written_hinders_nothing(tmp_path, place):
    (tmp_path / "file").touch()
    module = tvm_rammer.compile(relu(), shapes=SHAPES, cache=f"{tmp_path}/{place}" if place[0] != "/" else place)
    np.testing.assert_array_equal(module(X), np.maximum(X, 0))


def test_a_full_disk_hinders_nothing(tmp_path):
    """LLVM ends the process where it cannot write an object file, so it is not asked to."""
    onnx.save(relu(), tmp_path / "model.onnx")
    program = f"""
import resource
import numpy as np
import tvm_rammer
resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
module = tvm_rammer.compile({str(tmp_path / "model.onnx")!r}, shapes={SHAPES}, cache={str(tmp_path / "cache")!r})
print(module(np.array([[-1, 0, 1]], "float32")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, cwd=pathlib.Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == "[[0. 0. 1.]]\n", done.stderr
    assert not list((tmp_path / "cache").glob("*"))


def test_without_a_c_compiler_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tvm.support.cc.get_cc", lambda: None)
    tvm_rammer.compile(relu(), shapes=SHAPES, cache=tmp_path)(X)
    assert names(tmp_path) == []


def test_the_cache_is_where_the_environment_says_and_can_be_off(tmp_path, monkeypatch):
    monkeypatch.setenv("RAMMER_CACHE", str(tmp_path / "own"))
    tvm_rammer.compile(relu(), shapes=SHAPES, cache=False)
    assert names(tmp_path) == []
    monkeypatch.setenv("RAMMER_CACHE_BYTES", "0")
    tvm_rammer.compile(relu(), shapes=SHAPES)
    assert names(tmp_path) == []
    monkeypatch.setenv("RAMMER_CACHE_BYTES", str(1 << 30))
    tvm_rammer.compile(relu(), shapes=SHAPES)
    assert len(names(tmp_path / "own" / "models")) == 1
    monkeypatch.delenv("RAMMER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    tvm_rammer.compile(relu(), shapes=SHAPES)
    assert len(names(tmp_path / "xdg" / "tvm_rammer" / "models")) == 1
    with pytest.raises(ModelError, match="cache is 3; give True, False, or a folder"):
        tvm_rammer.compile(relu(), shapes=SHAPES, cache=3)


def test_what_was_used_least_recently_goes_first(tmp_path):
    for age, name in enumerate(["new", "used", "old", "oldest"]):
        (tmp_path / f"{name}.rammer").write_bytes(bytes(100))
        os.utime(tmp_path / f"{name}.rammer", (1e9 - age, 1e9 - age))
    (tmp_path / ".abandoned.rammer").write_bytes(bytes(100))
    os.utime(tmp_path / ".abandoned.rammer", (1e9, 1e9))
    (tmp_path / ".in the making.rammer").write_bytes(bytes(100))
    (tmp_path / "somebody's file").touch()
    assert trim(tmp_path, 250) == 3
    assert names(tmp_path) == [".in the making.rammer", "new.rammer", "somebody's file", "used.rammer"]
    assert [path.name for path, _, _ in entries(tmp_path)][-1] == "used.rammer"


def test_a_hit_is_a_use(tmp_path):
    tvm_rammer.compile(relu(), shapes=SHAPES, cache=tmp_path)
    (entry,) = tmp_path.iterdir()
    os.utime(entry, (1e9, 1e9))
    tvm_rammer.compile(relu(), shapes=SHAPES, cache=tmp_path)
    assert entry.stat().st_mtime > 1e9


def test_a_module_outlives_its_entry(tmp_path):
    module = tvm_rammer.compile(relu(), shapes=SHAPES, cache=tmp_path)
    (entry,) = tmp_path.iterdir()
    entry.unlink()
    np.testing.assert_array_equal(module(X), np.maximum(X, 0))
    assert "rOperators" in module.explain()
    module.save(tmp_path / "kept.rammer")
    np.testing.assert_array_equal(tvm_rammer.load(tmp_path / "kept.rammer")(X), np.maximum(X, 0))


def test_an_entry_larger_than_the_cache_is_used_but_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("RAMMER_CACHE_BYTES", "10")
    np.testing.assert_array_equal(tvm_rammer.compile(relu(), shapes=SHAPES, cache=tmp_path)(X), np.maximum(X, 0))
    assert names(tmp_path) == []


def started(script, folder):
    """A process that runs a script on a folder, with this very package."""
    env = os.environ | {"PYTHONPATH": str(pathlib.Path(tvm_rammer.__file__).parents[1])}
    command = [sys.executable, "-c", script, str(folder)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_another_process_finds_what_one_kept_and_imports_no_compiler(tmp_path):
    onnx.save(two_inputs(), tmp_path / "m.onnx")
    script = (
        "import sys, numpy as np, tvm_rammer\n"
        "from tvm_rammer import DeviceSpec, RammerError\n"
        "module = tvm_rammer.compile(sys.argv[1] + '/m.onnx', cache=sys.argv[1] + '/cache')\n"
        "module(*(np.ones(s.shape, s.dtype) for s in module.inputs))\n"
        "print('tvm' in sys.modules or 'onnx' in sys.modules)\n"
    )
    (first, _), (second, errors) = (started(script, tmp_path).communicate(timeout=300) for _ in range(2))
    assert (first, second, errors) == ("True\n", "False\n", "")


@pytest.mark.parametrize("saved", [False, True], ids=["kept", "saved"])
def test_another_process_checks_indices(saved, tmp_path):
    """The check is a function that TVM registers in Python."""
    ids, rows = (helper.make_tensor_value_info(*info) for info in (("i", 7, [2]), ("y", 1, [2, 3])))
    table = numpy_helper.from_array(np.arange(12, dtype="float32").reshape(4, 3), "w")
    graph = helper.make_graph([helper.make_node("Gather", ["w", "i"], ["y"])], "g", [ids], [rows], [table])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    tvm_rammer.compile(tmp_path / "m.onnx", cache=tmp_path / "cache").save(tmp_path / "m.rammer")
    made = (
        "load(sys.argv[1] + '/m.rammer')" if saved else "compile(sys.argv[1] + '/m.onnx', cache=sys.argv[1] + '/cache')"
    )
    script = (
        "import sys, numpy as np, tvm_rammer\n"
        f"module = tvm_rammer.{made}\n"
        "print(module(np.array([3, 0])).tolist())\n"
        "try:\n    module(np.array([3, 4]))\nexcept tvm_rammer.ModelError as error:\n    print(error)\n"
    )
    out, errors = started(script, tmp_path).communicate(timeout=300)
    refused = "Gather got an index outside of the 4 that it indexes; mend the data of 'i'"
    assert out.splitlines() == ["[[9.0, 10.0, 11.0], [0.0, 1.0, 2.0]]", refused], errors


def test_processes_that_compile_the_same_at_the_same_time_share_a_folder(tmp_path):
    onnx.save(two_inputs(), tmp_path / "m.onnx")
    script = (
        "import sys, numpy as np, tvm_rammer\n"
        "module = tvm_rammer.compile(sys.argv[1] + '/m.onnx', cache=sys.argv[1] + '/cache')\n"
        "print(float(module(*(np.ones(s.shape, s.dtype) for s in module.inputs))[1].sum()))\n"
    )
    running = [started(script, tmp_path) for _ in range(2)]
    results = [process.communicate(timeout=300)[0] for process in running]
    assert results[0] == results[1] != ""
    assert [process.returncode for process in running] == [0, 0]
    assert len(names(tmp_path / "cache")) == 1
