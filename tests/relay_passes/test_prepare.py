"""Real models come out as one region of few operators; meaning and foreign functions stay."""

import numpy as np
import onnx
import pytest
import tvm
from onnx import helper
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tests.marks import slow_but
from tests.zoo.light_models import narrow
from tvm_rammer.relay_passes import Launch, finish, load_model, partition, prepare, replace_region
from tvm_rammer.zoo.light import NAMES, light, light_path

from .models import by_onnxruntime, calls, model, node, op_names, random, tensor, value
from .passes.test_fold_batchnorm import build, norm

OPERATORS = {
    "squeezenet": 41,
    "resnet50": 58,
    "shufflenet": 76,
    "inception_v1": 87,
    "inception_v2": 90,
    "densenet121": 242,
}


@pytest.mark.parametrize("name", slow_but(["squeezenet", "shufflenet"], NAMES))
def test_light_models_become_one_region(name, target):
    found = partition(prepare(target)(load_model(narrow(onnx.load(light_path(name))))))
    assert found.stock_calls == () and len(found.regions) == 1
    graph = found.regions[0].graph
    assert len(graph.operators) <= OPERATORS.get(name, 28)
    assert sum(b.kind == "input" for b in graph.buffers) == sum(b.kind == "output" for b in graph.buffers) == 1


def test_squeezenet_is_fused_as_stock_fuses_it(target):
    names = op_names(prepare(target)(load_model(light_path("squeezenet"))))
    assert len(names) == 41
    assert sum(n.startswith("fused_conv2d") and "add" in n and "relu" in n for n in names) == 26
    assert not [n for n in names if n.startswith(("conv2d", "relu", "add", "dropout"))]


def net():
    statistics = {n: np.abs(random(4, seed=i)) + 0.5 for i, n in enumerate("gbmv")}
    nodes = [
        node("Conv", ["x", "w", "c"], ["h"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["h", *"gbmv"], ["n"]),
        node("Relu", ["n"], ["r"]),
        node("Conv", ["r", "w2"], ["a"]),
        node("Conv", ["r", "w3"], ["b2"]),
        node("Concat", ["a", "b2"], ["k"], axis=1),
        node("Split", ["k"], ["s1", "s2"], axis=1),
        node("Add", ["s1", "s2"], ["sum"]),
        node("GlobalAveragePool", ["sum"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "gw", "gb"], ["y"], transB=1),
    ]
    constants = [
        tensor("w", random(4, 2, 3, 3)), tensor("c", random(4)), *map(tensor, statistics, statistics.values()),
        tensor("w2", random(4, 4, 1, 1, seed=7)), tensor("w3", random(4, 4, 1, 1, seed=8)),
        tensor("gw", random(3, 4)), tensor("gb", random(3)),
    ]  # fmt: skip
    return model(nodes, [value("x", [1, 2, 6, 6])], ["y", "s2"], constants)


def test_numbers_agree_with_onnxruntime(run, target):
    mod = prepare(target)(load_model(net()))
    x = random(1, 2, 6, 6, seed=3)
    for got, expected in zip(run(mod, x), by_onnxruntime(net(), x=x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_no_operator_works_on_constants_only(target):
    for call in calls(prepare(target)(load_model(net()))):
        assert any(isinstance(arg, relax.Var) for arg in call.args[1])


def test_finish_compiles_what_prepare_made(target):
    mod = prepare(target)(load_model(net()))
    executable = tvm.compile(mod, target, relax_pipeline=finish(target))
    x = random(1, 2, 6, 6, seed=3)
    y, _ = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(x))
    np.testing.assert_allclose(y.numpy(), by_onnxruntime(net(), x=x)[0], rtol=1e-4, atol=1e-5)


def test_batch_normalisation_that_trains_keeps_its_meaning(run, target):
    mod = build((2, 3, 4, 4), lambda b, x: norm(b, x, 3, training=True))
    x = random(2, 3, 4, 4)
    np.testing.assert_allclose(run(prepare(target)(mod), x), run(mod, x), rtol=1e-5, atol=1e-6)


def foreign():
    @I.ir_module
    class Mod:
        @T.prim_func(private=True, s_tir=True)
        def twice(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.sblock("b"):
                    v = T.axis.spatial(4, i)
                    b[v] = a[v] * T.float32(2)

        @R.function
        def helper(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                y = R.negative(x)
                R.output(y)
            return y

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Mod
            with R.dataflow():
                a = R.call_tir(cls.twice, (x,), out_ty=R.Tensor((4,), "float32"))
                b = R.call_dps_packed("rammer.test.add_one", (a,), out_ty=R.Tensor((4,), "float32"))
                c = cls.helper(b)
                d = R.exp(c)
                R.output(d)
            return d

    return Mod


def test_foreign_calls_and_functions_survive(run, target):
    @tvm.register_global_func("rammer.test.add_one", override=True)
    def add_one(a, b):
        tvm.runtime.tensor(a.numpy() + 1).copyto(b)

    mod = prepare(target)(foreign())
    x = random(4)
    np.testing.assert_allclose(run(mod, x), np.exp(-(2 * x + 1)), rtol=1e-5)
    found = partition(mod)
    assert [(r.function, len(r.graph.operators)) for r in found.regions] == [("main", 1), ("main", 1), ("helper", 1)]
    assert found.stock_calls[0] == ("b", "relax.call_dps_packed is not a call_tir")


def test_preparing_twice_changes_nothing_more(target):
    once = prepare(target)(load_model(net()))
    assert len(op_names(prepare(target)(once))) == len(op_names(once))


@I.ir_module
class SizesOfInt32:
    """A function written by hand has sizes of 32 bits, TVM's own have 64."""

    @T.prim_func(private=True, s_tir=True)
    def copy(x: T.Buffer((3,), "float32"), y: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.sblock("copy"):
                a, b = T.axis.remap("SS", [i, j])
                y[a, b] = x[b]

    @R.function
    def main(x: R.Tensor((3,), "float32")):
        cls = SizesOfInt32
        with R.dataflow():
            y = R.call_tir(cls.copy, (x,), out_ty=R.Tensor((2, 2), "float32"))
            z = R.concat((y, y), axis=0)
            R.output(z)
        return z


def test_functions_of_other_sizes_are_not_fused(run, target):
    got = run(prepare(target)(SizesOfInt32), np.array([1, 2, 3], "float32"))
    np.testing.assert_array_equal(got, np.tile(np.array([1, 2], "float32"), (4, 1)))


def test_a_long_chain_is_fused_in_pieces(target):
    nodes = [node(["Relu", "Abs"][i % 2], [f"v{i}"], [f"v{i + 1}"]) for i in range(100)]
    names = op_names(prepare(target)(load_model(model(nodes, [value("v0", [4])], ["v100"]))))
    assert len(names) == 4 and max(map(len, names)) < 400
    with tvm.transform.PassContext(config={"relax.FuseOps.max_depth": 10}):
        assert len(op_names(prepare(target)(load_model(model(nodes, [value("v0", [4])], ["v100"]))))) == 10


def test_an_if_at_run_time_stays_between_regions(run, target):
    then = helper.make_graph([node("Neg", ["h"], ["t"])], "then", [], [value("t", None)])
    other = helper.make_graph(
        [node("Shape", ["h"], ["s"]), node("Reshape", ["h", "s"], ["e"])], "else", [], [value("e", None)]
    )
    nodes = [
        node("Relu", ["x"], ["h"]),
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["c"]),
        node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        node("Exp", ["y"], ["out"]),
    ]
    proto = model(nodes, [value("x", [4])], ["out"], [tensor("zero", np.float32(0))])
    mod = prepare(target)(load_model(proto))
    found = partition(mod)
    assert [region.function for region in found.regions] == ["main", "main", "if_by_data0_then"]
    assert not found.stock_calls
    for x in (random(4), -np.abs(random(4))):
        np.testing.assert_allclose(run(mod, x), by_onnxruntime(proto, x=x)[0], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_a_light_model_with_random_weights_agrees_with_onnxruntime(name, target):
    """Compared before the softmax, each operator replaced by a launch of itself on the way."""
    proto = light(name)
    x = random(1, 3, 224, 224)
    mod = prepare(target)(load_model(proto))
    (region,) = partition(mod).regions
    launches = [
        Launch(mod[op.function], f"launch_{i}", (i,), op.inputs, op.outputs)
        for i, op in enumerate(region.graph.operators)
    ]
    executable = tvm.compile(replace_region(mod, region, launches), target, relax_pipeline=finish(target))
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
    (source,) = mod["main"].params
    (expected,) = by_onnxruntime(proto, **{source.name: x})
    assert expected.std() > 0.01 * np.abs(expected).max()  # a flat output would prove nothing
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())


def test_a_gpu_target_needs_no_gpu():
    gpu = tvm.target.Target(
        {"kind": "cuda", "arch": "sm_90", "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152,
         "thread_warp_size": 32, "registers_per_block": 65536}
    )  # fmt: skip
    found = partition(prepare(gpu)(load_model(net())))
    assert found.stock_calls == () and len(found.regions) == 1
