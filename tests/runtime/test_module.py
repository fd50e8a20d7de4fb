"""The public face: how a compiled module is called, asked, drawn and saved."""

import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import partial

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tests.relay_passes.models import model, node, random, value
from tvm_rammer.device import PRESETS, host_cpu, preset
from tvm_rammer.errors import ModelError, RammerError, ScheduleError, ShapeError, TargetError, ToolError, TuningLogError
from tvm_rammer.wavefront import POLICIES, PolicyOptions
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.onnx_lstm import onnx_lstm


def two_inputs(batch=2):
    """y = relu(x @ w + b), z = x @ w."""
    rng = np.random.default_rng(0)
    w = numpy_helper.from_array(rng.standard_normal((16, 32)).astype("float32"), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["z"]),
        helper.make_node("Add", ["z", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 16]),
        helper.make_tensor_value_info("b", TensorProto.FLOAT, [batch, 32]),
    ]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, 32]) for n in ("y", "z")]
    graph = helper.make_graph(nodes, "two_inputs", inputs, outputs, [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def module():
    return tvm_rammer.compile(two_inputs())


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(1)
    return rng.standard_normal((2, 16)).astype("float32"), rng.standard_normal((2, 32)).astype("float32")


@pytest.fixture(scope="module")
def want(arrays):
    w = np.random.default_rng(0).standard_normal((16, 32)).astype("float32")
    z = arrays[0] @ w
    return np.maximum(z + arrays[1], 0), z


def agrees(got, want):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy() if hasattr(a, "numpy") else a, b, rtol=1e-4, atol=1e-5)


def test_numpy_arrays_by_position_and_by_name(module, arrays, want):
    x, b = arrays
    for got in (module(x, b), module(x, b=b), module(b=b, x=x)):
        assert all(isinstance(a, np.ndarray) for a in got)
        agrees(got, want)


def test_numpy_scalars_are_arrays():
    mod = relax_module([(3,), ()], lambda x, scale: relax.op.multiply(x, scale))
    got = tvm_rammer.compile(mod)(np.ones(3, "float32"), np.float32(2.5))
    assert isinstance(got, np.ndarray)
    np.testing.assert_array_equal(got, np.full(3, 2.5, "float32"))


def test_numbers_and_lists_get_the_type_of_the_input(module, arrays, want):
    lists = [array.tolist() for array in arrays]
    opened, session = tvm_rammer.compile(two_inputs("batch")), tvm_rammer.InferenceSession(two_inputs())
    for got in (module(*lists), opened(*lists), session.run(None, dict(zip("xb", lists, strict=True)))):
        assert all(isinstance(a, np.ndarray) for a in got)
        agrees(got, want)
    mod = relax_module([(3,), ()], lambda x, scale: relax.op.multiply(x, scale), dtype="int32")
    scaled = tvm_rammer.compile(mod)
    np.testing.assert_array_equal(scaled([1, 2, 3], 2), [2, 4, 6])
    for wrong, message in ((0.5, "is float64"), (2**40, "out of bounds"), (np.int64(2), "is int64")):
        with pytest.raises(ModelError, match=message):
            scaled([1, 2, 3], wrong)


def test_tvm_tensors_and_anything_that_speaks_dlpack(module, arrays, want):
    class Speaker:
        """Speaks DLPack and nothing else, as a tensor of another framework does."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **how):
            return self.array.__dlpack__(**how)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    for wrap in (tvm.runtime.tensor, Speaker):
        got = module(*(wrap(a) for a in arrays))
        assert all(isinstance(t, tvm.runtime.Tensor) for t in got)
        agrees(got, want)


def test_arrays_that_are_not_contiguous(module, arrays, want):
    x, b = arrays
    agrees(module(np.asfortranarray(x), np.concatenate([b, b])[::2][:2] * 0 + b), want)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x, b: m(x), "no value for the inputs b"),
        (lambda m, x, b: m(x, b, b), "3 inputs given, but the model has 2: x, b"),
        (lambda m, x, b: m(x, b, x=x), "'x' was given twice"),
        (lambda m, x, b: m(x, c=b), "no input 'c'; its inputs are x, b"),
        (lambda m, x, b: m(x[:1], b), r"'x' is float32\[1, 16\], but the model takes float32\[2, 16\]"),
        (lambda m, x, b: m(x.astype("float64"), b), r"'x' is float64\[2, 16\]"),
        (lambda m, x, b: m(x, None), "'b' is a NoneType that holds other things than numbers"),
        (lambda m, x, b: m.run("yz", {"x": x, "b": b}), r"output_names is 'yz'; give a list, as in \['yz'\]"),
        (lambda m, x, b: m.run(3, {"x": x, "b": b}), "output_names is 3; give a list"),
        (lambda m, x, b: m.run([3], {"x": x, "b": b}), "no output 3; its outputs are y, z"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(module, arrays, call, message):
    with pytest.raises(ModelError, match=message):
        call(module, *arrays)


class HasGradient:
    """A tensor that its library hands to nobody."""

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **how):
        raise BufferError("it has a gradient")


class HasNoMemory(HasGradient):
    """A tensor that is only a shape."""

    def __dlpack_device__(self):
        raise ValueError("it has no memory")


@pytest.mark.parametrize("value", [HasGradient(), HasNoMemory(), [[1.0, 2.0], [3.0]]])
@pytest.mark.parametrize("model", [two_inputs(), two_inputs("batch")])
def test_what_cannot_be_read_as_an_array_is_refused(model, value, arrays):
    module, session = tvm_rammer.compile(model), tvm_rammer.InferenceSession(model)
    for call in (
        lambda: module(value, arrays[1]),
        lambda: module.run(None, {"x": value, "b": arrays[1]}),
        lambda: session.run(None, {"x": value, "b": arrays[1]}),
    ):
        with pytest.raises(ModelError, match="input 'x' cannot be read as an array"):
            call()


@pytest.mark.parametrize("feeds", [None, 5, ["x"], {1: 2}])
@pytest.mark.parametrize("model", [two_inputs(), two_inputs("batch")])
def test_feeds_that_are_no_mapping_of_names_are_refused(model, feeds):
    for runs in (tvm_rammer.compile(model), tvm_rammer.InferenceSession(model)):
        with pytest.raises(ModelError, match="give a mapping of names to arrays"):
            runs.run(None, feeds)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "int8", "bool"])
def test_results_are_copies_whatever_their_type(dtype):
    """Also of an input that is a result itself: a later call must not change what an earlier one returned."""
    mod = relax_module([(3, 5), (3, 5)], lambda x, y: relax.Tuple([x, relax.op.flip(y, 1)]), dtype=dtype)
    module = tvm_rammer.compile(mod)
    rng = np.random.default_rng(0)
    calls = [[(rng.random((3, 5)) * 3).astype(dtype) for _ in range(2)] for _ in range(3)]
    results = [module(*arrays) for arrays in calls]
    for (x, y), (first, second) in zip(calls, results, strict=True):
        assert first.dtype == second.dtype == dtype
        np.testing.assert_array_equal(first, x)
        np.testing.assert_array_equal(second, y[:, ::-1])


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


@pytest.mark.parametrize("target", ["cpu", host_cpu(), tvm.target.Target({"kind": "llvm", "num-cores": 2})])
def test_targets(target, arrays, want):
    agrees(tvm_rammer.compile(two_inputs(), target=target)(*arrays), want)


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_with_options(policy, arrays, want):
    module = tvm_rammer.compile(two_inputs(), policy=policy, options=PolicyOptions(budget=3, r=2))
    assert module.report()["policy"] == policy
    agrees(module(*arrays), want)


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"target": "gpu"}, TargetError, "unknown target 'gpu'; give one of cpu, cuda:h200"),
        ({"target": 3}, TargetError, "int is no target"),
        ({"target": tvm.target.Target({"kind": "c"})}, TargetError, "target kind 'c' has no vDevice"),
        ({"policy": "best"}, ScheduleError, "unknown policy 'best'; choose one of auto"),
        ({"sync": "never"}, ScheduleError, "unknown sync 'never'"),
        ({"shapes": {"y": (1,)}}, ShapeError, "'y'"),
        ({"policy": ["auto"]}, ScheduleError, r"policy is \['auto'\]; give a name"),
        ({"tuning_logs": "nowhere"}, TuningLogError, "'nowhere' is no folder"),
        ({"tuning_logs": 3}, TuningLogError, "3 is no path"),
        ({"threads": 10**9}, TargetError, "threads is 1000000000; give an integer, from 1 to 1024"),
        ({"threads": True}, TargetError, "threads is True; give an integer"),
        ({"explore": 1.5}, ModelError, "explore is 1.5; give an integer, at least 0"),
        ({"loops": "no"}, ModelError, "loops is 'no'; give True or False"),
    ],
)
def test_a_wrong_choice_says_what_there_is(how, error, message):
    with pytest.raises(error, match=message):
        tvm_rammer.compile(two_inputs(), **how)


def test_numbers_of_numpy_are_numbers():
    module = tvm_rammer.compile(two_inputs(), threads=np.int64(1), concurrency=np.int32(2), explore=np.uint8(0))
    assert module.report()["veus"] == 1


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


def test_a_model_that_is_compiled_already_says_so(module, tmp_path):
    with pytest.raises(ModelError, match=r"is compiled already; give the model itself, or tvm_rammer\.load it"):
        tvm_rammer.compile(module.save(tmp_path / "model.rammer"))


@pytest.mark.parametrize("name", PRESETS)
def test_every_gpu_preset_plans_and_writes_cuda(name):
    module = tvm_rammer.compile(two_inputs(), target=name)
    text = module.cuda_source()
    assert text.count("__global__ void") // 2 == len(module.rprograms)  # each is declared, then defined
    (resources,) = module.report()["resources"].values()
    if "unknown" in resources:
        assert name == "cuda:v100" or "nvcc is not on the PATH" in resources["unknown"]
    else:
        assert resources["resident_blocks_per_unit"] >= 1
    if not tvm.cuda().exist:
        with pytest.raises(ToolError, match="no CUDA device"):
            module(np.zeros((2, 16), "float32"), np.zeros((2, 32), "float32"))


def test_symbolic_batch(arrays, want):
    model = two_inputs("batch")
    with pytest.raises(ShapeError, match="x"):
        tvm_rammer.compile_together([model])
    agrees(tvm_rammer.compile(model, shapes={"x": (2, 16), "b": (2, 32)})(*arrays), want)


def test_a_pipeline_of_tvm(arrays, want, tmp_path):
    onnx.save(two_inputs(), tmp_path / "m.onnx")
    from tvm.relax.frontend.onnx import from_onnx

    mod = from_onnx(onnx.load(tmp_path / "m.onnx"), keep_params_in_input=False)
    before = mod.script()
    target = tvm.target.Target(host_cpu().target_config())
    executable = tvm.compile(mod, target, relax_pipeline="rammer")
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](*(tvm.runtime.tensor(a) for a in arrays))
    agrees(got, want)
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


def test_sizes_that_cannot_be_are_an_error_of_ours_when_the_model_runs():
    """No exception of TVM's comes out of a call."""
    shape = numpy_helper.from_array(np.array([2, 8, -7]), "shape")
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["y"])]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "sizes", [], [result], [shape])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    with pytest.raises(tvm_rammer.RammerError):
        tvm_rammer.compile(proto, cache=False)()
