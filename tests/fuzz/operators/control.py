"""Loops of a known length and of one that data decide, scans, branches."""

import numpy as np
from onnx import helper

from ..generate.builder import Builder, Value, onnx_type

_STEPS = ("Add", "Mul", "Sub", "Tanh", "Relu", "Sigmoid", "Abs", "Neg")


def _body(b: Builder, prefix, dtype, shape, names, results):
    """Nodes that make `results` tensors of a shape from the named ones, and these names."""
    inner, nodes, made = list(names), [], []
    for i in range(results + b.integer(0, 2)):
        op = b.pick(_STEPS)
        count = 2 if op in ("Add", "Mul", "Sub") else 1
        name = f"{prefix}t{i}"
        nodes.append(helper.make_node(op, [b.pick(inner) for _ in range(count)], [name]))
        inner.append(name)
        made.append(name)
    return nodes, made[len(made) - results :]


def _tensor(name, dtype, shape):
    return helper.make_tensor_value_info(name, onnx_type(dtype), shape)


def _prefix(b: Builder):
    return f"{b.fresh()}_"


def loop(b: Builder):
    x = b.source(["float32", "float64"], high=3)
    dtype, shape, prefix = b.values[x].dtype, b.of(x), _prefix(b)
    names = [prefix + n for n in ("i", "go", "state")]
    outer = [x] if b.chance(0.4) else []
    nodes, results = _body(b, prefix, dtype, shape, [names[2], *outer], 2)
    nodes.append(helper.make_node("Identity", [names[1]], [prefix + "on"]))
    inputs = [helper.make_tensor_value_info(names[0], 7, []), helper.make_tensor_value_info(names[1], 9, [])]
    scanned = b.chance(0.6)
    results = results if scanned else results[-1:]
    outputs = [helper.make_tensor_value_info(prefix + "on", 9, []), *(_tensor(r, dtype, shape) for r in results)]
    body = helper.make_graph(nodes, prefix + "body", [*inputs, _tensor(names[2], dtype, shape)], outputs)
    steps = b.pick([b.integer(0, 5), b.integer(8, 12)])
    limits = [b.integers(steps), b.constant(np.array(True)) if b.chance(0.7) else ""]
    scan = [Value(dtype, (steps, *shape))] if scanned else []
    return b.add("Loop", [*limits, x], len(results), told=[b.values[x], *scan], body=body)


def loop_of_states(b: Builder):
    """Two states that may change places or stay, an integer one, and the number of the round in what is collected."""
    x = b.source(["float32"], high=3)
    shape, prefix = b.of(x), _prefix(b)
    y = b.parameter("float32", shape)
    i, go, first, second, count, added, real, row, on = (
        prefix + n for n in ("i", "go", "first", "second", "count", "added", "real", "row", "on")
    )
    nodes, (result,) = _body(b, prefix, "float32", shape, [first, second], 1)
    nodes += [helper.make_node("Identity", [go], [on]), helper.make_node("Cast", [i], [real], to=1)]
    nodes += [helper.make_node("Add", [first, real], [row])]
    nodes += [helper.make_node(b.pick(["Add", "Mul", "Max"]), [count, i], [added])]
    kept, swapped = f"{prefix}kept", b.chance(0.5)
    nodes += [helper.make_node("Identity", [first if swapped else second], [kept])]
    after = b.pick([[result, kept], [kept, result]])
    ends = [(on, "bool", []), *((n, "float32", shape) for n in after), (added, "int64", []), (row, "float32", shape)]
    given = [
        (i, "int64", []),
        (go, "bool", []),
        *((n, "float32", shape) for n in (first, second)),
        (count, "int64", []),
    ]
    body = helper.make_graph(
        nodes, prefix + "body", [_tensor(*v) for v in given], [_tensor(*v) for v in ends[: b.pick([4, 5])]]
    )
    steps, begin = b.pick([b.integer(0, 5), b.integer(8, 12)]), np.array(b.integer(-3, 3))
    scan = [Value("float32", (steps, *shape))] * (len(body.output) - 4)
    begin = b.pick([b.input, b.constant])(begin)
    told = [b.values[x], b.values[x], b.values[begin], *scan]
    return b.add("Loop", [b.integers(steps), b.constant(np.array(True)), x, y, begin], len(told), told=told, body=body)


def scan(b: Builder):
    steps = b.pick([b.integer(1, 5), b.integer(8, 12)])
    xs = b.source(["float32"], shape=[steps, *(b.integer(1, 5) for _ in range(b.integer(0, 2)))])
    dtype, shape, prefix = "float32", b.of(xs)[1:], _prefix(b)
    state = b.parameter(dtype, shape)
    names = [prefix + "state", prefix + "x"]
    nodes, results = _body(b, prefix, dtype, shape, names, 2)
    ends = [_tensor(n, dtype, shape) for n in (*names, *results)]
    body = helper.make_graph(nodes, prefix + "body", ends[:2], ends[2:])
    back = {k: [1] for k in ("scan_input_directions", "scan_output_directions") if b.chance(0.3)}
    return b.add("Scan", [state, xs], 2, body=body, num_scan_inputs=1, **back) if b.opset >= 9 else []


def data_loop(b: Builder):
    """The number of rounds is an input, or a state says when to end; the condition is computed in each round."""
    x = b.source(["float32"], high=3, check=lambda s: min(s, default=1) > 0)
    shape, prefix = b.of(x), _prefix(b)
    i, go, state, on, much, total = (prefix + n for n in ("i", "go", "state", "on", "much", "total"))
    nodes, results = _body(b, prefix, "float32", shape, [state], 2)
    limit = b.constant(np.float32(b.pick([b.integer(-4, 12), b.integer(50, 150)])))
    if b.chance(0.5):
        nodes += [helper.make_node("ReduceSum", [results[0]], [total], keepdims=0)]
        nodes += [helper.make_node(b.pick(["Less", "Greater"]), [total, limit], [on])]
    else:
        nodes += [helper.make_node("Cast", [i], [much], to=1), helper.make_node("Less", [much, limit], [on])]
    inputs = [helper.make_tensor_value_info(i, 7, []), helper.make_tensor_value_info(go, 9, [])]
    scanned = results[: 1 + b.chance(0.4)]
    outputs = [helper.make_tensor_value_info(on, 9, []), *(_tensor(r, "float32", shape) for r in scanned)]
    body = helper.make_graph(nodes, prefix + "body", [*inputs, _tensor(state, "float32", shape)], outputs)
    few = b.chance(0.7)  # or more than one launch of a loop does
    most, begin = np.array(b.integer(0, 9) if few else b.integer(60, 140)), np.array(b.chance(0.8))
    limits = [
        b.pick([b.input, b.constant])(most),
        b.pick([b.input, b.constant])(begin) if b.chance(0.7) else "",
    ]
    scan = [Value("float32", None, len(shape) + 1)] * (len(scanned) - 1)
    return b.add("Loop", [*limits, x], len(scanned), told=[b.values[x], *scan], body=body)


def growing_loop(b: Builder):
    """A state gets longer in each round, or shorter, and another one is computed of all of it."""
    x = b.source(["float32"], high=3, check=lambda s: min(s, default=0) > 0)
    shape, prefix = b.of(x), _prefix(b)
    axis = b.integer(0, len(shape) - 1)
    thin = [1 if n == axis else size for n, size in enumerate(shape)]
    part, begin = b.parameter("float32", thin), b.parameter("float32", thin)
    i, go, state, other, much, on = (prefix + n for n in ("i", "go", "state", "other", "much", "on"))
    made, joined, grown, total, mixed = (prefix + n for n in ("made", "joined", "grown", "total", "mixed"))
    nodes = [helper.make_node(b.pick(["Tanh", "Neg", "Sigmoid", "Identity"]), [state], [made])]
    added = b.pick([other, part])
    nodes += [helper.make_node("Concat", [made, added] if b.chance(0.7) else [added, made, added], [joined], axis=axis)]
    if b.opset >= 10 and b.chance(0.4):  # two go for one that comes: there may be nothing left
        first, end, along = (b.integers([n]) for n in (b.integer(0, 2), 1 << 40, axis))
        nodes += [helper.make_node("Slice", [joined, first, end, along], [grown])]
    else:
        nodes += [helper.make_node("Identity", [joined], [grown])]
    axes = {"axes": [axis]} if b.has("ReduceSum", "axes") else {}
    nodes += [helper.make_node("ReduceSum", [grown, *([] if axes else [b.integers([axis])])], [total], **axes)]
    nodes += [helper.make_node(b.pick(["Add", "Sub", "Max"]), [total, other], [mixed])]
    limit = b.constant(np.float32(b.integer(-1, 7)))
    nodes += [helper.make_node("Cast", [i], [much], to=1), helper.make_node("Less", [much, limit], [on])]
    open_shape = [None if n == axis else size for n, size in enumerate(shape)]
    counted = [helper.make_tensor_value_info(i, 7, []), helper.make_tensor_value_info(go, 9, [])]
    inputs = [*counted, _tensor(state, "float32", open_shape), _tensor(other, "float32", thin)]
    ends = [(on, "bool", []), (grown, "float32", open_shape), (mixed, "float32", thin)]
    body = helper.make_graph(nodes, prefix + "body", inputs, [_tensor(*end) for end in ends])
    most, always = b.pick([b.input, b.constant])(np.array(b.integer(0, 9))), b.constant(np.array(True))
    told = [Value("float32", None, len(shape)), b.values[begin]]
    return b.add("Loop", [most, always, x, begin], len(told), told=told, body=body)


def branch(b: Builder):
    x = b.source(["float32"], high=4)
    prefix, shape = _prefix(b), b.of(x)
    sides = {}
    for side in ("then", "else"):
        nodes, (result,) = _body(b, prefix + side, "float32", shape, [x], 1)
        sides[side + "_branch"] = helper.make_graph(nodes, prefix + side, [], [_tensor(result, "float32", shape)])
    flag = np.array(b.chance(0.5))
    chosen = b.constant(flag) if b.chance(0.4) else b.input(flag)
    if b.chance(0.4):
        mean = b.add("ReduceMean", [x], keepdims=0)
        (chosen,) = b.add("Greater", [*mean, b.constant(np.float32(0.1))]) if mean else [chosen]
    return b.add("If", [chosen], **sides)


TABLE = {
    "Loop": loop,
    "Loop by data": data_loop,
    "Loop of states": loop_of_states,
    "Loop that grows": growing_loop,
    "Scan": scan,
    "If": branch,
}
