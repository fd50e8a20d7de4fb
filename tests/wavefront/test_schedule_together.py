"""Several models on one vDevice: merged graphs, shares, and what is gained."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_rammer.errors import ScheduleError
from tvm_rammer.ir import RGraph, RKernel, RProgram, Run, Signal, Wait
from tvm_rammer.wavefront import CostModel, merge_graphs, schedule, schedule_together, verify, with_prefix
from tvm_rammer.wavefront.schedule_together import divide_veus, unite_programs

from .graphs import BRANCHES, DEVICE, DIAMOND, FREE, SYNC_COSTS, make_graph, make_kernels

A, B = with_prefix(make_graph(DIAMOND), "a."), with_prefix(make_graph(BRANCHES), "b.")


def kernels(rtasks: int = 2) -> dict[str, list[RKernel]]:
    return make_kernels(**{name: (rtasks, 1.0 + n % 3) for n, name in enumerate(BRANCHES)})


def together(
    *, veus: int, shares: list[float] | None = None, cost: CostModel = FREE, sync: str = "auto"
) -> tuple[RProgram, ...]:
    return schedule_together([A, B], kernels(), DEVICE, veus=veus, shares=shares, cost=cost, sync=sync)


def alone(graph: RGraph, veus: int, cost: CostModel = FREE) -> tuple[RProgram, ...]:
    return schedule(graph, kernels(), DEVICE, veus=veus, cost=cost)


def models_of(lane: tuple[object, ...], program: RProgram) -> set[str]:
    return {program.graph.operators[i.operator].name[0] for i in lane if isinstance(i, Run)}


def test_a_merged_graph_holds_each_graph_as_it_was() -> None:
    merged = merge_graphs([A, B], "both")
    assert [op.name for op in merged.graph.operators] == [op.name for op in (*A.operators, *B.operators)]
    for graph, position, first in zip((A, B), merged.buffers, merged.first_operator, strict=True):
        assert [merged.graph.buffers[p] for p in position] == list(graph.buffers)
        for o, op in enumerate(graph.operators):
            moved = merged.graph.operators[first + o]
            assert moved.inputs == tuple(position[b] for b in op.inputs)
            assert moved.outputs == tuple(position[b] for b in op.outputs)
        subgraph = merged.graph.subgraph(range(first, first + len(graph.operators)), graph.name)
        assert subgraph == graph


def test_an_input_that_two_graphs_read_is_one_buffer() -> None:
    one, two = make_graph({"a": ""}), make_graph({"b": ""})
    merged = merge_graphs([one, two], "both").graph
    assert [b.name for b in merged.buffers] == ["x", "a.out", "b.out"]
    assert [op.inputs for op in merged.operators] == [(0,), (0,)]


@pytest.mark.parametrize("other", [make_graph({"a": ""}), make_graph({"c": ""}, {"c": 3})])
def test_names_that_collide_are_refused(other: RGraph) -> None:
    mine = make_graph({"a": "", "c": "a"})
    with pytest.raises(ScheduleError, match="with_prefix"):
        merge_graphs([mine, other], "both")


def test_with_a_prefix_a_graph_can_be_merged_with_itself() -> None:
    graph = make_graph(DIAMOND)
    programs = schedule_together(
        [with_prefix(graph, "0."), with_prefix(graph, "1.")], kernels(), DEVICE, veus=4, cost=FREE
    )
    assert sum(len(p.graph.operators) for p in programs) == 8


@pytest.mark.parametrize(
    ("veus", "shares", "want"),
    [
        (8, [1, 1], (4, 4)),
        (8, [3, 1], (6, 2)),
        (132, [2, 1], (88, 44)),
        (5, [1, 1], (3, 2)),
        (3, [1e-9, 1, 9], (1,) * 3),
    ],
)
def test_veus_are_divided_in_proportion(veus: int, shares: list[float], want: tuple[int, ...]) -> None:
    got = divide_veus(veus, shares)
    assert sum(got) == veus and min(got) >= 1
    assert all(abs(g - w) <= 1 for g, w in zip(got, want, strict=True))


@given(st.integers(1, 300), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9))
def test_every_veu_is_given_out_once(veus: int, shares: list[float]) -> None:
    if veus < len(shares):
        with pytest.raises(ScheduleError, match="cannot be divided"):
            divide_veus(veus, shares)
        return
    counts = divide_veus(veus, shares)
    assert sum(counts) == veus and min(counts) >= 1
    for count, share in zip(counts, shares, strict=True):
        assert abs(count - 1 - (veus - len(shares)) * share / sum(shares)) < 1


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"veus": 1, "shares": [1, 1]}, "1 vEUs cannot be divided among 2"),
        ({"veus": 4, "shares": [1, 0]}, "give a positive number for each"),
        ({"veus": 4, "shares": [1]}, "1 shares for 2 graphs"),
    ],
)
def test_impossible_shares_are_refused(how: dict, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        together(**how)


@pytest.mark.parametrize("sync", ["auto", "global"])
@pytest.mark.parametrize("shares", [[1, 1], [3, 1], [1, 9]])
def test_with_shares_lanes_do_not_mix(shares: list[float], sync: str) -> None:
    veus = 7
    programs = together(veus=veus, shares=shares, cost=SYNC_COSTS, sync=sync)
    mine = divide_veus(veus, shares)[0]
    for program in programs:
        assert len(program.lanes) == veus
        assert all(models_of(lane, program) <= {"a"} for lane in program.lanes[:mine])
        assert all(models_of(lane, program) <= {"b"} for lane in program.lanes[mine:])
        heard = [{i.event for i in lane if isinstance(i, Signal | Wait)} for lane in program.lanes]
        assert not set().union(*heard[:mine]) & set().union(*heard[mine:])


def test_with_shares_each_model_keeps_its_own_plan() -> None:
    (program,) = together(veus=6, shares=[1, 1], cost=SYNC_COSTS)
    (a,), (b,) = alone(A, 3, SYNC_COSTS), alone(B, 3, SYNC_COSTS)
    assert program.makespan_us == pytest.approx(max(a.makespan_us, b.makespan_us))
    assert program.kernels == a.kernels + b.kernels
    assert program.num_events == a.num_events + b.num_events
    assert program.waits() == a.waits() + b.waits()


def test_barriers_of_both_models_stay_the_last_events() -> None:
    cost = CostModel(launch_us=1e6, signal_us=1.0, barrier_us=3.0)
    (program,) = together(veus=6, shares=[1, 1], cost=cost, sync="global")
    (a,), (b,) = (schedule(g, kernels(), DEVICE, veus=3, cost=cost, sync="global") for g in (A, B))
    assert program.barriers == a.barriers + b.barriers > 0
    assert program.makespan_us == pytest.approx(max(a.makespan_us, b.makespan_us))


def test_both_models_together_take_less_time_than_one_after_the_other() -> None:
    one_by_one = sum(p.makespan_us for graph in (A, B) for p in alone(graph, 8, SYNC_COSTS))
    for shares in (None, [1, 1]):
        assert sum(p.makespan_us for p in together(veus=8, shares=shares, cost=SYNC_COSTS)) < one_by_one


def test_without_shares_the_first_graph_is_placed_first() -> None:
    # Two operators of one wave on one vEU.
    chain = make_graph({"a": ""})
    first, last = with_prefix(chain, "1."), with_prefix(chain, "0.")
    (program,) = schedule_together([first, last], kernels(1), DEVICE, veus=1, cost=FREE)
    order = [program.graph.operators[i.operator].name for i in program.lanes[0] if isinstance(i, Run)]
    assert order == ["1.a", "0.a"]


def test_models_of_several_launches_share_their_launches() -> None:
    # A launch is cheaper than a signal, so each wave is a program of its own; B has more waves.
    cost = CostModel(launch_us=2, signal_us=5)
    programs = together(veus=4, shares=[1, 1], cost=cost)
    assert len(programs) == max(len(alone(A, 2, cost)), len(alone(B, 2, cost))) > 1
    names = [op.name for program in programs for op in program.graph.operators]
    assert sorted(names) == sorted(op.name for op in (*A.operators, *B.operators))
    assert [p.name for p in programs] == [f"together_{k}" for k in range(len(programs))]


def test_a_program_united_with_itself_keeps_its_memory_apart() -> None:
    graph = make_graph(BRANCHES)
    one, two = (alone(with_prefix(graph, p), 2)[0] for p in ("a.", "b."))
    program = unite_programs([one, two], "both")
    verify(program)
    assert program.workspace_bytes == one.workspace_bytes + two.workspace_bytes > 0
    half = sorted(program.offsets.values())
    assert half[len(half) // 2] >= one.workspace_bytes


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_random_models_together(data: st.DataObject) -> None:
    """Each is verified by `schedule_together`; no operator is lost and no launch is idle."""
    graphs = []
    for n in range(data.draw(st.integers(1, 4))):
        names = [f"o{k}" for k in range(data.draw(st.integers(1, 6)))]
        reads = {
            name: " ".join(data.draw(st.sets(st.sampled_from(names[:k]), max_size=2)) if k else ())
            for k, name in enumerate(names)
        }
        graphs.append(with_prefix(make_graph(reads), f"{n}."))
    tilings = make_kernels(**{f"o{k}": (data.draw(st.integers(1, 5)), 1.0) for k in range(6)})
    shares = data.draw(st.sampled_from([None, [1.0] * len(graphs), [1.0 + n for n in range(len(graphs))]]))
    veus = data.draw(st.integers(len(graphs), 9))
    programs = schedule_together(graphs, tilings, DEVICE, veus=veus, shares=shares, cost=SYNC_COSTS)
    planned = [op.name for program in programs for op in program.graph.operators]
    assert sorted(planned) == sorted(op.name for graph in graphs for op in graph.operators)
