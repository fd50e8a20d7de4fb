"""What a function returns is of the element type that it said."""

import numpy as np
import pytest
from tvm import relax
from tvm.script import relax as R

import tvm_rammer
from tvm_rammer.errors import UnsupportedOperatorError


def _of_booleans(build):
    """A module of one function of four booleans."""
    builder, x = relax.BlockBuilder(), relax.Var("x", R.Tensor((4,), "bool"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(build(builder, x))
        builder.emit_func_output(result)
    return builder.get()


def _half_as_much(builder, x):
    return builder.emit(relax.op.multiply(x, relax.const(0.5, "float32")))


def test_a_product_that_relax_takes_for_booleans_is_refused():
    with pytest.raises(UnsupportedOperatorError, match=r"result 0 .*'main' has the type bool .*computes float32"):
        tvm_rammer.compile(_of_booleans(_half_as_much))


def test_booleans_that_are_cast_before_are_multiplied():
    mod = _of_booleans(lambda builder, x: _half_as_much(builder, builder.emit(relax.op.astype(x, "float32"))))
    result = tvm_rammer.compile(mod)(np.array([False, True, True, False]))
    assert result.dtype == np.float32
    assert result.tolist() == [0, 0.5, 0.5, 0]
