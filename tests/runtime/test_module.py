"""What a compiled module says of itself, how it is drawn, and the library that it is exported as."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import tvm_rammer
from tests.relay_passes.models import model, node, random, value
from tests.two_inputs import agrees, two_inputs
from tvm_rammer.device import preset
from tvm_rammer.errors import RammerError, TargetError, ToolError
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.onnx_lstm import onnx_lstm


def test_explain_names_every_operator(module):
    text = module.explain()
    for program in module.rprograms:
        for op in program.graph.operators:
            assert op.name in text
    assert "Nothing was left to stock TVM." in text


@pytest.mark.parametrize("model", [partial(lstm_stack, 1, 2, 64), partial(onnx_lstm, 1, 8, 32)], ids=["graph", "loop"])
def test_explain_says_why_veus_are_left_out(model):
    cheap, dear = (
        tvm_rammer.compile(model(), target=replace(preset("cpu"), units=2, wake_us=us, signal_us=0.0))
        for us in (1e-6, 1e6)
    )
    assert {len(program.lanes) for program in dear.rprograms} == {1}
    assert "on 1 of 2 vEUs: 2 would save" in dear.explain()
    assert "less than the 200000.0 us that waking and waiting may cost" in dear.explain()
    assert {len(program.lanes) for program in cheap.rprograms} == {2}
    assert "of 2 vEUs" not in cheap.explain()
    inputs = [np.ones(spec.shape, spec.dtype) for spec in dear.inputs]
    np.testing.assert_allclose(dear(*inputs), cheap(*inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kib", "brief"), [(4096, True), (2048, False)])
def test_data_that_one_core_cannot_keep_are_worth_waking_another(kib, brief):
    """Of 3 MB that are added up, in 30 us or in 80: waking takes 23."""
    caches = {"unit_bytes": kib << 10, "cache_bytes": 256 << 20, "unit_gbps": 200.0, "cache_gbps": 64.0}
    device = replace(preset("cpu"), units=2, clock_ghz=3.0, launch_us=2.0, signal_us=0.1, wake_us=23.0, **caches)
    shape = [1, 64, 64, 64]
    proto = model([node("Add", ["a", "b"], ["y"])], [value(name, shape) for name in "ab"], [value("y", shape)])
    module = tvm_rammer.compile(proto, target=device)
    (program,) = module.rprograms
    assert (len(program.lanes), program.brief) == (2, brief)
    assert ("brief" in module.explain()) == brief
    a, b = random(*shape), random(*shape, seed=1)
    np.testing.assert_array_equal(module(a, b), a + b)


def test_the_picture_is_xml(module):
    assert ElementTree.fromstring(module.schedule_svg()).tag.endswith("svg")


def test_an_exported_library_runs_in_plain_tvm(module, arrays, want, tmp_path):
    path = module.export_library(tmp_path / "model.so")
    np.savez(tmp_path / "in.npz", *arrays)
    script = (
        "import sys, numpy as np, tvm\n"
        "from tvm import relax\n"
        "folder = sys.argv[1]\n"
        "arrays = np.load(folder + '/in.npz')\n"
        "main = relax.VirtualMachine(tvm.runtime.load_module(folder + '/model.so'), tvm.cpu())['main']\n"
        "got = main(*(tvm.runtime.tensor(arrays[k]) for k in arrays.files))\n"
        "np.savez(folder + '/out.npz', *(t.numpy() for t in got))\n"
        "assert 'tvm_rammer' not in sys.modules\n"
    )
    # Once with TVM's own number of workers, which may be too few, and once with two.
    for threads in ({}, {"TVM_NUM_THREADS": "2"}):
        env = {k: v for k, v in os.environ.items() if k != "TVM_NUM_THREADS"} | threads
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=300, env=env)
        with np.load(tmp_path / "out.npz") as got:
            agrees([got[k] for k in got.files], want)
    assert path == tmp_path / "model.so"


def test_a_library_in_a_folder_that_does_not_exist_is_an_error(module, tmp_path):
    with pytest.raises(ToolError, match="a folder that exists"):
        module.export_library(tmp_path / "nowhere" / "model.so")
    with pytest.raises(ToolError, match=r"does not end in \.so"):
        module.export_library(tmp_path / "model")


def test_a_library_that_cannot_be_linked_leaves_what_was_there(module, tmp_path, monkeypatch):
    old = tmp_path / "model.so"
    old.write_text("the library of before")
    monkeypatch.setenv("CXX", "false")
    monkeypatch.setattr("tvm.support.cc.get_cc", lambda: "false")
    with pytest.raises(ToolError, match="cannot link the library"):
        module.export_library(old)
    assert [p.name for p in tmp_path.iterdir()] == ["model.so"]
    assert old.read_text() == "the library of before"


def test_a_library_without_a_c_compiler_is_an_error(module, tmp_path, monkeypatch):
    monkeypatch.setattr("tvm.support.cc.get_cc", lambda: None)
    with pytest.raises(ToolError, match="no C compiler"):
        module.export_library(tmp_path / "model.so")


def test_the_source_of_a_cpu_module_is_an_error(module):
    with pytest.raises(TargetError, match="compiled for cpu"):
        module.cuda_source()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: tvm_rammer.load(None), "None is no path; give a str or an os.PathLike"),
        (lambda m: tvm_rammer.load("model.rammer", concurrency=0), "concurrency is 0"),
        (lambda m: m.save(None), "None is no path"),
        (lambda m: m.export_library(3), "3 is no path"),
        (lambda m: tvm_rammer.fix_inputs(3, {"x": 1}), "3 is no path"),
        (lambda m: tvm_rammer.fix_inputs(two_inputs(), None), "the values are None; give a mapping"),
        (lambda m: tvm_rammer.profile(two_inputs(), runs="3"), "runs is '3'; give an integer, at least 1"),
        (lambda m: tvm_rammer.compile_together(two_inputs()), "give a list"),
        (lambda m: tvm_rammer.compile_together([two_inputs()] * 2, shares=3), "shares is 3; give a list"),
        (lambda m: tvm_rammer.compile_together([two_inputs()] * 2, shares="ab"), "shares is 'ab'; give a list"),
        (lambda m: tvm_rammer.compile_together([two_inputs()] * 2, shares=["a", 1]), "give a positive number"),
    ],
)
def test_what_is_no_path_number_or_list_is_refused(module, call, message, tmp_path, monkeypatch):
    module.save(tmp_path / "model.rammer")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RammerError, match=message):
        call(module)
