"""What a compiled model is found by in the cache: all that matters, or no key where that cannot be named."""

import dataclasses

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper

import tvm_rammer
from tvm_rammer import TirKernel
from tvm_rammer.compilation.request import Request
from tvm_rammer.device import host_cpu, preset
from tvm_rammer.ir import Length
from tvm_rammer.saving.key import NoKeyError, request_key
from tvm_rammer.wavefront import PolicyOptions

from .relu import SHAPES, relu


def request(model, **how) -> Request:
    return Request((model,), (how.pop("shapes", None),), how.pop("device", host_cpu()), **how)


def test_the_key_is_of_all_that_matters(tmp_path, monkeypatch):
    model, logs = relu(), tmp_path / "logs"
    logs.mkdir()
    plain = request_key(request(model))
    assert plain == request_key(request(relu()))
    changed = relu()
    changed.graph.node[0].op_type = "Neg"
    found = {
        plain,
        request_key(request(changed)),
        request_key(request(model, shapes=SHAPES)),
        request_key(request(model, shapes={"n": 1})),
        request_key(request(model, sync="global")),
        request_key(request(model, symbolic=True)),
        request_key(request(model, length=Length("n", 9, 0, (0,)))),
        request_key(request(model, digests=(b"another",))),
        request_key(request(model, options=PolicyOptions(seed=3))),
        request_key(request(model, tuning_logs=logs)),
    }
    (logs / "a.jsonl").write_text("{}")
    found.add(request_key(request(model, tuning_logs=logs)))
    (logs / "a.jsonl").write_text("[]")
    found.add(request_key(request(model, tuning_logs=logs)))
    monkeypatch.setenv("TVM_NUM_THREADS", "7")
    found.add(request_key(request(model, device=host_cpu())))
    monkeypatch.delenv("TVM_NUM_THREADS")
    with tvm.transform.PassContext(opt_level=1):
        found.add(request_key(request(model)))
    for name, other in (("cpu_flags", lambda: {"sse2"}), ("versions", dict), ("_version", lambda package: "9")):
        with monkeypatch.context() as patch:
            patch.setattr(f"tvm_rammer.saving.key.{name}", other)
            found.add(request_key(request(model)))
    found.add(request_key(request(model, roll=False)))
    assert len(found) == 18


def test_no_field_of_a_request_is_left_out_of_the_key():
    """Whoever adds one has to say in `saving/key.py` what it does to the key."""
    fields = {field.name for field in dataclasses.fields(Request)}
    named = {"models", "shapes", "device", "joined", "shares", "policy", "sync", "options", "tuning_logs", "loops"}
    named |= {"roll", "data_loops", "symbolic", "length", "digests"}
    refused = {"explore"}
    assert fields == named | refused


def test_external_data_are_part_of_the_key(tmp_path):
    weights = numpy_helper.from_array(np.arange(2048, dtype="float32"), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2048]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weights])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    before = request_key(request(path))
    data = bytearray((tmp_path / "w.bin").read_bytes())
    data[5] ^= 1
    (tmp_path / "w.bin").write_bytes(data)
    assert request_key(request(path)) != before


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"explore": 3}, "explores"),
        ({"device": preset("cuda:h200")}, "cuda:h200"),
        ({"options": PolicyOptions(seconds=1.0, clock=lambda: 0.0)}, "clock"),
        ({"tuning_logs": "nowhere"}, "no folder"),
        ({"shapes": 3}, "shapes"),
    ],
)
def test_what_cannot_be_named_is_not_kept(how, message):
    with pytest.raises(NoKeyError, match=message):
        request_key(request(relu(), **how))


def test_what_watches_a_compilation_has_it_made(monkeypatch, tmp_path):
    with pytest.raises(NoKeyError, match=r"builtins\.dict"):
        request_key(request({}))
    with monkeypatch.context() as patch:
        patch.setenv("RAMMER_DUMP", str(tmp_path))
        with pytest.raises(NoKeyError, match="RAMMER_DUMP"):
            request_key(request(relu()))
    tvm_rammer.register_rkernel("mine", lambda func: False, lambda function: TirKernel(None), kind="cpu")
    try:
        with pytest.raises(NoKeyError, match="registered"):
            request_key(request(relu()))
    finally:
        tvm_rammer.unregister_rkernel("mine", kind="cpu")
