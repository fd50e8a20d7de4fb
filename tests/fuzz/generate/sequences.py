"""Models of recurrent layers whose number of steps is open."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import helper

from ..case import ModelCase
from ..operators.recurrent import GATES
from .builder import Builder
from .graphs import finish

TIME = "time"
"""The name of the open dimension."""


def sequence_case(seed: int) -> ModelCase:
    """Make a model of one to three layers along a sequence, and values for the longest one that is tried."""
    rng = random.Random(f"sequences/{seed}")
    while True:
        builder = Builder(rng, rng.choice([14, 17, 18, 20, 22]))
        steps, batch = builder.pick([3, 9, 17, 20]), builder.integer(1, 3)
        x = y = builder.input(builder.numbers("float32", [steps, batch, builder.integer(1, 8)]))
        for _ in range(builder.integer(1, 3)):
            y = _rows(builder, y)
            y = (_scan if builder.chance(0.2) else _layer)(builder, y)
        y = _rows(builder, y)
        model = finish(builder)
        _leave_open(model, x, y)
        try:
            onnx.checker.check_model(model, full_check=True)
        except Exception:
            continue
        feeds = {i.name: builder.feeds[i.name] for i in model.graph.input}
        return ModelCase("sequences", seed, model.SerializeToString(), feeds)


def _leave_open(model: onnx.ModelProto, x: str, y: str) -> None:
    """Name the first dimension of the input; the sizes of results follow from it."""
    for value in model.graph.input:
        if value.name == x:
            value.type.tensor_type.shape.dim[0].dim_param = TIME
    for value in model.graph.output:
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{i}"


def _layer(b: Builder, x: str) -> str:
    op, direction = b.pick(list(GATES)), b.pick([None, "forward", "reverse", "bidirectional"])
    ways, hidden, (_, batch, width) = 1 + (direction == "bidirectional"), b.pick([1, 3, 4, 8, 16]), b.of(x)
    gates = GATES[op] * hidden
    inputs = [x, b.parameter("float32", [ways, gates, width]), b.parameter("float32", [ways, gates, hidden])]
    inputs.append(b.parameter("float32", [ways, 2 * gates]) if b.chance(0.6) else "")
    if b.chance(0.3):
        inputs += ["", _state(b, [ways, batch, hidden])]
    y, *_ = b.add(op, inputs, b.integer(1, 2), hidden_size=hidden, direction=direction)
    if ways == 1:
        return b.add("Squeeze", [y, b.integers([1])])[0]
    (turned,) = b.add("Transpose", [y], perm=[0, 2, 1, 3])
    return b.add("Reshape", [turned, b.integers([0, 0, -1])])[0]


def _state(b: Builder, shape: Sequence[int]) -> str:
    array = b.numbers("float32", shape, -1, 1)
    return b.input(array) if b.chance(0.7) else b.constant(array)


def _scan(b: Builder, x: str) -> str:
    """A running sum, which a function keeps small."""
    shape, prefix = b.of(x)[1:], f"{b.fresh()}_"
    before, row, after, made = (prefix + n for n in ("before", "row", "after", "made"))
    nodes = [helper.make_node("Add", [before, row], [made]), helper.make_node("Tanh", [made], [after])]
    ends = [helper.make_tensor_value_info(n, 1, shape) for n in (before, row, after, made)]
    body = helper.make_graph(nodes, prefix + "body", ends[:2], ends[2:])
    back = {k: [1] for k in ("scan_input_directions", "scan_output_directions") if b.chance(0.3)}
    return b.add("Scan", [_state(b, shape), x], 2, body=body, num_scan_inputs=1, **back)[1]


def _weight(b: Builder, x: str, *columns: int) -> str:
    return b.parameter("float32", [b.of(x)[-1], *columns])


_BY_ROWS: tuple[Callable[[Builder, str], list[str]], ...] = (
    lambda b, x: b.add(b.pick(["Tanh", "Relu", "Sigmoid", "Neg", "Softplus"]), [x]),
    lambda b, x: b.add(b.pick(["Add", "Mul"]), [x, _weight(b, x)]),
    lambda b, x: b.add("MatMul", [x, _weight(b, x, b.integer(1, 9))]),
    lambda b, x: b.add("Softmax", [x], axis=-1),
    lambda b, x: b.add("Concat", [x, x], axis=b.pick([2, -1])),
    lambda b, x: b.add("Add", [x, x]),
    lambda b, x: b.add("Transpose", b.add("Transpose", [x], perm=[1, 0, 2]), perm=[1, 0, 2]),
    lambda b, x: b.add("LpNormalization", [x], axis=-1),
)
"""Operators that compute each row by itself."""


def _rows(b: Builder, x: str) -> str:
    for _ in range(b.integer(0, 3)):
        (x,) = b.pick(_BY_ROWS)(b, x)
    return x


def shortened(feeds: dict[str, np.ndarray], model: onnx.ModelProto, steps: int) -> dict[str, np.ndarray]:
    """The values of fewer steps."""
    opened = {i.name for i in model.graph.input for d in i.type.tensor_type.shape.dim[:1] if d.dim_param == TIME}
    return {name: array[:steps] if name in opened else array for name, array in feeds.items()}
