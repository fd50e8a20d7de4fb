"""Models of any length, of which compiling shall take a time and a memory that grow with their length."""

import itertools
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPE = (4, 64)
Inputs = dict[str, np.ndarray]
Link = Callable[[str, str], list[onnx.NodeProto]]
"""The nodes that make the value of the second name of the one of the first."""


def _unary(kind: str) -> Link:
    return lambda x, y: [helper.make_node(kind, [x], [y])]


def _with(kind: str, *others: str) -> Link:
    return lambda x, y: [helper.make_node(kind, [x, *others], [y])]


def _twice(kind: str) -> Link:
    return lambda x, y: [helper.make_node(kind, [x, x], [y])]


def _then(first: Link, second: Link) -> Link:
    return lambda x, y: [*first(x, f"{y}_"), *second(f"{y}_", y)]


def _beside(first: Link, kind: str) -> Link:
    """A function of a value, and an operator that reads both."""
    return lambda x, y: [*first(x, f"{y}_"), helper.make_node(kind, [x, f"{y}_"], [y])]


def _selected(condition: Link) -> Link:
    return lambda x, y: [*condition(x, f"{y}_"), helper.make_node("Where", [f"{y}_", x, "small"], [y])]


_UNARY = """
    Abs Acosh Asin Asinh Atan Ceil Celu Cos Cosh Elu Erf Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Neg
    Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tanh ThresholdedRelu
"""

CHAINS: dict[str, Link] = {kind: _unary(kind) for kind in _UNARY.split()} | {
    "Add": _with("Add", "small"),
    "Sub": _with("Sub", "small"),
    "Mul": _with("Mul", "near_one"),
    "Div": _with("Div", "near_one"),
    "Pow": _with("Pow", "half"),
    "PRelu": _with("PRelu", "near_one"),
    "Clip": _with("Clip", "least", "half"),
    "Max": _with("Max", "small"),
    "Min": _with("Min", "small"),
    "Mean": _with("Mean", "small"),
    "Where": lambda x, y: [helper.make_node("Where", ["mask", x, "small"], [y])],
    "Exp of Neg": _then(_unary("Neg"), _unary("Exp")),
    "Atanh of a half": _then(_with("Mul", "half"), _unary("Atanh")),
    "Tan of a half": _then(_with("Mul", "half"), _unary("Tan")),
    "Mul x x": _twice("Mul"),
    "Max x x": _twice("Max"),
    "Add x Tanh": _beside(_unary("Tanh"), "Add"),
    "Mul x Sigmoid": _beside(_unary("Sigmoid"), "Mul"),
    "Sub x Mul": _beside(_with("Mul", "near_one"), "Sub"),
    "Where x > c": _selected(_with("Greater", "small")),
    "Where IsNaN": _selected(_unary("IsNaN")),
}
"""Chains of elementwise functions, each of which keeps its values finite, or makes infinite ones as it has to."""

_CONSTANTS = {
    "small": np.linspace(0.001, 0.002, SHAPE[1], dtype="float32"),
    "near_one": np.linspace(0.999, 1.001, SHAPE[1], dtype="float32"),
    "half": np.float32(0.5),
    "least": np.float32(0.01),
    "mask": np.arange(SHAPE[1]) % 3 > 0,
}


def _model(nodes, inputs, outputs, constants) -> onnx.ModelProto:
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "long",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items() if name in used],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def chain(kind: str, length: int) -> tuple[onnx.ModelProto, Inputs]:
    """A chain of `length` functions of a kind."""
    names = ["x", *(f"v{i}" for i in range(length - 1)), "y"]
    nodes = [node for x, y in itertools.pairwise(names) for node in CHAINS[kind](x, y)]
    x = np.abs(np.random.default_rng(0).standard_normal(SHAPE)).astype("float32")
    return _model(nodes, {"x": SHAPE}, {"y": SHAPE}, _CONSTANTS), {"x": x}


def lstm(steps: int, hidden: int = 64) -> tuple[onnx.ModelProto, Inputs]:
    """A recurrent layer, all states of which are a result."""
    rng = np.random.default_rng(0)
    shapes = {"w": (1, 4 * hidden, hidden), "r": (1, 4 * hidden, hidden), "b": (1, 8 * hidden)}
    weights = {name: (rng.standard_normal(shape) / 8).astype("float32") for name, shape in shapes.items()}
    node = helper.make_node("LSTM", ["x", *weights], ["y", "h"], hidden_size=hidden)
    x = rng.standard_normal((steps, 1, hidden)).astype("float32")
    return _model([node], {"x": x.shape}, {"y": (steps, 1, 1, hidden), "h": (1, 1, hidden)}, weights), {"x": x}


def loop(rounds: int) -> tuple[onnx.ModelProto, Inputs]:
    """A Loop with a state and a scan output."""
    nodes = [
        helper.make_node("Identity", ["go"], ["go_on"]),
        helper.make_node("Mul", ["s", "factor"], ["m"]),
        helper.make_node("Add", ["m", "factor"], ["next"]),
        helper.make_node("Tanh", ["next"], ["seen"]),
    ]
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        nodes,
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("s", TensorProto.FLOAT, SHAPE)],
        [value("go_on", TensorProto.BOOL, []), *(value(n, TensorProto.FLOAT, SHAPE) for n in ("next", "seen"))],
        [numpy_helper.from_array(np.float32(0.9), "factor")],
    )
    node = helper.make_node("Loop", ["rounds", "", "x"], ["last", "all"], body=body)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype("float32")
    outputs = {"last": SHAPE, "all": (rounds, *SHAPE)}
    return _model([node], {"x": SHAPE}, outputs, {"rounds": np.array(rounds)}), {"x": x}


def growing_loop(width: int) -> onnx.ModelProto:
    """A loop of `n` rounds, each of which puts a row of ones behind the rows `x`."""

    def value(name: str, kind: int, *sizes: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, sizes)

    number, truth, real = TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT
    nodes = [helper.make_node("Identity", ["c"], ["on"]), helper.make_node("Concat", ["s", "row"], ["more"], axis=0)]
    given = [value("i", number), value("c", truth), value("s", real, "rows", width)]
    body = helper.make_graph(nodes, "body", given, [value("on", truth), value("more", real, "more_rows", width)])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], "growing",
        [value("n", number), value("x", real, 1, width)], [value("y", real, "all_rows", width)],
        [numpy_helper.from_array(np.ones((1, width), np.float32), "row")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def dense(layers: int, block: int = 16) -> tuple[onnx.ModelProto, Inputs]:
    """Layers that read all earlier ones of their block by a Concat, as in DenseNet."""
    rng = np.random.default_rng(0)
    width, more, nodes, weights, x = 16, 8, [], {}, "x"

    def product(value: str, name: str, inputs: int, outputs: int) -> str:
        weights[f"w{name}"] = (rng.standard_normal((inputs, outputs)) / np.sqrt(inputs)).astype("float32")
        nodes.append(helper.make_node("MatMul", [value, f"w{name}"], [name]))
        return name

    def joined(parts: list[str], name: str) -> str:
        nodes.append(helper.make_node("Concat", parts, [name], axis=1))
        return name

    for start in range(0, layers, block):
        parts = [x]
        for i in range(start, min(start + block, layers)):
            source = joined(parts, f"c{i}") if len(parts) > 1 else x
            made = product(source, f"m{i}", width + more * (i - start), more)
            nodes.append(helper.make_node("Tanh", [made], [f"t{i}"]))
            parts.append(f"t{i}")
        x = product(joined(parts, f"e{start}"), f"x{start}", width + more * (len(parts) - 1), width)
    nodes.append(helper.make_node("Identity", [x], ["y"]))
    given = rng.standard_normal((4, width)).astype("float32")
    return _model(nodes, {"x": given.shape}, {"y": (4, width)}, weights), {"x": given}


MODELS = {"LSTM": lstm, "LSTM unrolled": lstm, "Loop": loop, "Loop unrolled": loop, "Concat": dense}
"""What is unrolled is compiled with `loops=False`."""


def long_model(kind: str, length: int) -> tuple[onnx.ModelProto, Inputs]:
    """The model of a kind of `CHAINS` or `MODELS`, and inputs for it."""
    return MODELS[kind](length) if kind in MODELS else chain(kind, length)
