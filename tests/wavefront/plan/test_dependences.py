"""Which rTasks depend on which: against the cells that they touch, and in plans."""

import itertools
import math
import random
from dataclasses import replace

import pytest

from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import Buffer, Footprint, Place, RGraph, RKernel, ROperator, RProgram, Run, Signal, Wait
from tvm_rammer.wavefront import ProgramBuilder, schedule, verify
from tvm_rammer.wavefront.plan.dependences import count_unknown, needs
from tvm_rammer.wavefront.problem import make_problem
from tvm_rammer.wavefront.verify.dependences import Dependences

from ..graphs import DEVICE, SYNC_COSTS, make_graph
from ..tiled_graphs import tiled_graph, touched

ROWS = 512


def random_region(rng: random.Random, view: tuple[int, ...], radices: tuple[int, ...]) -> Footprint:
    """Any footprint at all: boxes may overlap, leave the buffer or be empty."""
    return Footprint(
        radices,
        tuple(rng.randint(-3, 3) for _ in view),
        tuple(tuple(rng.randint(-1, 4) for _ in radices) for _ in view),
        tuple(rng.randint(0, size + 1) for size in view),
        view if view != VIEWS[0] else (),
    )


VIEWS = ((4, 3, 5), (12, 5), (4, 15), (60,), (2, 30), (6, 10))


def pair(rng: random.Random) -> tuple[RGraph, RKernel, RKernel]:
    """Operators a and b, of which b reads a, with random footprints in random views."""
    graph = make_graph({"a": "", "b": "a"})
    graph = replace(graph, buffers=tuple(replace(b, shape=VIEWS[0]) for b in graph.buffers))
    kernels = []
    for name in "ab":
        radices = rng.choice([(4,), (2, 3), (7,), (2, 2, 2)])
        footprints = [random_region(rng, rng.choice(VIEWS), radices) for _ in range(2)]
        kernels.append(RKernel(f"k_{name}", f"f_{name}", math.prod(radices), 1.0, footprints=tuple(footprints)))
    return graph, kernels[0], kernels[1]


def cells(kernel: RKernel, parameter: int, rtask: int) -> set[int]:
    return set(touched(kernel, parameter, VIEWS[0], rtask, written=False).tolist())


@pytest.mark.parametrize("seed", range(150))
def test_needs_hold_whoever_writes_a_cell_that_is_read(seed: int) -> None:
    graph, a, b = pair(random.Random(seed))
    found = needs(graph, 0, a, 1, b)
    same_view = a.footprints[1].view == b.footprints[0].view
    for reader in range(b.num_rtasks):
        bits = (1 << a.num_rtasks) - 1 if found is None else found[reader]
        for writer in range(a.num_rtasks):
            meets = bool(cells(a, 1, writer) & cells(b, 0, reader))
            assert bits >> writer & 1 or not meets
            assert meets or not (same_view and bits >> writer & 1)


@pytest.mark.parametrize("seed", range(150))
def test_the_verifier_asks_for_no_more_than_the_scheduler_gives(seed: int) -> None:
    graph, a, b = pair(random.Random(seed))
    program = RProgram("p", graph, (a, b), (), 0, {}, 0)
    assert Dependences(program).partners(0, 0, 1, 0) == needs(graph, 0, a, 1, b)


SHAPES = ((4, 3, 5), (2, 3, 5), (1, 3, 5), (3, 5), (5,), (7, 5), (2, 30), (1, 6, 1, 5), (11,))


def pair_of_views(rng: random.Random) -> tuple[RGraph, RKernel, RKernel]:
    """Operators a and b: what b reads and what a writes are two parts of one buffer, of any shapes, that overlap."""
    shapes = rng.choice(SHAPES), rng.choice(SHAPES)
    while True:
        starts = [rng.choice((1, 5, 15)) * rng.randint(0, 6) for _ in shapes]
        ends = [start + math.prod(shape) for start, shape in zip(starts, shapes, strict=True)]
        if max(starts) < min(ends):
            break
    places = [
        Buffer(name, shape, "int8", "view", Place(0, start))
        for name, shape, start in zip(("a.out", "b.in"), shapes, starts, strict=True)
    ]
    base, output = Buffer("base", (200,), "int8", "intermediate"), Buffer("b.out", (4,), "int8", "output")
    operators = ROperator("a", "f_a", (), (1,)), ROperator("b", "f_b", (2,), (3,))
    kernels = []
    for name, shape in zip("ab", shapes, strict=True):
        radices = rng.choice([(4,), (2, 3), (7,), (2, 2, 2)])
        size = math.prod(shape)
        view = rng.choice([shape, shape, (size,), *(((size // 5, 5),) if size % 5 == 0 else ())])
        region = replace(random_region(rng, view, radices), view=() if view == shape else view)
        kernels.append(RKernel(f"k_{name}", f"f_{name}", math.prod(radices), 1.0, footprints=(region,)))
    return RGraph("g", (base, *places, output), operators), kernels[0], kernels[1]


@pytest.mark.parametrize("seed", range(200))
def test_who_shares_a_byte_by_views_waits_and_verifier_and_scheduler_agree(seed: int) -> None:
    graph, a, b = pair_of_views(random.Random(seed))
    found = needs(graph, 0, a, 1, b)
    assert Dependences(RProgram("p", graph, (a, b), (), 0, {}, 0)).partners(0, 0, 1, 0) == found
    assert graph.predecessors() == ((), (0,))

    def bytes_of(kernel: RKernel, buffer: int, rtask: int) -> set[int]:
        place = graph.buffers[buffer].place
        assert place
        cells = touched(kernel, 0, graph.buffers[buffer].shape, rtask, written=False)
        return set((cells + place.offset).tolist())

    for reader, writer in itertools.product(range(b.num_rtasks), range(a.num_rtasks)):
        if bytes_of(a, 1, writer) & bytes_of(b, 2, reader):
            assert found is None or found[reader] >> writer & 1


def test_a_reader_of_a_concatenation_waits_for_the_channels_that_it_reads() -> None:
    """Parts of 2 and 3 channels of 4 x 5 pixels; rTasks of a channel and two rows, halos included, on either side."""
    buffers = (
        Buffer("whole", (1, 5, 4, 5), "float32", "intermediate"),
        Buffer("left", (1, 2, 4, 5), "float32", "view", Place(0, 0)),
        Buffer("right", (1, 3, 4, 5), "float32", "view", Place(0, 160)),
        Buffer("out", (5, 4, 5), "float32", "output"),
    )
    operators = tuple(ROperator(n, f"f_{n}", i, o) for n, i, o in (("a", (), (1,)), ("b", (), (2,)), ("c", (0,), (3,))))
    graph = RGraph("g", buffers, operators)

    def tiles(channels: int, halo: int) -> Footprint:
        steps = ((0, 0), (1, 0), (0, 2), (0, 0))
        return Footprint((channels, 2), (0, 0, -halo, 0), steps, (1, 1, 2 + 2 * halo, 5))

    kernels = [
        RKernel(f"k_{n}", f"f_{n}", 2 * channels, 1.0, footprints=(tiles(channels, n == "c"),))
        for n, channels in (("a", 2), ("b", 3), ("c", 5))
    ]
    assert needs(graph, 0, kernels[0], 2, kernels[2]) == (0b11, 0b11, 0b1100, 0b1100, 0, 0, 0, 0, 0, 0)
    want = (0, 0, 0, 0, 0b11, 0b11, 0b1100, 0b1100, 0b110000, 0b110000)
    assert needs(graph, 1, kernels[1], 2, kernels[2]) == want


def rows(count: int, halo: int = 0) -> Footprint:
    """Equal parts of the `ROWS` elements of a buffer, with a halo on both sides."""
    part = -(-ROWS // count)
    return Footprint((count,), (-halo,), ((part,),), (part + 2 * halo,))


def chain(length: int, count: int, halo: int = 0) -> tuple[RGraph, dict[str, list[RKernel]]]:
    """Operators one after another, all with the same tiling."""
    names = [f"o{n}" for n in range(length)]
    graph = make_graph({name: names[n - 1] if n else "" for n, name in enumerate(names)})
    footprints = (rows(count, halo), rows(count))
    kernels = {f"f_{n}": [RKernel(f"k_{n}", f"f_{n}", count, 1.0, footprints=footprints)] for n in names}
    return graph, kernels


@pytest.mark.parametrize("veus, count", [(2, 2), (4, 8), (7, 7), (8, 24)])
def test_a_chain_of_elements_never_waits(veus: int, count: int) -> None:
    graph, kernels = chain(5, count)
    (program,) = schedule(graph, kernels, DEVICE, veus=veus, cost=SYNC_COSTS)
    assert program.waits() == 0
    assert program.makespan_us == 10 + 5 * count / veus


def test_with_a_halo_a_lane_waits_for_its_neighbours() -> None:
    graph, kernels = chain(3, 8, halo=3)
    (program,) = schedule(graph, kernels, DEVICE, veus=8, cost=SYNC_COSTS)
    signallers = [[v for v, lane in enumerate(program.lanes) if Signal(e) in lane] for e in range(program.num_events)]
    for v, lane in enumerate(program.lanes):
        neighbours = [u for u in (v - 1, v + 1) if 0 <= u < 8]
        waits = [i for i in lane if isinstance(i, Wait)]
        assert [signallers[w.event] for w in waits] == [neighbours] * 2
        assert [w.arrivals for w in waits] == [len(neighbours)] * 2


def test_whoever_reads_all_waits_once_for_all() -> None:
    graph, kernels = chain(2, 8)
    everything = Footprint((8,), (0,), ((0,),), (ROWS,))
    kernels["f_o1"] = [replace(kernels["f_o1"][0], footprints=(everything, rows(8)))]
    (program,) = schedule(graph, kernels, DEVICE, veus=8, cost=SYNC_COSTS)
    assert program.num_events == 1
    assert program.waits() == 8


def test_rtasks_of_all_lanes_are_the_whole_operator() -> None:
    graph, kernels = chain(2, 8)
    kernels["f_o1"] = [replace(kernels["f_o1"][0], num_rtasks=2, footprints=(rows(2), rows(2)))]
    builder = ProgramBuilder(make_problem(graph, kernels, SYNC_COSTS, 6, "auto"))
    for veu in range(4):
        builder.append(Run(0, veu, 2, 4), veu, kernels["f_o0"][0])
    builder.wait(4, [0])
    builder.wait(5, [0], Run(1, 0, 1), kernels["f_o1"][0])
    lanes, num_events = builder.finish()
    assert num_events == 1
    assert lanes[4] == lanes[5] == (Wait(0, 4),)


@pytest.mark.parametrize("footprints", [(), (None, None), (rows(8), None), (rows(7), rows(7))])
def test_without_footprints_that_fit_an_rtask_waits_for_the_whole_operator(
    footprints: tuple[Footprint | None, ...],
) -> None:
    graph, kernels = chain(2, 8)
    kernels["f_o0"] = [replace(kernels["f_o0"][0], footprints=footprints)]
    (program,) = schedule(graph, kernels, DEVICE, veus=8, cost=SYNC_COSTS)
    assert program.num_events == 1
    assert program.waits() == 8


def test_unknown_dependences_are_counted() -> None:
    graph, kernels = chain(3, 8)
    kernels["f_o1"] = [replace(kernels["f_o1"][0], footprints=(rows(8), None))]
    (program,) = schedule(graph, kernels, DEVICE, veus=2)
    assert count_unknown(program) == (1, 2)


def test_a_part_that_is_done_earlier_is_waited_for_by_itself() -> None:
    # The first half of a is done at 1, the other half at 5; b's rTasks read one half each.
    graph = make_graph({"z": "", "a": "", "b": "a z"})
    kernels = {
        "f_z": [RKernel("k_z", "f_z", 4, 4.0, footprints=(None, rows(4)))],
        "f_a": [RKernel("k_a", "f_a", 8, 1.0, footprints=(None, rows(8)))],
        "f_b": [RKernel("k_b", "f_b", 2, 1.0, footprints=(rows(2), rows(2), rows(2)))],
    }
    builder = ProgramBuilder(make_problem(graph, kernels, SYNC_COSTS, 9, "auto"))
    for veu in range(8):
        if veu >= 4:
            builder.append(Run(0, veu - 4, 1), veu, kernels["f_z"][0])
        builder.append(Run(1, veu, 1), veu, kernels["f_a"][0])
    builder.wait(8, [1], Run(2, 0, 1), kernels["f_b"][0])
    assert builder.ready_us[8] == 1 + 1
    assert builder.finish()[0][8] == (Wait(0, 4),)
    builder.wait(8, [1], Run(2, 1, 1), kernels["f_b"][0])
    assert builder.ready_us[8] == 5 + 1


def test_rollback_forgets_the_events_of_parts() -> None:
    graph, kernels = chain(2, 8)
    builder = ProgramBuilder(make_problem(graph, kernels, SYNC_COSTS, 9, "auto"))
    for veu in range(8):
        builder.append(Run(0, veu, 1), veu, kernels["f_o0"][0])
    mark, before = builder.mark(), builder.finish()
    for rtask in (3, 5):
        builder.wait(8, [0], Run(1, rtask, 1), kernels["f_o1"][0])
        assert builder.finish()[0][8] == (Wait(0, 1),)
        assert sum(Signal(0) in lane for lane in builder.finish()[0]) == 1
        builder.rollback(mark)
        assert builder.finish() == before


def test_a_missing_wait_is_named_by_its_rtasks() -> None:
    graph, kernels = chain(2, 8, halo=3)
    (program,) = schedule(graph, kernels, DEVICE, veus=8, cost=SYNC_COSTS)
    lanes = list(program.lanes)
    lanes[4] = tuple(i for i in lanes[4] if not isinstance(i, Wait))
    message = (
        "rTask 4 of 'o1' reads 'o0.out' on lane 4, but rTask 3 of its writer 'o0' on lane 3 may not have ended; a wait"
    )
    with pytest.raises(VerificationError, match=message):
        verify(replace(program, lanes=tuple(lanes)))


def test_a_wait_for_the_wrong_neighbours_is_refused() -> None:
    graph, kernels = chain(2, 8, halo=3)
    (program,) = schedule(graph, kernels, DEVICE, veus=8, cost=SYNC_COSTS)
    waits = {v: next(i for i in lane if isinstance(i, Wait)) for v, lane in enumerate(program.lanes)}
    exchanged = {1: waits[6], 6: waits[1]}
    lanes = tuple(
        tuple(exchanged[v] if v in exchanged and isinstance(i, Wait) else i for i in lane)
        for v, lane in enumerate(program.lanes)
    )
    with pytest.raises(VerificationError, match=r"rTask 1 of 'o1' .* rTask 0 of its writer 'o0' on lane 0"):
        verify(replace(program, lanes=lanes))


@pytest.mark.parametrize("seed", range(60))
def test_waits_of_tiled_graphs_are_minimal(seed: int) -> None:
    rng = random.Random(seed)
    graph, kernels = tiled_graph(rng, rng.randint(2, 12))
    for program in schedule(graph, kernels, DEVICE, veus=rng.randint(2, 8), cost=SYNC_COSTS):
        for v, lane in enumerate(program.lanes):
            for n, instruction in enumerate(lane):
                if isinstance(instruction, Wait):
                    lanes = (*program.lanes[:v], lane[:n] + lane[n + 1 :], *program.lanes[v + 1 :])
                    with pytest.raises(VerificationError, match="a wait is missing"):
                        verify(replace(program, lanes=lanes))
