"""The cost of a row of the plan, read from SASS."""

import shutil

import pytest

from tests.persistent_codegen.cuda.programs import planned, tiny
from tvm_rammer.errors import ToolError
from tvm_rammer.nvcc import compile_cuda
from tvm_rammer.nvcc.rows import row_costs, rtask_costs
from tvm_rammer.nvcc.sass import Instruction, Kernel, disassemble

BARRIER = Instruction("BAR", text="BAR.SYNC.DEFER_BLOCKING 0x0")


def branch(label, *, predicated=True):
    return Instruction("BRA", target=label, stall=5, text=f"BRA `({label})", predicated=predicated)


def looks(name):
    return Instruction(name, stall=2, writes=1, text=f"{name}.STRONG.GPU")


def code_of_a_row(other=()):
    """head: decode, choose; each of two functions looks, sleeps and looks again, and runs; signal."""
    one = [
        branch("run"),  # nothing to wait for
        looks("LD"),
        Instruction("ISETP", stall=13, waits=1 << 1),
        branch("run"),
        Instruction("NANOSLEEP", stall=1),
        looks("LD"),
        BARRIER,
        Instruction("LDG", stall=1),
        branch("signal", predicated=False),
    ]
    two = [
        branch("run2"),
        looks("LD"),
        Instruction("ISETP", stall=10, waits=1 << 1),
        BARRIER,
        *(other or [Instruction("SHFL", stall=1, writes=0), Instruction("LDG", stall=1, waits=1)]),
    ]
    begin = [Instruction("IADD3", stall=10), branch("other")]
    end = [BARRIER, Instruction("MEMBAR", stall=6), Instruction("RED", stall=2), branch("head")]
    labels = {"head": 0, "run": 8, "other": 11, "run2": 14, "signal": 11 + len(two)}
    return Kernel((*begin, *one, *two, *end), labels)


def test_each_part_of_a_row_is_timed():
    costs = row_costs(code_of_a_row())
    assert costs.rows == (10 + 5 + 5, 10 + 5 + 5)
    assert costs.wait == 2 + 13 + 5  # but for the trip
    assert costs.loads == (0, 24)
    assert costs.signal == 6


def code_of_a_product(rtasks):
    """What a thread does between the barriers of a row: load, multiply, add up, store; so many rTasks."""
    once = [
        Instruction("LDG", stall=1, writes=0, width=1),
        Instruction("FFMA", stall=100, waits=1),
        Instruction("FFMA", stall=10),
        Instruction("SHFL", stall=1, writes=1, text="SHFL.BFLY PT, R1"),
        Instruction("FADD", stall=30, waits=1 << 1),
        Instruction("STG", stall=1, width=1),
    ]
    return rtasks * once


def test_the_parts_of_an_rtask_are_timed():
    (costs,) = rtask_costs(code_of_a_row(code_of_a_product(1)), warps=4)
    assert 270 <= costs.loads <= 280 and 100 <= costs.products <= 130 and 50 <= costs.rest <= 180
    (longer,) = rtask_costs(code_of_a_row(code_of_a_product(2)), warps=4)
    assert longer.loads > 1.9 * costs.loads and longer.rest > costs.rest + 150


@pytest.mark.parametrize("missing", ["MEMBAR", "NANOSLEEP", "LD"])
def test_other_kernels_are_refused(missing):
    kernel = code_of_a_row()
    code = [Instruction("NOP") if i.name == missing else i for i in kernel.code]
    with pytest.raises(ToolError, match="persistent kernel"):
        row_costs(Kernel(tuple(code), kernel.labels))


@pytest.mark.skipif(
    shutil.which("nvcc") is None or shutil.which("nvdisasm") is None, reason="nvcc or nvdisasm is not on the PATH"
)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["tiny", "two_matmuls", "lstm_cell"])
def test_rows_stay_cheap(name, arch):
    (built,) = [tiny()] if name == "tiny" else planned(name, 3)
    (kernel,) = disassemble(compile_cuda(built.source, arch).cubin).values()
    costs = row_costs(kernel)
    assert costs.wait <= 120 and costs.signal <= 150 and max(costs.loads) <= 150
    assert max(costs.rows) <= 280
