"""Inputs that operators of ONNX Runtime need."""

import pytest
from onnx import helper
from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime_state

from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.onnx.check.microsoft import NEEDED
from tvm_rammer.relay_passes.onnx.lower.operators import is_lowered

from ...models import model, node, random, tensor, value

DOMAIN = "com.microsoft"
SCHEMAS = {schema.name: schema for schema in onnxruntime_state.get_all_operator_schema() if schema.domain == DOMAIN}
NORMS = {"LayerNormalization": (0, 1), "SimplifiedLayerNormalization": (0, 1), "GroupNormalization": (0, 1, 2)}
"""ONNX Runtime has them in ONNX's domain."""


def is_known(kind):
    return is_lowered(node(kind, [], ["y"], domain=DOMAIN)) or kind in ("MatMulInteger16", "DynamicQuantizeLSTM")


def test_the_table_is_that_of_onnxruntime():
    found = {
        name: tuple(n for n, given in enumerate(schema.inputs) if not str(given.option).endswith("Optional"))
        for name, schema in SCHEMAS.items()
        if is_known(name)
    }
    assert found | NORMS == NEEDED


@pytest.mark.parametrize("kind", NEEDED)
def test_what_is_left_out_is_refused_by_name(kind):
    for lacking in NEEDED[kind]:
        names = ["" if n == lacking else f"x{n}" for n in range(max(NEEDED[kind]) + 2)]
        inputs = [value(name, [2, 4]) for name in names if name]
        proto = model([node(kind, names, ["y"], domain=DOMAIN)], inputs, ["y"])
        proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        with pytest.raises(ModelError, match=f"{kind} 'y' leaves out its input {lacking}"):
            load_model(proto)


@pytest.mark.parametrize("domain", ["", DOMAIN])
def test_a_norm_without_a_scale_is_no_norm_without_one(domain):
    """A bias is no scale, either."""
    for names in (["x"], ["x", "", "b"]):
        proto = model([node("LayerNormalization", names, ["y"], domain=domain)], [value("x", [2, 4])], ["y"], opset=15)
        proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        proto.graph.initializer.append(tensor("b", random(4)))
        with pytest.raises(ModelError, match="LayerNormalization 'y' leaves out its input 1"):
            load_model(proto)
