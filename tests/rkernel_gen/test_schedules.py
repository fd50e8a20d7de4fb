"""Schedules of one function start from a shared one, and none changes another."""

import tvm_ffi
from tvm.relax import op

from tests.functions import fused
from tvm_rammer.rkernel_gen.analysis.blocks import blocks_of, new_schedule
from tvm_rammer.rkernel_gen.cpu.generic.read import inlined_schedule


def test_steps_of_a_schedule_are_in_no_other_one():
    func = fused([(6, 40)], op.nn.softmax)
    for start in (new_schedule, inlined_schedule):
        changed, other = start(func), start(func)
        before = other.mod["main"]
        block = blocks_of(changed)[-1]
        changed.parallel(changed.split(changed.get_loops(block)[0], [2, None])[0])
        assert not tvm_ffi.structural_equal(changed.mod["main"], before)
        assert tvm_ffi.structural_equal(other.mod["main"], before)
        assert tvm_ffi.structural_equal(start(func).mod["main"], before)
        assert "parallel" in str(changed.trace)
        assert "parallel" not in str(other.trace)
