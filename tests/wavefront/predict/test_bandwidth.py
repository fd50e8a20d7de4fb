"""Running rTasks that share bandwidth."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_rammer.ir import Footprint, RKernel, RProgram, Run
from tvm_rammer.wavefront import CostModel, simulate
from tvm_rammer.wavefront.predict.bandwidth import SharedRuns, rtask_bytes

from ..graphs import FREE, make_graph, make_kernels, plan, random_plans


def heavy(program: RProgram, *nbytes: float) -> RProgram:
    kernels = tuple(replace(k, bytes_per_rtask=n) for k, n in zip(program.kernels, nbytes, strict=True))
    return replace(program, kernels=kernels)


def ends(program: RProgram, gbps: float) -> list[float]:
    return [lane[-1].end_us for lane in simulate(program, CostModel(shared_gbps=gbps)).by_lane()]


TWO = plan({"a": "", "b": ""}, veus=2, a=(1, 2.0), b=(1, 4.0))[0]


def test_below_the_bandwidth_nobody_is_disturbed() -> None:
    # 1000 bytes in 2 us and 2000 in 4 us: each asks for 0.5 GB/s.
    assert ends(heavy(TWO, 1000, 2000), 1.0) == [2, 4]


def test_above_it_all_are_stretched_until_one_has_ended() -> None:
    # Together 1 GB/s of 0.5: at half speed a ends at 4; b then has 2 us left, alone and undisturbed.
    assert ends(heavy(TWO, 1000, 2000), 0.5) == [4, 6]


def test_who_moves_nothing_is_not_stretched() -> None:
    assert ends(heavy(replace(TWO, kernels=TWO.kernels), 2000, 1e-9), 0.5)[0] == pytest.approx(4)
    kernels = (replace(TWO.kernels[0], bytes_per_rtask=2000), TWO.kernels[1])
    empty = tuple(replace(buffer, shape=(0,)) for buffer in TWO.graph.buffers)
    program = replace(TWO, kernels=kernels, graph=replace(TWO.graph, buffers=empty))
    assert ends(program, 0.5) == [4, 4]


def test_one_that_asks_for_more_than_there_is_takes_longer_alone() -> None:
    (program,) = plan({"a": ""}, veus=1, a=(1, 2.0))
    assert ends(heavy(program, 4000), 1.0) == [4]


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(random_plans())
def test_sharing_never_shortens_a_plan_and_enough_bandwidth_changes_nothing(programs: tuple[RProgram, ...]) -> None:
    for program in programs:
        alone = simulate(program, FREE)
        assert simulate(program, CostModel(shared_gbps=1e9)).spans == alone.spans
        tight = simulate(program, CostModel(shared_gbps=1e-2))
        moved = sum(rtask_bytes(program.graph, o, k) * k.num_rtasks for o, k in enumerate(program.kernels))
        assert tight.makespan_us >= moved / 10 * (1 - 1e-9)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(1, 8)), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
def test_ends_agree_with_small_steps(runs: list[tuple[int, int, int]]) -> None:
    """Against integration of the same rule in steps of 1/64 us."""
    runs = sorted(runs)
    shared, expected = SharedRuns(), {}
    done: dict[int, float] = {}
    for lane, (start, alone, demand) in enumerate(runs):
        while shared.next_end_us() <= start:
            end, ended = shared.end()
            done[ended] = end
        shared.begin(start, lane, alone, demand / 4)
    while shared.next_end_us() < float("inf"):
        end, ended = shared.end()
        done[ended] = end
    left = {lane: float(alone) for lane, (_, alone, _) in enumerate(runs)}
    step, now = 1 / 64, 0.0
    while left:
        active = [lane for lane in left if runs[lane][0] <= now]
        slow = max(1.0, sum(runs[lane][2] / 4 for lane in active))
        now += step
        for lane in active:
            left[lane] -= step / slow
            if left[lane] <= 1e-9:
                expected[lane] = now
                del left[lane]
    # Each end may come a step late, and with it the relief of the others.
    assert done == pytest.approx(expected, abs=step * (len(runs) + 1))


def test_bytes_of_an_rtask() -> None:
    graph, kernel = make_graph({"a": ""}), make_kernels(a=(4, 1.0))["f_a"][0]
    # x has 256 bytes, a.out 512.
    assert rtask_bytes(graph, 0, kernel) == (256 + 512) / 4
    assert rtask_bytes(graph, 0, replace(kernel, bytes_per_rtask=7.0)) == 7
    row = Footprint((4,), (0,), ((16,),), (20,))
    assert rtask_bytes(graph, 0, replace(kernel, footprints=(row, None))) == 20 * 4 + 512 / 4


def test_a_run_is_stretched_as_a_whole() -> None:
    kernel = RKernel("k", "f_a", 6, 1.0, bytes_per_rtask=1000.0)
    (program,) = plan({"a": ""}, veus=2, a=(6, 1.0))
    program = replace(program, kernels=(kernel,), lanes=((Run(0, 0, 3),), (Run(0, 3, 3),)))
    assert ends(program, 1.0) == [6, 6]
