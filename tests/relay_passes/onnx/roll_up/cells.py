"""Recurrent cells written out step by step, as PyTorch's exporters write a loop over LSTMCell, GRUCell or RNNCell."""

import numpy as np
import onnx

from ...models import model, node, random, tensor, value

B, WIDTH, H = 2, 5, 8
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


class Writer:
    """Nodes and constants of a model in the making."""

    def __init__(self):
        self.nodes, self.tensors, self.known = [], [], {}

    def add(self, kind, *inputs, results=1, **attributes):
        names = [f"{kind}_{len(self.nodes)}_{n}" for n in range(results)]
        self.nodes.append(node(kind, list(inputs), names, **attributes))
        return names[0] if results == 1 else names

    def constant(self, array):
        array = np.asarray(array)
        key = array.dtype, array.shape, array.tobytes()
        if key not in self.known:
            self.known[key] = f"constant{len(self.tensors)}"
            self.tensors.append(tensor(self.known[key], array))
        return self.known[key]


class Cell:
    """One layer: `step` adds a step to `writer`. With `apart`, each step has copies of the weights."""

    def __init__(self, writer, kind, inputs, hidden, seed=0, copies=False):
        self.writer, self.kind, self.hidden, self.copies = writer, kind, hidden, copies
        rows = GATES[kind] * hidden
        scale = hidden**-0.5
        shapes = [(rows, inputs), (rows, hidden), (rows,), (rows,)]
        self.weights = [scale * random(*shape, seed=4 * seed + n) for n, shape in enumerate(shapes)]

    def given(self, array):
        if not self.copies:
            return self.writer.constant(array)
        name = f"copy{len(self.writer.tensors)}"
        self.writer.tensors.append(tensor(name, array))
        return name

    def step(self, x, states):
        add, (wx, wh, bx, bh) = self.writer.add, self.weights
        h = states[0]
        of_x = add("Gemm", x, self.given(wx), self.given(bx), transB=1)
        of_h = add("Gemm", h, self.given(wh), self.given(bh), transB=1)
        if self.kind == "RNN":
            return [add("Tanh", add("Add", of_x, of_h))]
        if self.kind == "LSTM":
            total = add("Add", of_x, of_h)
            i, f, g, o = add("Split", total, self.constant_sizes(4), results=4, axis=1)
            kept = add("Mul", add("Sigmoid", f), states[1])
            c = add("Add", kept, add("Mul", add("Sigmoid", i), add("Tanh", g)))
            return [add("Mul", add("Sigmoid", o), add("Tanh", c)), c]
        xr, xz, xn = add("Split", of_x, self.constant_sizes(3), results=3, axis=1)
        hr, hz, hn = add("Split", of_h, self.constant_sizes(3), results=3, axis=1)
        r, z = (add("Sigmoid", add("Add", a, b)) for a, b in ((xr, hr), (xz, hz)))
        n = add("Tanh", add("Add", xn, add("Mul", r, hn)))
        return [add("Add", add("Mul", add("Sub", h, n), z), n)]

    def constant_sizes(self, parts):
        return self.writer.constant(np.array([self.hidden] * parts))


def slices(writer, how, steps, x="x", axis=0):
    """The names of what each step reads: [batch, inputs]."""
    add, constant = writer.add, writer.constant
    if how == "inputs":
        return [f"x{t}" for t in range(steps)]
    if how == "gather":
        return [add("Gather", x, constant(np.array(t)), axis=axis) for t in range(steps)]
    if how == "split":
        parts = add("Split", x, constant(np.ones(steps, "int64")), results=steps, axis=axis)
        return [add("Squeeze", part, constant(np.array([axis]))) for part in parts]
    found = []
    for t in range(steps):
        bounds = [constant(np.array([n])) for n in (t, t + 1, axis)]
        part = add("Slice", x, *bounds)
        shape = constant(np.array([-1, WIDTH]))
        found.append(add("Reshape", part, shape) if how == "reshape" else add("Squeeze", part, bounds[2]))
    return found


def stacked(writer, names, axis=0):
    rows = [writer.add("Unsqueeze", name, writer.constant(np.array([axis]))) for name in names]
    return writer.add("Concat", *rows, axis=axis)


def unrolled(
    kind="LSTM",
    steps=12,
    how="gather",
    results="all",
    *,
    layers=1,
    reverse=False,
    batch_first=False,
    zeros=False,
    change=None,
    copies=False,
    sizes=(B, WIDTH, H),
) -> onnx.ModelProto:
    """A loop over cells.

    `how` the steps get what they read; `results` is "all", "last" (h and c) or "both"; `zeros` are the initial states,
    or else inputs of the model; `change` is called with the writer's nodes at the end.
    """
    writer, axis, (batch, inputs, hidden) = Writer(), int(batch_first), sizes
    below = slices(writer, how, steps, axis=axis)
    names = ["h0", "c0"][: 1 + (kind == "LSTM")]
    outputs = []
    for layer in range(layers):
        cell = Cell(writer, kind, hidden if layer else inputs, hidden, seed=layer, copies=copies)
        states = [writer.constant(np.zeros((batch, hidden), "float32")) if zeros else name for name in names]
        above = {}
        for t in reversed(range(steps)) if reverse else range(steps):
            states = cell.step(below[t], states)
            above[t] = states[0]
        below = [above[t] for t in range(steps)]
    if results != "last":
        outputs.append(stacked(writer, below, axis))
    if results != "all":
        outputs += states
    if change:
        change(writer)
    given = (
        [value(f"x{t}", [batch, inputs]) for t in range(steps)]
        if how == "inputs"
        else [value("x", [batch, steps, inputs] if batch_first else [steps, batch, inputs])]
    )
    given += [] if zeros else [value(name, [batch, hidden]) for name in names]
    return model(writer.nodes, given, outputs, writer.tensors)
