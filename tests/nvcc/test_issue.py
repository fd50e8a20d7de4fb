"""The model that issues a kernel's code."""

import pytest

from tvm_rammer.nvcc.issue import simulate, simulate_once
from tvm_rammer.nvcc.sass import Instruction

FFMA, BAR = Instruction("FFMA", macs=1), Instruction("BAR")


def load(board, width=4):
    return Instruction("LDG", width, stall=1, writes=board)


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


def test_a_barrier_is_for_the_warps_of_one_block():
    apart, together = simulate([FFMA, BAR], 4, blocks=2), simulate([FFMA, BAR], 8)
    assert apart.cycles <= together.cycles


def test_a_single_run_waits_for_what_is_under_way():
    assert simulate_once([load(0)], 1, latency=280).cycles == pytest.approx(280, abs=8)
    assert simulate_once([load(0, 16), *[FFMA] * 280], 1, latency=280).bytes_in_flight == pytest.approx(512, rel=0.1)


def test_blocks_side_by_side_hide_each_others_latency():
    body = [load(0), Instruction("FFMA", waits=1)]
    alone = simulate_once(body, 4)
    assert simulate_once(body, 4, blocks=4).cycles < 1.3 * alone.cycles


def test_a_matrix_instruction_keeps_its_pipe_busy():
    tensor = Instruction("HMMA", macs=64)
    assert simulate([tensor] * 50, 4).cycles == pytest.approx(400, abs=4)
    assert simulate([tensor, *[FFMA] * 7] * 50, 4).cycles == pytest.approx(400, abs=8)
