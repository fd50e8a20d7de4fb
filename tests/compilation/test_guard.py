"""What is said of a module that TVM fails on."""

import pytest
from tvm import relax

import tvm_rammer
from tvm_rammer.errors import ModelError


def test_a_module_that_breaks_a_rule_of_relax():
    """Two functions have the same parameter; TVM says that of nothing but its own data structures."""
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    bb = relax.BlockBuilder()
    for name in ("main", "other"):
        with bb.function(name, [x]):
            bb.emit_func_output(bb.emit(relax.op.exp(x)))
    with pytest.raises(ModelError, match=r'not well-formed: .*x is used as a parameter in both function "main" and'):
        tvm_rammer.compile(bb.get(), cache=False)
