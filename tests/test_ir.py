"""The values that stages hand to each other."""

from tvm_rammer.ir import Buffer, Extent, Place, RGraph, ROperator, Run


def chain():
    buffers = [Buffer("x", (4,), "float32", "input"), *(Buffer(n, (4,), "float32", "intermediate") for n in "ab")]
    buffers.append(Buffer("y", (4,), "float32", "output"))
    return RGraph("g", tuple(buffers), tuple(ROperator(f"op{i}", "f", (i,), (i + 1,)) for i in range(3)))


def test_what_crosses_a_cut_becomes_an_input_or_an_output():
    first, last = chain().subgraph([0, 1], "first"), chain().subgraph([2], "last")
    assert [(b.name, b.kind) for b in first.buffers] == [("x", "input"), ("a", "intermediate"), ("b", "output")]
    assert [(b.name, b.kind) for b in last.buffers] == [("b", "input"), ("y", "output")]
    assert last.operators[0].inputs == (0,)
    assert chain().predecessors() == ((), (0,), (1,))


def test_a_cut_takes_the_buffer_of_a_view_along():
    buffers = (
        Buffer("x", (4,), "float32", "input"),
        Buffer("ab", (32,), "float32", "intermediate"),
        Buffer("a", (16,), "float32", "view", Place(1, 0)),
        Buffer("b", (16,), "float32", "view", Place(1, 64)),
        Buffer("y", (4,), "float32", "output"),
    )
    calls = [("a", (0,), (2,)), ("b", (0,), (3,)), ("y", (3,), (4,))]
    graph = RGraph("g", buffers, tuple(ROperator(n, "f", i, o) for n, i, o in calls))
    assert graph.predecessors() == ((), (), (1,))
    first, last = graph.subgraph([0, 1], "first"), graph.subgraph([2], "last")
    assert [(b.name, b.kind) for b in first.buffers[:2]] == [("x", "input"), ("ab", "output")]
    assert [(b.name, b.kind) for b in last.buffers] == [("ab", "input"), ("b", "view"), ("y", "output")]
    assert last.buffers[1].place == Place(0, 64)
    assert last.extent(1) == Extent(0, 64, 128)


def test_a_run_is_an_arithmetic_progression():
    assert list(Run(0, 3, 4, 5).indices()) == [3, 8, 13, 18]
    assert list(Run(0, 3, 2).indices()) == [3, 4]
