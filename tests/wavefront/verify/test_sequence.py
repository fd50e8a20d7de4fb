"""The order between programs: each rule broken once."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import RGraph, RProgram
from tvm_rammer.wavefront import CostModel, verify_sequence

from ..graphs import make_graph, plan, random_plans

READS = {"a": "", "b": "a", "c": "b"}
GRAPH = make_graph(READS)


def three() -> tuple[RProgram, ...]:
    """One program for each operator: a launch is cheaper than a signal."""
    programs = plan(READS, veus=2, cost=CostModel(launch_us=0.5, signal_us=5.0), a=(2, 1.0), b=(2, 1.0), c=(2, 1.0))
    assert len(programs) == 3
    return programs


def refused(programs: tuple[RProgram, ...], message: str, graph: RGraph = GRAPH) -> None:
    with pytest.raises(VerificationError, match=message):
        verify_sequence(graph, programs)


def with_graph(program: RProgram, **changes: object) -> RProgram:
    return replace(program, graph=replace(program.graph, **changes))


def test_programs_in_their_order_pass() -> None:
    verify_sequence(GRAPH, three())


def test_another_order_is_refused() -> None:
    a, b, c = three()
    refused((b, a, c), "program 'g_1' reads 'a.out', which neither the graph nor a program before it provides")
    refused((a, c, b), "program 'g_2' reads 'b.out'")


def test_each_operator_is_in_one_program() -> None:
    a, b, c = three()
    refused((a, b), "operator 'c' of graph 'g' is in none of its programs")
    refused((a, b, b, c), "operator 'b' is in 'g_1' and in 'g_1'")


def test_operators_are_those_of_the_graph() -> None:
    a, b, c = three()
    (op,) = b.graph.operators
    refused((a, with_graph(b, operators=(replace(op, function="f_a"),)), c), "operator 'b' of program 'g_1' is not the")
    refused((a, with_graph(b, operators=(replace(op, name="d"),)), c), "operator 'd' of program 'g_1' is not the one")
    other = make_graph({"a": "", "b": "", "c": "b"})
    refused((a, b, c), "operator 'b' of program 'g_1' is not the one of graph 'g'", other)


def test_what_a_later_program_reads_is_left_behind() -> None:
    a, b, c = three()
    kept = tuple(replace(x, kind="intermediate") if x.name == "a.out" else x for x in a.graph.buffers)
    refused((with_graph(a, buffers=kept), b, c), "program 'g_1' reads 'a.out'")
    smaller = tuple(replace(x, shape=(8,)) if x.name == "a.out" else x for x in b.graph.buffers)
    refused((a, with_graph(b, buffers=smaller), c), "'a.out', which .* in that shape and type")


def test_a_constant_is_one_of_the_graph() -> None:
    a, b, c = three()
    constant = tuple(replace(x, kind="constant") if x.name == "a.out" else x for x in b.graph.buffers)
    refused((a, with_graph(b, buffers=constant), c), "program 'g_1' reads 'a.out'")


def test_the_graphs_outputs_are_left_behind() -> None:
    a, b, c = three()
    lost = tuple(replace(x, kind="intermediate") if x.name == "c.out" else x for x in c.graph.buffers)
    refused((a, b, with_graph(c, buffers=lost)), "no program has output 'c.out' of graph 'g' among its outputs")


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(random_plans())
def test_plans_in_another_order_are_refused_where_one_reads_another(programs: tuple[RProgram, ...]) -> None:
    made = [{b.name for b in p.graph.buffers if b.kind == "output"} for p in programs]
    reads = [{b.name for b in p.graph.buffers if b.kind == "input"} for p in programs]
    for k in range(1, len(programs)):
        if made[k - 1] & reads[k]:
            swapped = (*programs[: k - 1], programs[k], programs[k - 1], *programs[k + 1 :])
            refused(swapped, "operator|which neither", graph_of(programs))


def graph_of(programs: tuple[RProgram, ...]) -> RGraph:
    """The graph that programs were made from, as far as they show it."""
    buffers = {b.name: b for p in programs for b in p.graph.buffers}
    made = {b.name for p in programs for b in p.graph.buffers if b.kind == "output"}
    kinded = {n: replace(b, kind="output") if n in made else b for n, b in buffers.items()}
    number = {name: n for n, name in enumerate(kinded)}
    operators = tuple(
        replace(
            op,
            inputs=tuple(number[p.graph.buffers[b].name] for b in op.inputs),
            outputs=tuple(number[p.graph.buffers[b].name] for b in op.outputs),
        )
        for p in programs
        for op in p.graph.operators
    )
    graph = RGraph("g", tuple(kinded.values()), operators)
    verify_sequence(graph, programs)
    return graph
