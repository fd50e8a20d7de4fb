"""The cost of a row of the plan, read from SASS."""

import shutil

import pytest

from tests.persistent_codegen.cuda.programs import planned, tiny
from tvm_rammer.errors import ToolError
from tvm_rammer.nvcc import compile_cuda
from tvm_rammer.nvcc.rows import row_costs
from tvm_rammer.nvcc.sass import Instruction, Kernel, disassemble

BARRIER = Instruction("BAR", text="BAR.SYNC.DEFER_BLOCKING 0x0")


def branch(label, *, predicated=True):
    return Instruction("BRA", target=label, stall=5, text=f"BRA `({label})", predicated=predicated)


def looks(name):
    return Instruction(name, stall=2, writes=1, text=f"{name}.STRONG.GPU")


def code_of_a_row():
    """head: decode, look, sleep and look again; run of two functions; signal."""
    return [
        Instruction("IADD3", stall=10),
        branch("run"),  # nothing to wait for
        looks("LD"),
        Instruction("ISETP", stall=13, waits=1 << 1),
        branch("run"),
        Instruction("NANOSLEEP", stall=1),
        looks("LD"),
        branch("run"),
        BARRIER,
        branch("other"),
        Instruction("LDG", stall=1),
        branch("signal", predicated=False),
        Instruction("SHFL", stall=1, writes=0),
        Instruction("LDG", stall=1, waits=1),
        BARRIER,
        Instruction("MEMBAR", stall=6),
        Instruction("RED", stall=2),
        branch("head"),
    ]


LABELS = {"head": 0, "run": 8, "other": 12, "signal": 14}


def test_each_part_of_a_row_is_timed():
    costs = row_costs(Kernel(tuple(code_of_a_row()), LABELS))
    assert costs.row == 10 + 5
    assert costs.wait == 10 + 5 + 2 + 13 + 5  # but for the trip
    assert costs.loads == (5, 5 + 24)
    assert costs.signal == 6


@pytest.mark.parametrize("missing", ["MEMBAR", "NANOSLEEP", "LD"])
def test_other_kernels_are_refused(missing):
    code = [Instruction("NOP") if i.name == missing else i for i in code_of_a_row()]
    with pytest.raises(ToolError, match="persistent kernel"):
        row_costs(Kernel(tuple(code), LABELS))


@pytest.mark.skipif(
    shutil.which("nvcc") is None or shutil.which("nvdisasm") is None, reason="nvcc or nvdisasm is not on the PATH"
)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["tiny", "two_matmuls", "lstm_cell"])
def test_rows_stay_cheap(name, arch):
    (built,) = [tiny()] if name == "tiny" else planned(name, 3)
    (kernel,) = disassemble(compile_cuda(built.source, arch).cubin).values()
    costs = row_costs(kernel)
    assert costs.row <= 150 and costs.wait - costs.row <= 120 and costs.signal <= 150
    assert min(costs.loads) <= 150
