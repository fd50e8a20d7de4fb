"""Bounds by hand; that no plan beats them is tested for all policies in `test_search`."""

from dataclasses import replace

import pytest

from tvm_rammer.ir import Buffer, Footprint, Place, RGraph, RKernel, ROperator
from tvm_rammer.wavefront import CostModel, LowerBound, lower_bound, schedule, simulate
from tvm_rammer.wavefront.plan.select_veu import select_veus
from tvm_rammer.wavefront.predict.lower_bound_choice import CLOSE
from tvm_rammer.wavefront.predict.lower_bound_path import known_us

from ..graphs import DEVICE, DIAMOND, FREE, SYNC_COSTS, make_graph, make_kernels, plan


def bound(reads: dict[str, str], veus: int, cost: CostModel = FREE, **tilings: object) -> LowerBound:
    kernels = make_kernels(**{name: tilings.get(name, (1, 1.0)) for name in reads})  # type: ignore[arg-type]
    return lower_bound(make_graph(reads), kernels, DEVICE, veus=veus, cost=cost)


def test_a_chain_is_as_long_as_its_operators() -> None:
    found = bound({"a": "", "b": "a"}, 2, SYNC_COSTS, a=[(1, 5.0), (4, 2.0)], b=(1, 3.0))
    # 4 rTasks of 2 us: two on each vEU and a signal, or 4 alone. One of 5 us needs no signal.
    assert found.critical_path_us == 5 + 3
    assert found.launch_us == 10
    assert found.best_us == 18


def test_a_chain_of_operators_on_several_veus_pays_signals() -> None:
    assert bound({"a": "", "b": "a"}, 4, SYNC_COSTS, a=(4, 2.0), b=(4, 2.0)).critical_path_us == 3 + 2


def test_the_area_is_the_least_work() -> None:
    found = bound(dict.fromkeys("abcd", ""), 2, a=[(1, 4.0), (8, 1.0)], b=(2, 2.0), c=(1, 1.0), d=(1, 1.0))
    assert found.area_us == (4 + 4 + 1 + 1) / 2


def test_what_must_come_from_memory() -> None:
    graph, kernels = make_graph({"a": ""}), make_kernels(a=(1, 1.0))
    small = replace(DEVICE, cache_bytes=0, memory_gbps=1.0)
    # x of 256 bytes and a.out of 512, at 1000 bytes a microsecond.
    assert lower_bound(graph, kernels, small, veus=1).bandwidth_us == 0.768
    assert lower_bound(graph, kernels, replace(small, cache_bytes=700), veus=1).bandwidth_us == 0.068
    assert lower_bound(graph, kernels, DEVICE, veus=1).bandwidth_us == 0
    shared = CostModel(shared_gbps=0.1)
    assert lower_bound(graph, kernels, DEVICE, veus=1, cost=shared).bandwidth_us == 7.68


def test_rtasks_that_read_a_part_need_not_wait_for_the_whole() -> None:
    reads = {"a": "", "b": "a"}
    kernels = make_kernels(a=(4, 2.0), b=(4, 1.0))
    all_rtasks = lower_bound(make_graph(reads), kernels, DEVICE, veus=2, cost=FREE)
    assert all_rtasks.critical_path_us == 4 + 2

    def path_us(extent: int, veus: int) -> float:
        """If each rTask of b reads `extent` bytes of the 128 that one of a writes, and those that follow."""
        written, read = Footprint((4,), (0,), ((128,),), (128,)), Footprint((4,), (0,), ((128,),), (extent,))
        tiled = {name: [replace(k, footprints=(read, written)) for k in made] for name, made in kernels.items()}
        return lower_bound(make_graph(reads), tiled, DEVICE, veus=veus, cost=SYNC_COSTS).critical_path_us

    # On 2 vEUs: 2 + 2 us for all of b after the first of a, and 4 + 1 for the last of b after all of a.
    assert path_us(128, 2) == 5
    assert path_us(128, 4) == 3
    # Two of a in one lane need 4 us, in two lanes 2 and a signal. The last rTask needs no more than one.
    assert path_us(200, 4) == 2 + 1 + 1
    assert path_us(512, 4) == 2 + 1 + 1


def two_parts(c_rows: int, **times: float) -> tuple[RGraph, dict[str, list[RKernel]]]:
    """b reads e; a and b write half of eight rows each; c has an rTask for each of the first rows; d reads all of c.

    a and b call the same function.
    """
    buffers = [
        Buffer("x", (4, 64), "int8", "input"),
        Buffer("e.out", (4, 64), "int8", "intermediate"),
        Buffer("ab", (8, 64), "int8", "intermediate"),
        Buffer("a.out", (4, 64), "int8", "view", Place(2, 0)),
        Buffer("b.out", (4, 64), "int8", "view", Place(2, 256)),
        Buffer("c.out", (c_rows, 64), "int8", "intermediate"),
        Buffer("d.out", (1, 64), "int8", "output"),
    ]
    operators = [
        ROperator("e", "f_e", (0,), (1,)),
        ROperator("a", "f_half", (0,), (3,)),
        ROperator("b", "f_half", (1,), (4,)),
        ROperator("c", "f_c", (2,), (5,)),
        ROperator("d", "f_d", (5,), (6,)),
    ]
    row = Footprint((c_rows,), (0, 0), ((1,), (0,)), (1, 64))

    def whole(rows: int) -> Footprint:
        return Footprint((1,), (0, 0), ((0,), (0,)), (rows, 64))

    prints = {
        "f_e": (whole(4), whole(4)),
        "f_half": (whole(4), whole(4)),
        "f_c": (row, row),
        "f_d": (whole(c_rows), whole(1)),
    }
    kernels = {
        name: [RKernel(f"k_{name}", name, c_rows if name == "f_c" else 1, us, footprints=prints[name])]
        for name, us in times.items()
    }
    return RGraph("g", tuple(buffers), tuple(operators)), kernels


def test_an_rtask_need_not_wait_for_what_only_others_read() -> None:
    """Four rTasks of c read what a writes, four what b writes, which waits for e; d reads what all of them write."""
    graph, kernels = two_parts(8, f_e=9.0, f_half=1.0, f_c=3.0, f_d=2.0)
    found = lower_bound(graph, kernels, DEVICE, veus=2, cost=FREE)
    # Those of a keep one vEU busy while the other one runs e and b: c ends at 19, which 9 us and four of its rTasks
    # one after another would not allow. The path goes from e by way of c to d.
    assert found.critical_path_us == 9 + 1 + 3 + 2
    (program,) = schedule(graph, kernels, DEVICE, veus=2, cost=FREE)
    assert 19 + 2 == simulate(program, FREE).makespan_us >= found.best_us


def test_two_writers_of_different_parts_are_told_apart() -> None:
    """c reads what a writes, and nothing of what b does, although both call the same function."""
    graph, kernels = two_parts(4, f_e=9.0, f_half=1.0, f_c=3.0, f_d=2.0)
    found = lower_bound(graph, kernels, DEVICE, veus=6, cost=FREE)
    (program,) = schedule(graph, kernels, DEVICE, veus=6, cost=FREE)
    assert found.critical_path_us == simulate(program, FREE).makespan_us == 9 + 1


def test_each_operator_has_one_kernel() -> None:
    """A chain of two and an operator beside it: fast kernels do more work, efficient ones make a longer path."""
    either = [(1, 5.0), (2, 3.0)]
    found = bound({"a": "", "b": "a", "c": ""}, 2, a=either, b=either, c=(6, 1.0))
    assert (found.critical_path_us, found.area_us) == (6, 8)
    # With 0.8 fast kernels of two the path takes 10 - 1.6 us, and the work 8 + 0.4. No plan has 0.8 of them.
    assert 8.4 * CLOSE <= found.choice_us <= 8.4
    programs = plan({"a": "", "b": "a", "c": ""}, veus=2, policy="search", a=either, b=either, c=(6, 1.0))
    assert sum(program.makespan_us for program in programs) >= 8.5


def test_nothing_takes_no_time() -> None:
    found = bound({}, 2, SYNC_COSTS)
    assert found.best_us == found.gap(()) == 0


def test_a_plan_that_reaches_the_bound_has_no_gap() -> None:
    programs = plan(DIAMOND, veus=1, cost=SYNC_COSTS)
    assert bound(DIAMOND, 1, SYNC_COSTS).gap(programs) == 0


@pytest.mark.parametrize("gap_us", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("veus", [1, 2, 3, 7])
def test_when_one_veu_can_know_against_all_splits(gap_us: float, veus: int) -> None:
    for n in range(1, 30):
        splits = [max(own, gap_us + max(select_veus([0.0] * (veus - 1), 1.0, n - own)) if n > own else 0.0)
                  for own in range(n + 1) if veus > 1 or own == n]  # fmt: skip
        assert known_us(1.0, n, veus, gap_us) == pytest.approx(min(splits))
