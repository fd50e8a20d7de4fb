"""Where a graph comes together, and what is improved within its parts."""

import pytest

from tvm_rammer.wavefront.plan.builder import ProgramBuilder
from tvm_rammer.wavefront.policies.improve_stage import improve_stage
from tvm_rammer.wavefront.policies.replay import Replay, Step
from tvm_rammer.wavefront.policies.stages import stages
from tvm_rammer.wavefront.problem import make_problem

from ..graphs import FREE, make_graph, make_kernels, plan

MODULES = {"a": "", "b": "a", "c": "a", "d": "b", "e": "c d", "f": "e", "g": "e", "h": "f g"}
"""Two modules of branches, one after the other."""


@pytest.mark.parametrize(
    ("reads", "want"),
    [
        (MODULES, ["a", "bcd", "e", "fg", "h"]),
        ({"a": "", "b": "", "c": "a b"}, ["ab", "c"]),
        ({"a": "", "b": "a", "c": ""}, ["abc"]),  # c may run before all, or after all
        ({"a": "", "b": "a", "c": "a", "d": "b", "e": "b c"}, ["a", "bcde"]),
        ({"a": "", "b": "a", "c": "b", "d": "a c"}, ["a", "b", "c", "d"]),
        ({}, []),
    ],
)
def test_a_stage_ends_where_all_that_follow_need_all_that_came_before(reads, want) -> None:
    predecessors = make_graph(reads).predecessors()
    names = list(reads)
    assert ["".join(names[o] for o in stage) for stage in stages(predecessors, range(len(reads)))] == want


def test_each_module_is_planned_in_the_way_that_is_best_for_it() -> None:
    # Side by side four operators want little work each; two want to end early.
    reads = dict.fromkeys("abcd", "") | {"e": "a b c d", "f": "e", "g": "e"}
    tilings = {name: [(4, 2.0), (1, 4.0)] for name in "abcde"} | {name: [(2, 2.0), (1, 3.9)] for name in "fg"}
    (program,) = plan(reads, veus=4, policy="list", **tilings)
    assert [kernel.num_rtasks for kernel in program.kernels] == [1, 1, 1, 1, 4, 2, 2]
    assert program.makespan_us == 4 + 2 + 2


def steps_of(problem, kernels):
    return [Step(o, problem.candidates(o)[n]) for o, n in enumerate(kernels)]


def test_a_kernel_is_exchanged_once_those_of_others_are_known() -> None:
    # Alone a would take all three vEUs; beside b, which takes two, it ends earlier on one.
    tilings = {"a": [(3, 1.0), (1, 2.2)], "b": [(2, 1.5)]}
    problem = make_problem(make_graph({"a": "", "b": ""}), make_kernels(**tilings), FREE, 3, "auto")
    replay = Replay(ProgramBuilder(problem))
    found = improve_stage(replay, steps_of(problem, [0, 0]))
    assert found == steps_of(problem, [1, 0])
    assert replay.builder.time_us == 2.2 and list(replay.builder.kernels.values()) == [s.kernel for s in found]


def test_what_takes_longer_is_put_in_front() -> None:
    tilings = {"a": [(1, 1.0)], "b": [(1, 1.0)], "c": [(1, 3.0)]}
    problem = make_problem(make_graph(dict.fromkeys("abc", "")), make_kernels(**tilings), FREE, 2, "auto")
    replay = Replay(ProgramBuilder(problem))
    found = improve_stage(replay, steps_of(problem, [0, 0, 0]))
    assert [step.operator for step in found] == [0, 2, 1] and replay.builder.time_us == 3


def test_a_stage_is_improved_behind_what_is_planned_already() -> None:
    tilings = {"a": [(1, 1.0)], "b": [(3, 1.0), (1, 2.2)], "c": [(2, 1.5)]}
    problem = make_problem(make_graph({"a": "", "b": "a", "c": "a"}), make_kernels(**tilings), FREE, 3, "auto")
    replay = Replay(ProgramBuilder(problem))
    replay.time_us(steps_of(problem, [0])[:1])
    behind = Replay(replay.builder)
    found = improve_stage(behind, steps_of(problem, [0, 0, 0])[1:])
    assert [step.kernel.num_rtasks for step in found] == [1, 2] and behind.builder.time_us == 1 + 2.2
