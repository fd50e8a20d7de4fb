"""Cycles of a loop that follow each other have vEUs of their own, and work on several steps at the same time."""

from dataclasses import replace

import pytest

from tvm_rammer.ir import Buffer, Footprint, Place, RGraph, RKernel, ROperator, Run
from tvm_rammer.wavefront import CostModel, schedule_loop
from tvm_rammer.wavefront.pipeline import lanes_of_stages, pipeline_stages

from .graphs import DEVICE, SYNC_COSTS
from .loop_judge import is_right

STEPS, SIZE = 9, 64
CPU = replace(DEVICE, kind="cpu")


def stack(layers: int, *, rings: bool = False, rtasks: int = 1) -> tuple[RGraph, dict[str, list[RKernel]]]:
    """Layers that hand on a state from step to step; each reads, by way of a product, the one below.

    A state is handed on through a result of all steps, or in a ring, and then also copied to such a result.
    """
    buffers = [Buffer("start", (SIZE,), "int8", "input")]
    operators: list[ROperator] = []

    def add(name: str, kind, nbytes: int = SIZE, place: Place | None = None) -> int:
        buffers.append(Buffer(name, (nbytes,), "int8", kind, place))
        return len(buffers) - 1

    below = add("x", "view", place=Place(add("xs", "input", STEPS * SIZE), 0, SIZE))
    for n in range(layers):
        read = below
        if n:
            read = add(f"t{n}", "intermediate")
            operators.append(ROperator(f"product{n}", "product", (below,), (read,)))
        every = add(f"ys{n}", "output", STEPS * SIZE)
        below = add(f"y{n}", "view", place=Place(every, 0, SIZE))
        if rings:
            ring = add(f"ring{n}", "intermediate", 2 * SIZE)
            before = add(f"before{n}", "view", place=Place(ring, 0, SIZE, 0, 2))
            after = add(f"after{n}", "view", place=Place(ring, 0, SIZE, 1, 2))
            operators.append(ROperator(f"cell{n}", "cell", (before, read), (after,), (0, read)))
            operators.append(ROperator(f"result{n}", "result", (after,), (below,)))
        else:
            before = add(f"before{n}", "view", place=Place(every, 0, SIZE, -1))
            operators.append(ROperator(f"cell{n}", "cell", (before, read), (below,), (0, read)))
    graph = RGraph("loop", tuple(buffers), tuple(operators), STEPS)
    part = Footprint((rtasks,), (0,), ((SIZE // rtasks,),), (SIZE // rtasks,))
    inputs = {"product": 1, "cell": 2, "result": 1}
    kernels = {
        name: [RKernel(f"k_{name}", name, rtasks, 1.0, footprints=(*[None] * count, part))]
        for name, count in inputs.items()
    }
    return graph, kernels


@pytest.mark.parametrize("rings", [False, True])
def test_each_cycle_is_a_stage_with_what_it_alone_reads(rings):
    graph, _ = stack(3, rings=rings)
    stages = pipeline_stages(graph, graph.predecessors())
    named = {op.name: stage for op, stage in zip(graph.operators, stages, strict=True)}
    assert named["cell0"] == 0 and named["product1"] == named["cell1"] == 1 and named["product2"] == named["cell2"] == 2
    if rings:  # what copies a result is read by the next layer, and behind the last it is with that
        assert named["result0"] == 1 and named["result2"] == 2


def test_operators_without_a_cycle_are_one_stage():
    graph, _ = stack(2)
    product = replace(graph.operators[1], inputs=graph.operators[0].inputs[1:])
    alone = replace(graph, operators=(product,))
    assert pipeline_stages(alone, alone.predecessors()) == [0]


@pytest.mark.parametrize(("veus", "counts"), [(2, [1, 1]), (3, [1, 1, 1]), (10, [2, 4, 4])])
def test_stages_have_vEUs_by_their_work(veus, counts):
    graph, kernels = stack(3)
    stages = pipeline_stages(graph, graph.predecessors())
    lanes = lanes_of_stages(graph, stages, kernels, CostModel(), veus)
    assert sorted({(r.start, r.stop) for r in lanes}) == [
        (sum(counts[:n]), sum(counts[: n + 1])) for n in range(len(counts))
    ]
    assert lanes[1] == lanes[2]  # a product, and the cell that reads it


@pytest.mark.parametrize("rings", [False, True])
@pytest.mark.parametrize("rtasks", [1, 2])
@pytest.mark.parametrize("veus", [2, 3, 12])
def test_stages_overlap(rings, rtasks, veus):
    graph, kernels = stack(3, rings=rings, rtasks=rtasks)
    (program,) = schedule_loop(graph, kernels, CPU, veus=veus, cost=SYNC_COSTS)
    assert is_right(program, graph)
    (alone,) = schedule_loop(graph, kernels, CPU, veus=1, cost=SYNC_COSTS)
    if veus >= 3:
        assert program.makespan_us < 0.8 * alone.makespan_us
    if len(program.lanes) >= 3:
        cells = {o for o, op in enumerate(graph.operators) if op.name.startswith("cell")}
        assert all(len(cells & {i.operator for i in lane if isinstance(i, Run)}) <= 1 for lane in program.lanes)
