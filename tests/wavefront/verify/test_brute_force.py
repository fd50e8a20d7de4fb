"""The verifier against all interleavings of tiny programs, good and bad."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import Instruction, RProgram, Run, Signal, Wait
from tvm_rammer.wavefront import verify

from ..graphs import make_graph, make_kernels

READS = {"a": "", "b": "a", "c": "b"}
GRAPH = make_graph(READS)
KERNELS = tuple(make_kernels(a=(2, 1.0), b=(1, 1.0), c=(1, 1.0))[f"f_{name}"][0] for name in READS)
RUNS = (Run(0, 0, 1), Run(0, 1, 1), Run(1, 0, 1), Run(2, 0, 1))
APART, TOGETHER = {1: 0, 2: 512}, {1: 0, 2: 0}


def is_right(program: RProgram) -> bool:
    """Walk through every state that can be reached. A `Run` begins and ends, with others in between."""
    steps = [
        [(i, part) for i in lane for part in ("begin", "end")[: 2 if isinstance(i, Run) else 1]]
        for lane in program.lanes
    ]
    start = (0,) * len(steps)
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        done = [step for lane, at in zip(steps, state, strict=True) for step in lane[:at]]
        if not _holds(program, done):
            return False
        arrived = [i.event for i, _ in done if isinstance(i, Signal)]
        moves = []
        for v, at in enumerate(state):
            if at < len(steps[v]):
                i = steps[v][at][0]
                if not isinstance(i, Wait) or arrived.count(i.event) >= i.arrivals:
                    moves.append((*state[:v], at + 1, *state[v + 1 :]))
        if not moves and any(at < len(lane) for at, lane in zip(state, steps, strict=True)):
            return False
        todo += [move for move in moves if move not in seen]
        seen.update(moves)
    return True


def _holds(program: RProgram, done: list[tuple[Instruction, str]]) -> bool:
    started = [i.operator for i, part in done if isinstance(i, Run) and part == "begin"]
    ended = [i.operator for i, part in done if isinstance(i, Run) and part == "end"]
    complete = [ended.count(o) == kernel.num_rtasks for o, kernel in enumerate(program.kernels)]
    for reader, before in enumerate(program.graph.predecessors()):
        if reader in started and not all(complete[p] for p in before):
            return False
    if program.offsets == TOGETHER:
        # a.out lives from the beginning of a to the end of b, b.out from the beginning of b to the end of c.
        return not (
            0 in started and not (complete[0] and complete[1]) and 1 in started and not (complete[1] and complete[2])
        )
    return True


@st.composite
def tiny_programs(draw: st.DrawFn) -> RProgram:
    """Programs of 2 or 3 lanes whose signals and waits are often, but not always, where they should be."""
    lanes: list[list[Instruction]] = [[] for _ in range(draw(st.integers(2, 3)))]
    any_event, mostly = st.integers(0, 1), st.sampled_from([True, True, True, True, False])
    for run in RUNS if draw(mostly) else draw(st.permutations(RUNS)):
        lane = draw(st.sampled_from(lanes))
        if run.operator and draw(mostly):
            lane.append(Wait(run.operator - 1 if draw(mostly) else draw(any_event), draw(st.integers(1, 2))))
        lane.append(run)
        if run.operator < 2 and draw(mostly):
            lane.append(Signal(run.operator if draw(mostly) else draw(any_event)))
    offsets = draw(st.sampled_from([APART, TOGETHER]))
    return RProgram("p", GRAPH, KERNELS, tuple(tuple(lane) for lane in lanes), 2, offsets, 1024)


def accepts(program: RProgram) -> bool:
    try:
        verify(program)
    except VerificationError:
        return False
    return True


@settings(max_examples=600, deadline=None, derandomize=True, database=None)
@given(tiny_programs())
def test_what_is_accepted_is_right_in_every_interleaving(program: RProgram) -> None:
    if accepts(program):
        assert is_right(program)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(tiny_programs())
def test_with_waits_for_all_arrivals_what_is_right_is_accepted(program: RProgram) -> None:
    total = [sum(i == Signal(event) for lane in program.lanes for i in lane) for event in range(2)]
    lanes = tuple(
        tuple(Wait(i.event, total[i.event]) if isinstance(i, Wait) and total[i.event] else i for i in lane)
        for lane in program.lanes
    )
    awaited = {i.event for lane in lanes for i in lane if isinstance(i, Wait)}
    program = replace(program, lanes=lanes)
    assert accepts(program) == (is_right(program) and awaited == {0, 1})


def test_both_verdicts_are_reached() -> None:
    good = ((RUNS[0], Signal(0), Wait(1, 1), RUNS[3]), (RUNS[1], Signal(0), Wait(0, 2), RUNS[2], Signal(1)))
    program = RProgram("p", GRAPH, KERNELS, good, 2, APART, 1024)
    assert accepts(program) and is_right(program)
    for lanes in ((good[0], good[1][:2] + good[1][3:]), (good[0][1:2] + good[0][:1] + good[0][2:], good[1])):
        broken = replace(program, lanes=lanes)
        assert not accepts(broken) and not is_right(broken)
    shared = replace(program, offsets=TOGETHER)
    assert not accepts(shared) and not is_right(shared)
