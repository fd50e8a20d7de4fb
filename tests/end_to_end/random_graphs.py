"""Random ONNX graphs of real operators, with branches, joins and several outputs."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Graph:
    """Grows a graph; `values` are the tensors made so far, by name, with their shapes."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.values: dict[str, tuple[int, ...]] = {}

    def constant(self, *shape: int) -> str:
        name = f"c{len(self.constants)}"
        array = self.rng.standard_normal(shape).astype("float32") / max(1.0, np.sqrt(np.prod(shape[1:])))
        self.constants.append(numpy_helper.from_array(np.asarray(array, "float32"), name))
        return name

    def integers(self, *values: int) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, "int64"), name))
        return name

    def add(self, op: str, inputs: list[str], *shapes: tuple[int, ...], **attributes: object) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(len(shapes))]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        self.values |= dict(zip(names, shapes, strict=True))
        return names

    def pick(self, rank: int) -> str:
        return self.rng.choice([n for n, s in self.values.items() if len(s) == rank])


def _conv(g: _Graph) -> None:
    x = g.pick(4)
    n, c, h, w = g.values[x]
    groups = int(g.rng.choice([d for d in (1, 1, 2, c) if c % d == 0]))
    out = groups * int(g.rng.integers(1, 9))
    kernel = int(g.rng.choice([k for k in (1, 3, 5) if k <= min(h, w)]))
    stride, pad = int(g.rng.integers(1, 3)), int(g.rng.integers(0, kernel // 2 + 1))
    shape = (n, out, (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1)
    inputs = [x, g.constant(out, c // groups, kernel, kernel)]
    if g.rng.random() < 0.5:
        inputs.append(g.constant(out))
    g.add("Conv", inputs, shape, group=groups, strides=[stride] * 2, pads=[pad] * 4, kernel_shape=[kernel] * 2)


def _pool(g: _Graph) -> None:
    x = g.pick(4)
    n, c, h, w = g.values[x]
    if min(h, w) < 2:
        return
    op = str(g.rng.choice(["MaxPool", "AveragePool"]))
    g.add(op, [x], (n, c, h // 2, w // 2), kernel_shape=[2, 2], strides=[2, 2])


def _unary(g: _Graph) -> None:
    x = g.pick(int(g.rng.choice([2, 4])))
    g.add(str(g.rng.choice(["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Exp"])), [x], g.values[x])


def _binary(g: _Graph) -> None:
    x = g.pick(4)
    same = [n for n, s in g.values.items() if s == g.values[x]]
    g.add(str(g.rng.choice(["Add", "Mul", "Sub", "Max"])), [x, str(g.rng.choice(same))], g.values[x])


def _concat(g: _Graph) -> None:
    x = g.pick(4)
    n, c, h, w = g.values[x]
    y = str(g.rng.choice([m for m, s in g.values.items() if len(s) == 4 and s[0] == n and s[2:] == (h, w)]))
    g.add("Concat", [x, y], (n, c + g.values[y][1], h, w), axis=1)


def _split(g: _Graph) -> None:
    x = g.pick(4)
    n, c, h, w = g.values[x]
    if c >= 2:
        first = int(g.rng.integers(1, c))
        g.add("Split", [x, g.integers(first, c - first)], (n, first, h, w), (n, c - first, h, w), axis=1)


def _transpose(g: _Graph) -> None:
    x = g.pick(4)
    n, c, h, w = g.values[x]
    g.add("Transpose", [x], (n, c, w, h), perm=[0, 1, 3, 2])


def _head(g: _Graph) -> None:
    x = g.pick(4)
    n, c, h, w = g.values[x]
    (flat,) = g.add("Flatten", [x], (n, c * h * w))
    width = int(g.rng.integers(2, 40))
    g.add("MatMul", [flat, g.constant(c * h * w, width)], (n, width))


def _rows(g: _Graph) -> None:
    pairs = [n for n, s in g.values.items() if len(s) == 2]
    if pairs:
        x = str(g.rng.choice(pairs))
        n, k = g.values[x]
        if g.rng.random() < 0.5:
            g.add("Softmax", [x], (n, k), axis=1)
        else:
            g.add("LayerNormalization", [x, g.constant(k), g.constant(k)], (n, k), axis=1)


def _reduce(g: _Graph) -> None:
    x = g.pick(4)
    n, c, _, _ = g.values[x]
    g.add("ReduceMean", [x, g.integers(2, 3)], (n, c, 1, 1), keepdims=1)


_STEPS = (_conv, _conv, _pool, _unary, _unary, _binary, _concat, _split, _transpose, _head, _rows, _reduce)


def random_graph(seed: int, size: int = 14) -> onnx.ModelProto:
    """Make a model of about `size` operators; the same seed makes the same model."""
    g = _Graph(seed)
    shape = (int(g.rng.integers(1, 3)), int(g.rng.integers(1, 13)), *(int(s) for s in g.rng.integers(4, 15, 2)))
    g.values["x"] = shape
    _head(g)
    for _ in range(size):
        g.rng.choice(_STEPS)(g)
    read = {i for node in g.nodes for i in node.input}
    ends = [n for n in g.values if n not in read and n != "x"]
    # Some values that are read inside leave the graph too.
    ends += [n for n in g.values if n in read and n != "x" and g.rng.random() < 0.15]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, g.values[n]) for n in ends]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(g.nodes, f"random{seed}", inputs, outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model
