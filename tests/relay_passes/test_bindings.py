"""Bindings that nobody reads are left out, as TVM leaves them out, and in a time that grows as they do."""

import pytest
import tvm_ffi
from tvm import relax

from tests.functions import relax_module
from tvm_rammer.relay_passes.bindings import body_blocks, drop_unused


def dead_chain(x):
    dead = relax.op.exp(x)
    for _ in range(5):
        dead = relax.op.tanh(dead)
    return relax.op.nn.relu(x)


def dead_field(x):
    return relax.TupleGetItem(relax.op.split(x, 2, axis=1), 0)


@pytest.mark.parametrize("body", [dead_chain, dead_field, relax.op.exp])
def test_as_tvm_does(body):
    func = relax_module([(4, 8)], body)["main"]
    assert tvm_ffi.structural_equal(drop_unused(func), relax.analysis.remove_all_unused(func))


def test_what_has_effects_stays():
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x], pure=False):
        builder.emit(relax.op.print(x, format="{}"))
        builder.emit(relax.op.exp(x))
        builder.match_cast(x, relax.TensorType((2,), "float32"))
        builder.emit_func_output(x)
    func = drop_unused(builder.get()["main"])
    kept = [b for block in body_blocks(func) for b in block.bindings]
    assert [type(b) for b in kept] == [relax.VarBinding, relax.MatchCast]
    assert kept[0].value.op.name == "relax.print"
