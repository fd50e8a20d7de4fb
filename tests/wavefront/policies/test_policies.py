"""The choices of Algorithm 1, each made both ways."""

from dataclasses import replace

import pytest

from tvm_rammer.ir import Buffer, RProgram, Signal, Wait
from tvm_rammer.wavefront import POLICIES, CostModel, schedule
from tvm_rammer.wavefront.plan import select_rkernels
from tvm_rammer.wavefront.predict.reuse import Caches
from tvm_rammer.wavefront.problem import make_problem

from ..graphs import BRANCHES, DEVICE, DIAMOND, FREE, SYNC_COSTS, make_graph, make_kernels, plan


def _tilings(programs: tuple[RProgram, ...]) -> list[int]:
    return [kernel.num_rtasks for program in programs for kernel in program.kernels]


def test_a_wave_goes_on_in_the_program_where_a_launch_costs_more_than_a_signal() -> None:
    chain = {"a": "", "b": "a"}
    assert len(plan(chain, veus=2, cost=CostModel(launch_us=5, signal_us=2), a=(2, 1.0), b=(2, 1.0))) == 1


def test_a_wave_starts_a_program_where_a_signal_costs_more_than_a_launch() -> None:
    chain = {"a": "", "b": "a"}
    first, second = plan(chain, veus=2, cost=CostModel(launch_us=2, signal_us=5), a=(2, 1.0), b=(2, 1.0))
    assert [op.name for op in first.graph.operators] == ["a"]
    assert [op.name for op in second.graph.operators] == ["b"]
    assert first.waits() == second.waits() == 0
    assert first.makespan_us == second.makespan_us == 2 + 1


def test_equal_times_go_on_in_the_program() -> None:
    assert len(plan({"a": "", "b": "a"}, veus=2, cost=CostModel(launch_us=5, signal_us=5), a=(2, 1.0), b=(2, 1.0))) == 1


def test_a_rejected_wave_leaves_no_trace() -> None:
    cost = CostModel(launch_us=2, signal_us=5)
    reads = {"a": "", "b": "a", "c": "b"}
    programs = plan(reads, veus=2, cost=cost, a=(2, 1.0), b=(2, 1.0), c=(2, 1.0))
    assert [program.lanes for program in programs] == [programs[0].lanes] * 3


def test_a_wave_begins_with_a_barrier_where_many_counters_cost_more() -> None:
    # z reads ten operators on as many lanes: a signal and nine passed waits, or one barrier of 3 us.
    reads = dict.fromkeys("abcdefghij", "") | {"z": "a b c d e f g h i j"}
    dear = CostModel(launch_us=9, signal_us=1, wait_us=0.5, barrier_us=3)
    (program,) = plan(reads, veus=10, cost=dear, z=(10, 1.0))
    assert (program.barriers, program.makespan_us) == (1, 9 + 1 + 3 + 1)
    (program,) = plan(reads, veus=10, cost=replace(dear, barrier_us=9), z=(10, 1.0))
    assert program.barriers == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_barriers_are_the_last_events_and_each_lane_takes_part_in_them(policy: str) -> None:
    (program,) = plan(BRANCHES, veus=3, cost=SYNC_COSTS, sync="global", policy=policy)
    for event in range(program.num_events - program.barriers, program.num_events):
        for lane in program.lanes:
            at = lane.index(Signal(event))
            assert lane[at + 1] == Wait(event, 3)


def test_the_work_of_algorithm_1_grows_with_the_graph_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    appended: list[int] = []
    append_operator = select_rkernels.append_operator
    monkeypatch.setattr(
        select_rkernels, "append_operator", lambda o, *others: (appended.append(o), append_operator(o, *others))
    )
    counts = []
    for depth in (5, 20, 80):
        # Each layer of eight reads all of the layer before.
        layers = [[f"l{d}o{n}" for n in range(8)] for d in range(depth)]
        reads = {name: " ".join(layers[d - 1]) if d else "" for d, layer in enumerate(layers) for name in layer}
        tilings = {name: [(8, 2.0), (1, 5.0)] for name in reads}
        appended.clear()
        plan(reads, veus=8, cost=CostModel(9, 1, 0.5, 2), **tilings)
        counts.append(len(appended) / len(reads))
    assert max(counts) <= 6
    assert counts[2] <= counts[1] * 1.1


def test_a_wave_that_leaves_veus_free_keeps_the_fastest_kernels() -> None:
    # 3 rTasks on 4 vEUs: the efficient kernel would only be slower.
    assert _tilings(plan({"a": ""}, veus=4, a=[(3, 2.0), (1, 3.0)])) == [3]


def test_whether_a_wave_is_full_is_counted_in_rtasks_of_the_fastest_kernels() -> None:
    # a keeps vEUs 0 to 2 busy until 10, so b with one rTask would end at 6 and with three at 13. But its wave, of
    # b alone, has 3 rTasks for 4 vEUs: the paper keeps the fastest kernel without a look at what is running.
    programs = plan({"a": "", "c": "", "b": "c"}, veus=4, a=(3, 10.0), c=(1, 1.0), b=[(3, 4.0), (1, 5.0)])
    assert _tilings(programs) == [3, 1, 3]
    assert programs[0].makespan_us == 13


def test_a_full_wave_takes_efficient_kernels_that_end_it_earlier() -> None:
    # Alone, 4 rTasks of 2 us beat 1 of 5 us. Four such operators at once: 8 us against 5.
    four = dict.fromkeys("abcd", "")
    tilings = {name: [(4, 2.0), (1, 5.0)] for name in four}
    programs = plan(four, veus=4, **tilings)
    assert _tilings(programs) == [1, 1, 1, 1]
    assert programs[0].makespan_us == 5


def test_a_full_wave_keeps_fastest_kernels_where_efficient_ones_end_it_later() -> None:
    # Two operators: 4 us with the fastest, 5 with the efficient.
    two = {"a": "", "b": ""}
    programs = plan(two, veus=4, a=[(4, 2.0), (1, 5.0)], b=[(4, 2.0), (1, 5.0)])
    assert _tilings(programs) == [4, 4]
    assert programs[0].makespan_us == 4


def test_the_sequential_policy_takes_the_fastest_kernels() -> None:
    four = dict.fromkeys("abcd", "")
    programs = plan(four, veus=4, policy="sequential", **{name: [(4, 2.0), (1, 5.0)] for name in four})
    assert _tilings(programs) == [4, 4, 4, 4]
    assert programs[0].makespan_us == 8


def test_auto_takes_the_graphs_order_where_it_finds_weights_in_the_cache() -> None:
    # Two layers of three steps, layer after layer in the graph; a wave holds a step of each, with the weights of both.
    reads = {"a0": "", "a1": "a0", "a2": "a1", "b0": "a0", "b1": "b0 a1", "b2": "b1 a2"}
    layers = Caches(unit_bytes=1000, shared_bytes=0, unit_gbps=1.0, shared_gbps=1.0, memory_gbps=0.1)
    graph = make_graph(reads)
    weights = [Buffer(f"w_{layer}", (900,), "int8", "constant") for layer in "ab"]
    first = len(graph.buffers)
    operators = tuple(
        replace(op, inputs=(*op.inputs, first + "ab".index(op.name[0])), function=f"f_{op.name[0]}0")
        for op in graph.operators
    )
    net = replace(graph, buffers=(*graph.buffers, *weights), operators=operators)
    kernels = make_kernels(a0=(1, 1.0), b0=(1, 1.0))

    def makespan(policy: str, cost: CostModel) -> float:
        return sum(p.makespan_us for p in schedule(net, kernels, DEVICE, veus=1, policy=policy, cost=cost))

    assert makespan("auto", FREE) == makespan("wavefront", FREE) == makespan("sequential", FREE) == 6
    cached = replace(FREE, caches=layers)
    assert makespan("auto", cached) == makespan("sequential", cached) < makespan("wavefront", cached)


def test_auto_does_not_wait_for_waves_where_there_are_many_veus() -> None:
    # Half of the vEUs are taken by the chain of c from the start on; wave by wave it would wait for a and b.
    reads = {"a": "", "b": "", "c": "", "d": "c", "e": "d"}
    tilings = {"a": (16, 2.0), "b": (16, 2.0), "c": (16, 1.0), "d": (16, 2.0), "e": (16, 1.0)}
    for policy, us in (("wavefront", 6), ("list", 4), ("auto", 4)):
        (program,) = plan(reads, veus=32, policy=policy, **tilings)
        assert program.makespan_us == us


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("sync", ["auto", "global"])
@pytest.mark.parametrize("cost", [FREE, SYNC_COSTS, CostModel(1, 3, 0.5)])
@pytest.mark.parametrize("reads", [DIAMOND, BRANCHES])
def test_a_builder_predicts_what_the_simulator_finds(
    policy: str, sync: str, cost: CostModel, reads: dict[str, str]
) -> None:
    tilings = {name: (1 + n % 4, 1.5 + n) for n, name in enumerate(reads)}
    problem = make_problem(make_graph(reads), make_kernels(**tilings), cost, 3, sync)
    expected = [builder.time_us for builder in POLICIES[policy](problem)]
    programs = plan(reads, veus=3, cost=cost, policy=policy, sync=sync, **tilings)
    assert [program.makespan_us for program in programs] == pytest.approx(expected)
