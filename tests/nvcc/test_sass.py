"""The loops in a kernel's SASS, and the model that issues them."""

import pytest

from tvm_rammer.errors import MissingToolError
from tvm_rammer.nvcc.sass import Instruction, Kernel, branches_between_loads, disassemble, parse, simulate

FFMA, BRA, BAR = Instruction("FFMA"), Instruction("BRA"), Instruction("BAR")

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


def test_loops_within_a_loop_run_as_often_as_one_says():
    labels = {"outer": 0, "inner": 1}
    code = (load(0), FFMA, Instruction("BRA", target="inner"), BAR, Instruction("BRA", target="outer"))
    kernel = Kernel(code, labels)
    assert kernel.main_loop() == (0, 4)
    assert [i.name for i in kernel.body((0, 4), 3)] == ["LDG", *(["FFMA", "BRA"] * 3), "BAR", "BRA"]


def test_branches_between_loads_are_counted_up_to_a_barrier():
    assert branches_between_loads([load(0), load(1), BRA]) == 0
    assert branches_between_loads([load(0), BRA, load(1), BRA, BRA, load(2), BAR, BRA, load(3)]) == 3


def test_each_scheduler_issues_one_multiplication_a_cycle():
    body = [FFMA] * 100
    assert simulate(body, 4).cycles == pytest.approx(100, abs=2)
    assert simulate(body, 8).cycles == pytest.approx(200, abs=4)


def test_integers_take_twice_as_long():
    assert simulate([Instruction("IADD3")] * 100, 4).cycles == pytest.approx(200, abs=4)


def test_a_use_waits_for_its_load_and_loads_side_by_side_wait_once():
    def use(board):
        return Instruction("FFMA", waits=1 << board)

    one_by_one = [x for board in range(4) for x in (load(board), use(board))]
    together = [*(load(board) for board in range(4)), *(use(board) for board in range(4))]
    slow, fast = simulate(one_by_one, 4, latency=280), simulate(together, 4, latency=280)
    assert slow.cycles > 4 * 280 and 280 < fast.cycles < 340
    assert fast.bytes_in_flight > 3 * slow.bytes_in_flight


def test_a_barrier_waits_for_all_warps():
    alone, together = simulate([load(0), Instruction("FFMA", waits=1)], 8), simulate([load(0), BAR], 8)
    assert together.cycles < alone.cycles
    assert simulate([FFMA, BAR], 8).cycles >= 20


def test_without_nvdisasm_an_error_says_where_it_comes_from(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingToolError, match="nvidia-cuda-nvdisasm"):
        disassemble(b"")
