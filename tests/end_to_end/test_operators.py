"""One operator at a time, those that are seldom among them: on the CPU against ONNX Runtime, and as CUDA text."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_rammer
from tests.end_to_end.models import by_onnxruntime, image
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.errors import CodegenError
from tvm_rammer.persistent_codegen.library import RTaskLibrary

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(0)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def ints(*values):
    return np.array(values, "int64")


# name: nodes, outputs, constants, shape of x
OPERATORS = {
    "TopK": ([node("Relu", "x", "r"), node("TopK", "r k", "v i"), node("Tanh", "v", "y")], "y i:int", {"k": ints(3)}),
    "CumSum": ([node("CumSum", "x a", "s"), node("Tanh", "s", "y")], "y", {"a": np.array(1, "int64")}),
    "ArgMax": ([node("ArgMax", "x", "y", axis=1)], "y:int", {}),
    "Gather": ([node("Gather", "x i", "g", axis=1), node("Tanh", "g", "y")], "y", {"i": ints(3, -1, 0)}),
    "Where": ([node("Greater", "x c", "m"), node("Where", "m x c", "y")], "y", {"c": floats(1)}),
    "Einsum": ([node("Einsum", "x w", "y", equation="ij,jk->ki")], "y", {"w": floats(12, 5)}),
    "Gemm": ([node("Gemm", "x w b", "y", transB=1, alpha=0.5)], "y", {"w": floats(7, 12), "b": floats(7)}),
    "Scatter": ([node("ScatterElements", "x i u", "y", axis=1)], "y", {"i": ints([1], [2]), "u": floats(2, 1)}),
    "Erf": ([node("Erf", "x", "e"), node("Mul", "e x", "y")], "y", {}),
    "ReduceMax of all": ([node("ReduceMax", "x", "y", keepdims=0)], "y", {}),
    "ReduceSum, then use": ([node("ReduceSum", "x", "s", keepdims=0), node("Add", "x s", "y")], "y", {}),
    "Tile": ([node("Tile", "x r", "y")], "y", {"r": ints(2, 3)}),
    "Identity": ([node("Identity", "x", "y")], "y", {}),
    "an unused value": ([node("Relu", "x", "y"), node("Tanh", "x", "unused")], "y", {}),
    "Resize": (
        [node("Resize", "x  s".replace("  ", " none "), "y", mode="linear")],
        "y",
        {"s": np.float32([1, 1, 2, 2])},
    ),
    "ConvTranspose": ([node("ConvTranspose", "x w", "y", strides=[2, 2])], "y", {"w": floats(4, 5, 3, 3)}),
    "InstanceNorm": ([node("InstanceNormalization", "x s b", "y")], "y", {"s": floats(4), "b": floats(4)}),
    "PRelu": ([node("PRelu", "x s", "y")], "y", {"s": floats(4, 1, 1)}),
    "DepthToSpace": ([node("DepthToSpace", "x", "y", blocksize=2)], "y", {}),
    "LRN": ([node("LRN", "x", "y", size=3, alpha=0.5)], "y", {}),
}
IMAGES = {"Resize", "ConvTranspose", "InstanceNorm", "PRelu", "DepthToSpace", "LRN"}
STOCK = {"TopK"}


def model_of(name):
    nodes, outputs, constants = OPERATORS[name]
    for n in nodes:
        n.input[:] = ["" if i == "none" else i for i in n.input]
    shape = (1, 4, 6, 6) if name in IMAGES else (2, 12)
    results = []
    for text in outputs.split():
        output, _, kind = text.partition(":")
        results.append(helper.make_tensor_value_info(output, INT64 if kind else FLOAT, None))
    x = helper.make_tensor_value_info("x", FLOAT, shape)
    initializers = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "one", [x], results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_on_the_cpu(name):
    model = model_of(name)
    module = tvm_rammer.compile(model)
    x = image(module.inputs[0].shape)
    got = module(x)
    got = got if isinstance(got, tuple) else (got,)
    for a, b in zip(got, by_onnxruntime(model, x), strict=True):
        assert relative_error(a, b) <= 1e-4
    assert bool(module.compilation.stock_calls) == (name in STOCK)
    for call, reason in module.compilation.stock_calls:
        assert f"{call}: {reason}" in module.explain()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OPERATORS.keys() - {"Identity"}))
def test_an_operator_as_cuda_text(name):
    module = tvm_rammer.compile(model_of(name), target="cuda:h200")
    assert "__global__" in module.cuda_source()
    for resources in module.report()["resources"].values():
        assert "nvcc is not on the PATH" in resources.get("unknown", "nvcc is not on the PATH")


def test_another_kernel_takes_the_place_of_one_that_tvm_cannot_lower(monkeypatch):
    model, refused, function = model_of("Gemm"), [], RTaskLibrary.function

    def refusing(self, kernel):
        refused.extend([kernel.spec.name] if not refused else [])
        if kernel.spec.name in refused:
            raise CodegenError(f"{kernel.spec.name} cannot be lowered")
        return function(self, kernel)

    monkeypatch.setattr(RTaskLibrary, "function", refusing)
    module = tvm_rammer.compile(model, cache=False)
    x = floats(*module.inputs[0].shape)
    assert relative_error(module(x), by_onnxruntime(model, x)[0]) < 1e-5
    assert module.report()["rkernels_dropped"]["refused by the code generator"] == 1
    assert not module.compilation.stock_calls


@pytest.mark.parametrize("kind", ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"])
def test_a_reduction_of_one_number_forgets_the_last_one(kind):
    """It is a sum over no axis, which begins with nothing all the same."""
    nodes = [helper.make_node(f"Reduce{kind}", ["x"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in "xy")
    proto = helper.make_model(
        helper.make_graph(nodes, "one", [x], [y]), opset_imports=[helper.make_opsetid("", 12)], ir_version=8
    )
    module = tvm_rammer.compile(proto, cache=False)
    for number in (3, 0.5, 7, 2):
        x = np.array(number, np.float32)
        np.testing.assert_allclose(module.run(None, {"x": x})[0], by_onnxruntime(proto, x)[0], rtol=1e-6)
