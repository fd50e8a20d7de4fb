"""LSTM layers of bytes, whose state is quantised in every step, against ONNX Runtime."""

import numpy as np
import pytest

import tvm_rammer
from tests.functions import UNOPTIMISED
from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.loops.body import loop_bodies

from ....models import by_onnxruntime, model, node, random, tensor, value, with_contrib
from .byte_values import weights_of


def lstm_of_bytes(steps=4, batch=2, read=5, hidden=6, direction="forward", *, each=False, kind="int8", bare=False):
    """A DynamicQuantizeLSTM as ONNX Runtime's quantiser writes it; `each`: with a scale for each gate's column."""
    directions = 1 + (direction == "bidirectional")
    one = (directions, 4 * hidden) if each else (directions,)
    constants = [tensor("b", random(directions, 8 * hidden))]
    for name, terms in (("w", read), ("r", hidden)):
        zero = 0 if each else 7  # ONNX Runtime wants none by column
        constants += [
            tensor(name, weights_of(directions, terms, 4 * hidden).astype(kind)),
            tensor(f"{name}_scale", np.linspace(0.003, 0.006, np.prod(one)).astype("float32").reshape(one)),
            tensor(f"{name}_zero", np.full(one, zero, kind)),
        ]
    quantised = ["", "", "", ""] if bare else ["", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"]
    only = node(
        "DynamicQuantizeLSTM", ["x", "w", "r", "b", *quantised], ["y", "h"], domain="com.microsoft",
        direction=direction, hidden_size=hidden,
    )  # fmt: skip
    given, results = [value("x", [steps, batch, read])], [value("y", None), value("h", None)]
    return with_contrib(model([only], given, results, constants))


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"direction": "bidirectional", "each": True},
        {"hidden": 16, "read": 40, "each": True, "batch": 1, "steps": 9},
        {"hidden": 24, "direction": "bidirectional", "kind": "uint8", "steps": 9},
    ],
)
def test_an_lstm_of_bytes_quantises_its_state_in_every_step(how, loops, run):
    proto = lstm_of_bytes(**how)
    x = random(*(d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim))
    made = tvm_rammer.compile(proto, target=UNOPTIMISED).run(None, {"x": x}) if loops else run(load_model(proto), x)
    for ours, theirs in zip(made, by_onnxruntime(proto, x=x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_an_lstm_of_bytes_keeps_them_in_its_loop():
    mod = load_model(lstm_of_bytes(steps=9, batch=1, hidden=16), loops=True)
    (body,) = loop_bodies(mod).values()
    products = [str(call) for call in body.script().splitlines() if "matmul" in call]
    assert len(products) == 1 and 'out_dtype="int32"' in products[0]


def test_an_lstm_of_bytes_without_scales_is_refused_by_name():
    with pytest.raises(ModelError, match=r"DynamicQuantizeLSTM '\w+' leaves out its input 8"):
        load_model(lstm_of_bytes(bare=True))
