"""Recurrent layers."""

from ..generate.builder import Builder

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_FUNCTIONS = ("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "Elu")


def layer(op):
    def make(b: Builder):
        # Few steps are unrolled, many are a loop; gates lie in blocks where some power of two divides the hidden size.
        steps, hidden = b.pick([b.integer(1, 5), b.integer(8, 12)]), b.pick([b.integer(1, 6), 4 * b.integer(1, 8)])
        batch, width = b.integer(1, 3), b.integer(1, 6)
        direction = b.pick([None, "forward", "reverse", "bidirectional"])
        ways = 2 if direction == "bidirectional" else 1
        first = b.opset >= 14 and b.chance(0.2)
        x = b.source(["float32"], shape=[batch, steps, width] if first else [steps, batch, width])
        gates = GATES[op] * hidden
        inputs = [x, b.parameter("float32", [ways, gates, width]), b.parameter("float32", [ways, gates, hidden])]
        state = [batch, ways, hidden] if first else [ways, batch, hidden]
        optional = [
            lambda: b.parameter("float32", [ways, 2 * gates]),
            lambda: b.constant(b.numbers("int32", [batch], 1, steps)) if b.chance(0.4) else "",
            lambda: b.parameter("float32", state),
        ]
        if op == "LSTM":
            optional += [lambda: b.parameter("float32", state), lambda: b.parameter("float32", [ways, 3 * hidden])]
        for make_input in optional[: b.integer(0, len(optional))]:
            inputs.append(make_input() if b.chance(0.7) else "")
        count = {"LSTM": 3, "GRU": 2, "RNN": 1}[op]
        how = {
            "hidden_size": hidden,
            "direction": direction,
            "layout": 1 if first else None,
            "activations": [b.pick(_FUNCTIONS) for _ in range(count * ways)] if b.chance(0.2) else None,
            "clip": b.pick([None, None, None, 0.5]),
            "linear_before_reset": b.pick([None, 1]) if op == "GRU" else None,
            "input_forget": b.pick([None, None, None, 1]) if op == "LSTM" else None,
        }
        return b.add(op, inputs, b.integer(1, 3 if op == "LSTM" else 2), **how)

    return make


TABLE = {op: layer(op) for op in GATES}
