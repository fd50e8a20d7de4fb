"""Several vEUs on each unit of a GPU."""

from dataclasses import replace

import pytest

from tvm_rammer.ir import RKernel, RProgram
from tvm_rammer.wavefront import CostModel, schedule, schedule_sharing, simulate

from ..graphs import DEVICE, make_graph, make_kernels

SMALL = replace(DEVICE, units=2, launch_us=0.0)
GRAPH = make_graph(dict.fromkeys("abcd", ""))
TILINGS = dict.fromkeys("abcd", (4, 1.0))


def kernels(**changes: object) -> dict[str, list[RKernel]]:
    needs = {"threads": 256, "registers": 64, "busy_us": 0.25} | changes
    return {name: [replace(k, **needs) for k in made] for name, made in make_kernels(**TILINGS).items()}


def shared(made: dict[str, list[RKernel]], blocks: int = 2) -> tuple[RProgram, ...] | None:
    return schedule_sharing(GRAPH, made, SMALL, schedule(GRAPH, made, SMALL, veus=2), blocks=blocks)


def test_an_rtask_takes_longer_by_what_keeps_its_unit_busy_for_others() -> None:
    (kernel,) = kernels()["f_a"]
    assert CostModel.of(SMALL, 2).rtask_us(kernel) == 1.0
    assert CostModel.of(SMALL, 3).rtask_us(kernel) == 1.25
    assert CostModel.of(SMALL, 6).rtask_us(kernel) == 1.5
    assert CostModel.of(SMALL, 4).rtask_us(replace(kernel, busy_us=None)) == 2.0
    assert CostModel.of(SMALL, 4).rtask_us(replace(kernel, busy_us=9.0)) == 2.0


def test_two_veus_share_a_unit_where_that_saves_time() -> None:
    planned = shared(kernels())
    assert planned is not None
    (program,) = planned
    assert len(program.lanes) == 4
    # Each vEU has 4 of 16 rTasks. Alone on their units, two vEUs would have 8 each, of 1 us.
    assert program.makespan_us == simulate(program, CostModel.of(SMALL, 4)).makespan_us == 4 * 1.25


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"busy_us": None}, id="units that are busy all the time"),
        pytest.param({"busy_us": 0.95}, id="too little saved"),
        pytest.param({"registers": None}, id="unknown registers"),
        pytest.param({"registers": 112}, id="registers that leave none for the rows"),
        pytest.param({"shared_bytes": 120 << 10}, id="shared memory"),
    ],
)
def test_each_unit_keeps_one_veu_where_two_save_too_little_or_do_not_fit(changes: dict[str, object]) -> None:
    assert shared(kernels(**changes)) is None


def test_kernels_without_room_are_left_out() -> None:
    made = kernels()
    made["f_a"].append(replace(made["f_a"][0], name="fat", rtask_us=0.1, busy_us=0.1, registers=200))
    planned = shared(made)
    assert planned is not None
    assert {kernel.name for kernel in planned[0].kernels} == {"k_a_0", "k_b_0", "k_c_0", "k_d_0"}
