"""Weights that are read again, from caches or not."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tvm_rammer.device import PRESETS, host_cpu
from tvm_rammer.ir import Buffer, RGraph, RKernel, ROperator, RProgram, Run
from tvm_rammer.wavefront import CostModel, simulate
from tvm_rammer.wavefront.predict.reuse import Caches, refill_us

from ..graphs import FREE, random_plans

CACHES = Caches(unit_bytes=1000, shared_bytes=4000, unit_gbps=1.0, shared_gbps=0.5, memory_gbps=0.1)
"""1000 bytes take 1 us from the own cache, 2 us from the shared one, 10 us from memory."""


def steps(*weights: int, sizes: tuple[int, ...], rtask_us: float = 0.0, tiles: int = 1) -> RProgram:
    """One operator after another on `tiles` vEUs; `weights` says which constant each reads, `sizes` their bytes."""
    constants = [Buffer(f"w{n}", (size,), "int8", "constant") for n, size in enumerate(sizes)]
    values = [Buffer(f"x{n}", (0,), "int8", "input" if n == 0 else "output") for n in range(len(weights) + 1)]
    first = len(sizes)
    operators = [ROperator(f"o{n}", "f", (first + n, w), (first + n + 1,)) for n, w in enumerate(weights)]
    graph = RGraph("g", (*constants, *values), tuple(operators))
    kernel = RKernel("k", "f", tiles, rtask_us)
    lanes = tuple(tuple(Run(o, v, 1) for o in range(len(weights))) for v in range(tiles))
    return RProgram("p", graph, (kernel,) * len(weights), lanes, 0, {}, 0)


def refill(program: RProgram, caches: Caches = CACHES) -> list[float]:
    """Of all runs, operator after operator."""
    order = [(v, n) for n in range(len(program.lanes[0])) for v, lane in enumerate(program.lanes) if lane]
    found = refill_us(program, caches, order)
    return [found[run] for run in order]


def test_what_fits_a_units_cache_hits() -> None:
    assert refill(steps(0, 0, 1, sizes=(300, 300))) == [0.0] * 3


def test_what_others_have_evicted_comes_from_the_shared_cache() -> None:
    assert refill(steps(0, 1, 2, 0, 1, 2, sizes=(700, 700, 700))) == pytest.approx([0.7] * 6)


def test_what_no_cache_holds_comes_from_memory() -> None:
    assert refill(steps(*range(10), sizes=(700,) * 10)) == pytest.approx([0.7 * 9] * 10)


def test_what_is_too_large_for_a_cache_takes_no_longer_than_alone() -> None:
    assert refill(steps(0, 1, sizes=(7000, 7000))) == [0.0] * 2
    assert refill(steps(0, 1, sizes=(1200, 1200))) == [0.0] * 2


def test_between_the_two_half_hits() -> None:
    # 1200 bytes in turn: more than three quarters of 1000, and less than one and a half.
    assert refill(steps(0, 1, sizes=(600, 600))) == pytest.approx([0.3] * 2)


def test_each_lane_has_a_cache_of_its_own() -> None:
    assert refill(steps(0, 1, sizes=(700, 700), tiles=2)) == [0.0] * 4
    program = steps(0, 0, sizes=(900,), tiles=2)
    crossed = replace(program, lanes=((Run(0, 0, 1), Run(1, 1, 1)), (Run(0, 1, 1), Run(1, 0, 1))))
    # Both halves together are too much to be sure of, and the other lane's half is no help but for the shared cache.
    assert refill(program) == [0.0] * 4
    assert refill(crossed) == pytest.approx([0.225] * 4)


def on_one_lane(program: RProgram) -> RProgram:
    """The same rTasks, all on the first vEU."""
    runs = (Run(o, 0, kernel.num_rtasks) for o, kernel in enumerate(program.kernels))
    return replace(program, lanes=(tuple(runs), *((),) * (len(program.lanes) - 1)))


def test_weights_that_two_caches_hold_leave_one() -> None:
    halves, two = steps(0, sizes=(1600,), tiles=2), replace(CACHES, units=2)
    assert refill(halves, two) == pytest.approx([0.4] * 2)  # 800 bytes of 1000: half hits
    assert refill(on_one_lane(halves), two)[0] == pytest.approx(1.6)


def elementwise(*sizes: int, rtask_us: float = 0.0, tiles: int = 1) -> RProgram:
    """A chain of operators; `sizes` are the bytes of its input and of each result."""
    kinds = ("input", *["workspace"] * (len(sizes) - 2), "output")
    buffers = tuple(
        Buffer(f"x{n}", (size,), "int8", kind) for n, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
    )
    operators = tuple(ROperator(f"o{n}", "f", (n,), (n + 1,)) for n in range(len(sizes) - 1))
    lanes = tuple(tuple(Run(o, v, 1) for o in range(len(operators))) for v in range(tiles))
    kernel = RKernel("k", "f", tiles, rtask_us)
    return RProgram("p", RGraph("g", buffers, operators), (kernel,) * len(operators), lanes, 0, {}, 0)


def test_data_that_fit_a_units_cache_take_no_longer() -> None:
    assert refill(elementwise(200, 200, 200, rtask_us=0.4)) == [0.0] * 2


def test_data_come_beside_the_arithmetic() -> None:
    # 2000 bytes from the shared cache: 4 us.
    assert refill(elementwise(1000, 1000, rtask_us=1.0)) == pytest.approx([3.0])
    assert refill(elementwise(1000, 1000, rtask_us=5.0)) == [0.0]


def test_data_that_one_unit_cannot_hold_two_can() -> None:
    halves = elementwise(700, 700, rtask_us=0.7, tiles=2)
    assert refill(halves) == [0.0] * 2
    assert refill(on_one_lane(halves))[0] == pytest.approx((1400 * (0.5 + 0.5 * 2)) / 1000 - 1.4)


def test_data_that_one_operator_leaves_to_the_next_are_found() -> None:
    # 1200 bytes in turn, but each operator has 600: workspaces lie where others were.
    assert refill(elementwise(300, 300, 300, 300, 300, rtask_us=0.6)) == pytest.approx([0.0] * 4)


def test_reading_from_a_slower_level_takes_longer() -> None:
    cost = replace(FREE, caches=CACHES)
    assert simulate(steps(0, 1, 2, sizes=(700,) * 3, rtask_us=1.0), cost).makespan_us == pytest.approx(3 * (1.0 + 0.7))


def test_a_factor_is_for_reading_too() -> None:
    cost = replace(FREE, caches=CACHES, factors={"k": 2.0})
    assert simulate(steps(0, 1, 2, sizes=(700,) * 3, rtask_us=1.0), cost).makespan_us == pytest.approx(6 * (1.0 + 0.7))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(random_plans())
def test_caches_never_shorten_a_plan(programs: tuple[RProgram, ...]) -> None:
    for program in programs:
        assert simulate(program, replace(FREE, caches=CACHES)).makespan_us >= simulate(program, FREE).makespan_us


def test_only_a_cpu_keeps_what_an_rtask_has_read() -> None:
    assert CostModel.of(PRESETS["cuda:h200"]).caches is None
    caches = CostModel.of(replace(host_cpu(), units=2, cache_gbps=200.0)).caches
    assert caches is not None and caches.shared_gbps == 100.0
