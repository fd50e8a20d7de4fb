"""The code and the loops of a kernel, read from its SASS."""

import pytest

from tvm_rammer.errors import MissingToolError
from tvm_rammer.nvcc.sass import (
    Instruction,
    Kernel,
    branches_between_loads,
    disassemble,
    inner_passes,
    parse,
    step_macs,
)

FFMA, BRA, BAR = Instruction("FFMA", macs=1), Instruction("BRA"), Instruction("BAR")

TEXT = """
	.section	.text.k0_kernel,"ax",@progbits
k0_kernel:
.text.k0_kernel:
        /*0000*/                   MOV R1, c[0x0][0x28] ;                        /* 0x00000a00ff017b82 */
                                                                                 /* 0x000fe20000000800 */
.L_x_1:
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;     /* 0x0000000406027981 */
                                                                                 /* 0x000ea2000c1e9d00 */
        /*0020*/                   FFMA R5, R4, R4, R5 ;                         /* 0x0000000404057223 */
                                                                                 /* 0x004fe40000000005 */
        /*0030*/               @P1 BRA `(.L_x_1) ;                               /* 0xfffffffc00fc1947 */
                                                                                 /* 0x000fea000383ffff */
        /*0040*/                   EXIT ;                                        /* 0x000000000000794d */
                                                                                 /* 0x000fea0003800000 */
"""


def load(board, width=4):
    return Instruction("LDG", width, stall=1, writes=board)


def test_a_kernel_is_read_with_its_loops_and_scoreboards():
    kernel = parse(TEXT)["k0_kernel"]
    assert [i.name for i in kernel.code] == ["MOV", "LDG", "FFMA", "BRA", "EXIT"] and kernel.code_bytes == 80
    assert kernel.main_loop() == (1, 3) and kernel.code[1].width == 16
    assert kernel.code[1].writes == 2 and kernel.code[2].waits == 1 << 2
    assert [i.predicated for i in kernel.code] == [False, True, False, True, False]


def test_loops_within_a_loop_run_as_often_as_one_says():
    labels = {"outer": 0, "inner": 1}
    code = (load(0), FFMA, Instruction("BRA", target="inner"), BAR, Instruction("BRA", target="outer"))
    kernel = Kernel(code, labels)
    assert kernel.main_loop() == (0, 4)
    assert [i.name for i in kernel.body((0, 4), 3)] == ["LDG", *(["FFMA", "BRA"] * 3), "BAR", "BRA"]


def test_a_loop_over_k_runs_as_often_as_the_multiply_adds_of_a_step_say():
    code = (load(0), FFMA, Instruction("BRA", target="inner"), BAR, Instruction("BRA", target="outer"))
    kernel = Kernel(code, {"outer": 0, "inner": 1})
    assert step_macs("conv8_add2_gemm_i8_j8_k256_mi4_mj4_slices32") == 128
    assert step_macs("conv8_tf32_i32_j64_k32_mi16_mj32_slices1") == 512  # a lane's share of a warp's tile
    assert step_macs("conv8_mma_i16_j16_k256_mi16_mj16_slices8") == 256  # and its team's part of the step
    assert step_macs("exp_elementwise_vectors_per_thread2_threads64_vector_width4") == 0
    assert inner_passes(kernel, (0, 4), 128) == 128
    assert inner_passes(kernel, (0, 4), 0) == 1


def test_branches_between_loads_are_counted_up_to_a_barrier():
    assert branches_between_loads([load(0), load(1), BRA]) == 0
    assert branches_between_loads([load(0), BRA, load(1), BRA, BRA, load(2), BAR, BRA, load(3)]) == 3


def test_a_kernel_ends_with_its_first_exit_that_is_not_conditional():
    code = (Instruction("EXIT", predicated=True), load(0), Instruction("EXIT"), Instruction("BRA"))
    assert [i.name for i in Kernel(code, {}).whole()] == ["EXIT", "LDG", "EXIT"]


def test_all_code_runs_once_but_loops_within_the_main_loop():
    labels = {"outer": 1, "inner": 2}
    code = (FFMA, load(0), FFMA, Instruction("BRA", target="inner"), BAR, Instruction("BRA", target="outer"))
    kernel = Kernel((*code, Instruction("EXIT")), labels)
    names = [i.name for i in kernel.whole(kernel.main_loop(), 2)]
    assert names == ["FFMA", "LDG", "FFMA", "BRA", "FFMA", "BRA", "BAR", "BRA", "EXIT"]


def test_a_loop_that_only_loads_is_the_main_loop_where_none_multiplies():
    kernel = Kernel((load(0), Instruction("FADD"), Instruction("BRA", target="loop")), {"loop": 0})
    assert kernel.main_loop() == (0, 2)


@pytest.mark.parametrize(
    ("opcode", "width"), [("LDG.E.64", 8), ("LDG.E.U16", 2), ("LDSM.16.M88.4", 16), ("LDSM.16.MT88.2", 8), ("LDS", 4)]
)
def test_bytes_of_a_load_are_read_from_its_name(opcode, width):
    assert parse(TEXT.replace("LDG.E.128.CONSTANT", opcode))["k0_kernel"].code[1].width == width


@pytest.mark.parametrize(
    ("row", "macs"),
    [
        ("FFMA R5, R4, R4, R5", 1),
        ("HMMA.16816.F32 R4, R8, R12, R4", 64),
        ("HFMA2.MMA R5, R4, R4, R5", 2),
        ("HFMA2.MMA R5, -RZ, RZ, 0, 0", 0),
        ("IMAD R5, R4, R4, R5", 0),
    ],
)
def test_multiply_adds_of_a_thread_are_counted(row, macs):
    assert parse(TEXT.replace("FFMA R5, R4, R4, R5", row))["k0_kernel"].code[2].macs == macs


def test_without_nvdisasm_an_error_says_where_it_comes_from(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingToolError, match="nvidia-cuda-nvdisasm"):
        disassemble(b"")
