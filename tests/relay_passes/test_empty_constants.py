"""Constants without elements are allocated; all others stay constants."""

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.functions import relax_module
from tvm_rammer.relay_passes.bindings import body_blocks, is_const, leaves, result_of, static_shape
from tvm_rammer.relay_passes.empty_constants import AllocateEmptyConstants

op = relax.op


def constant(shape, dtype="float32"):
    return relax.const(np.zeros(shape, dtype), dtype)


def constants(mod):
    """The shapes of all constants that a module reads or returns."""
    func = mod["main"]
    read = [b.value for block in body_blocks(func) for b in block.bindings]
    return [static_shape(leaf.ty) for expr in (*read, result_of(func)) for leaf in leaves(expr) if is_const(leaf)]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (2, 0, 3)])
def test_a_result_without_elements_is_allocated(shape):
    mod = relax_module([(2,)], lambda x: constant(shape, "int64"))
    after = AllocateEmptyConstants()(mod)
    assert constants(mod) == [shape] and not constants(after)
    tvm.ir.assert_structural_equal(after["main"].ret_ty, mod["main"].ret_ty)


def test_what_an_operator_reads_is_allocated_before_it():
    mod = relax_module([(2, 3)], lambda x: op.concat([x, constant((2, 0)), constant((2, 1))], axis=1))
    after = AllocateEmptyConstants()(mod)
    assert constants(after) == [(2, 1)]
    allocation = body_blocks(after["main"])[0].bindings[0].value
    assert allocation.op.name == "relax.builtin.alloc_tensor" and static_shape(allocation.ty) == (2, 0)


def test_other_constants_are_left_alone():
    mod = relax_module([(2,)], lambda x: op.add(x, relax.const(1.0, "float32")))
    assert AllocateEmptyConstants()(mod).same_as(mod)
