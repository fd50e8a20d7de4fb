"""List scheduling by critical path."""

import sys

import pytest

from tvm_rammer.wavefront import CostModel
from tvm_rammer.wavefront.plan.builder import ProgramBuilder
from tvm_rammer.wavefront.policies.list_scheduling import append_cheapest, upward_ranks
from tvm_rammer.wavefront.problem import Problem, make_problem

from ..graphs import BRANCHES, FREE, SYNC_COSTS, make_graph, make_kernels, plan

list_module = sys.modules[upward_ranks.__module__]  # the package has its function under the same name


def problem_of(reads: dict[str, str], veus: int, cost: CostModel = FREE, **tilings: object) -> Problem:
    kernels = make_kernels(**{name: tilings.get(name, (1, 1.0)) for name in reads})  # type: ignore[arg-type]
    return make_problem(make_graph(reads), kernels, cost, veus, "auto")


def test_a_rank_is_the_longest_way_to_the_end_with_a_signal_each() -> None:
    problem = problem_of({"a": "", "b": "a", "c": "a", "d": "c"}, 2, SYNC_COSTS, a=(4, 1.0), b=(1, 9.0))
    assert upward_ranks(problem) == [2 + 1 + 9, 9, 1 + 1 + 1, 1]


def test_a_long_branch_goes_before_short_ones() -> None:
    # One vEU is taken by the chain of c from the start on; wave by wave it would have to wait for a and b.
    reads = {"a": "", "b": "", "c": "", "d": "c", "e": "d"}
    tilings = {"a": (1, 2.0), "b": (1, 2.0), "c": (1, 1.0), "d": (1, 2.0), "e": (1, 1.0)}
    (program,) = plan(reads, veus=2, policy="list", **tilings)
    assert program.makespan_us == 4


def test_an_operator_that_can_start_now_fills_a_gap() -> None:
    # b has the longer path, but a comes before it until 4; c has nothing to wait for.
    (program,) = plan({"a": "", "b": "a", "c": ""}, veus=1, policy="list", a=(1, 4.0), b=(1, 5.0), c=(1, 1.0))
    assert program.makespan_us == 10


def test_the_weight_of_work_decides_between_an_early_end_and_little_work() -> None:
    for weight, tiles, end_us in ((0.0, 4, 2.0), (4.0, 1, 3.0)):
        builder = ProgramBuilder(problem_of({"a": ""}, 4, a=[(4, 2.0), (1, 3.0)]))
        assert append_cheapest(0, builder, weight) == end_us
        assert builder.kernels[0].num_rtasks == tiles


def test_many_operators_take_efficient_kernels_and_a_lonely_one_a_fast_one() -> None:
    reads = dict.fromkeys("abcd", "") | {"e": "a b c d"}
    tilings = {name: [(4, 2.0), (1, 4.0)] for name in reads}
    (program,) = plan(reads, veus=4, policy="list", **tilings)
    assert [kernel.num_rtasks for kernel in program.kernels] == [1, 1, 1, 1, 4]
    assert program.makespan_us == 4 + 2


def test_global_sync_puts_a_barrier_only_where_someone_depends_on_what_came_since_the_last() -> None:
    (program,) = plan(BRANCHES, veus=3, cost=SYNC_COSTS, sync="global", policy="list")
    assert program.barriers == program.num_events == 4


@pytest.mark.parametrize("compared", [2, 4])
def test_a_large_graph_is_planned_as_is_best_for_its_first_operators(compared, monkeypatch) -> None:
    # The operators of the first wave have the longest paths. Two of them fit side by side with fast kernels, too.
    monkeypatch.setattr(list_module, "MOST_COMPARED", compared)
    reads = dict.fromkeys("abcd", "") | {"e": "a b c d", "f": "e"}
    tilings = {name: [(4, 2.0), (1, 4.0)] for name in reads}
    (program,) = plan(reads, veus=4, policy="list", **tilings)
    assert [operator.name for operator in program.graph.operators] == list(reads)
    assert [kernel.num_rtasks for kernel in program.kernels] == ([4] * 6 if compared == 2 else [1, 1, 1, 1, 4, 4])
