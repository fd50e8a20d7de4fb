"""Complete models as persistent kernels: the text that a GPU would run, emulated at full size."""

import functools

import numpy as np
import onnxruntime
import pytest

from tests.emulation.programs import plan, run_all
from tests.end_to_end.models import is_flat
from tvm_rammer import relay_passes
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.zoo.inception_module import inception_module
from tvm_rammer.zoo.light import light
from tvm_rammer.zoo.lstm_stack import lstm_stack

MODELS = {
    "squeezenet": (lambda: light("squeezenet"), 8),
    "inception module": (inception_module, 12),
    "lstm stack": (lambda: lstm_stack(layers=3, steps=3, hidden=64), 6),
}


@functools.cache
def loaded(name):
    """The Relax module of a model, inputs for it, and what ONNX Runtime makes of them."""
    model = MODELS[name][0]()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    inputs = {i.name: rng.standard_normal(i.shape).astype("float32") for i in session.get_inputs()}
    return relay_passes.load_model(model), inputs, session.run(None, inputs)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) for n in MODELS])
@pytest.mark.parametrize("sync", ["auto", "global"])
def test_a_model_agrees_with_onnxruntime(name, sync):
    module, inputs, want = loaded(name)
    built = plan(module, veus=MODELS[name][1], sync=sync)
    given = {b.name for one in built for b in one.program.graph.buffers if b.kind == "input"}
    # Buffers are named after the inputs, with what C does not accept replaced: pair them by order.
    params = [p.name for p in module["main"].params]
    by_buffer = {clean: inputs[name] for name in params for clean in given if same_name(clean, name)}
    assert given <= by_buffer.keys()
    for seed in range(3):
        written = run_all(built, by_buffer, seed)
        outputs = [written[b.name] for one in built for b in one.program.graph.buffers if b.kind == "output"]
        for expected in want:
            assert not is_flat(expected)
            errors = [relative_error(o, expected) for o in outputs if o.shape == expected.shape]
            assert min(errors) <= 1e-4


def same_name(clean, name):
    """Whether a buffer is called after an input."""
    return clean == "".join(c if c.isalnum() else "_" for c in name)
