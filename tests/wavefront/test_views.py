"""Which copies placement can avoid, and which stay: one test for each reason."""

import random
from dataclasses import replace

import pytest

from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import Buffer, Place
from tvm_rammer.wavefront import CostModel, schedule, schedule_together, verify_sequence, with_prefix

from .copying_graphs import Made, joined, names, places
from .graphs import DEVICE


def test_parts_of_a_concatenation_are_written_in_place() -> None:
    made = Made(x=64)
    made.op("a", "x")
    made.op("b", "x", 512)
    made.concat("c", "a b")
    made.op("y", "c", kind="output")
    graph = made.placed()
    assert names(graph) == "a b y"
    assert places(graph) == {"a": ("c", 0), "b": ("c", 256)}
    assert graph.predecessors() == ((), (), (0, 1))


def test_growing_concatenations_write_each_part_once_into_the_largest() -> None:
    made = Made(x=64)
    made.op("a0", "x")
    for n in range(1, 5):
        made.op(f"a{n}", "a0" if n == 1 else f"c{n - 1}")
        made.concat(f"c{n}", f"a0 a{n}" if n == 1 else f"c{n - 1} a{n}")
    made.op("y", "c4", kind="output")
    graph = made.placed()
    assert names(graph) == "a0 a1 a2 a3 a4 y"
    want = {"a0": 0, "a1": 256, "a2": 512, "a3": 768, "a4": 1024, "c1": 0, "c2": 0, "c3": 0}
    assert places(graph) == {name: ("c4", at) for name, at in want.items()}


def test_a_concatenation_of_all_parts_so_far_is_a_prefix_too() -> None:
    made = Made(x=64)
    made.op("a", "x")
    made.op("b", "x")
    made.concat("ab", "a b")
    made.op("d", "ab")
    made.concat("abd", "a b d")
    made.op("y", "abd", kind="output")
    assert names(made.placed()) == "a b d y"


def test_a_split_is_read_in_place() -> None:
    made = Made(x=64)
    made.op("gates", "x", 1024)
    made.split({f"g{n}": 256 for n in range(4)}, "gates")
    made.op("y", "g0 g1 g2 g3", kind="output")
    graph = made.placed()
    assert names(graph) == "gates y"
    assert places(graph) == {f"g{n}": ("gates", 256 * n) for n in range(4)}


def test_inputs_and_constants_are_read_in_place() -> None:
    made = Made(x=1024, k=512)
    made.buffers["k"] = replace(made.buffers["k"], kind="constant")
    made.slice("s", "x", 128, 256)
    made.split({"u": 256, "v": 256}, "k")
    made.op("y", "s u v", kind="output")
    graph = made.placed()
    assert names(graph) == "y"
    assert places(graph) == {"s": ("x", 128), "u": ("k", 0), "v": ("k", 256)}
    assert [b.kind for b in graph.buffers] == ["input", "constant", "view", "view", "view", "output"]


def test_parts_are_written_straight_into_an_output() -> None:
    graph = joined("output").placed()
    assert names(graph) == "a b"
    assert places(graph) == {"a": ("c", 0), "b": ("c", 256)}


def stays(made: Made, *kept: str) -> None:
    """Whether just these operators copy after all."""
    left = {op.name for op in made.placed().operators}
    assert {op.name for op in made.operators if op.function in made.copies} & left == set(kept)


def test_a_part_that_is_an_input_is_copied() -> None:
    made = Made(x=256)
    made.op("a", "x")
    made.concat("c", "x a")
    made.op("y", "c", kind="output")
    stays(made, "c")


def test_a_part_that_is_an_output_is_copied() -> None:
    made = Made(x=64)
    made.op("a", "x", kind="output")
    made.op("b", "x")
    made.concat("c", "a b")
    made.op("y", "c", kind="output")
    stays(made, "c")


def test_a_part_of_two_concatenations_is_copied_into_the_smaller() -> None:
    made = Made(x=64)
    for name, size in (("a", 256), ("b", 256), ("c", 512)):
        made.op(name, "x", size)
    made.concat("ab", "a b")
    made.concat("cb", "c b")
    made.op("y", "ab cb", kind="output")
    stays(made, "ab")


def test_the_same_part_twice_is_copied() -> None:
    made = Made(x=64)
    made.op("a", "x")
    made.concat("aa", "a a")
    made.op("y", "aa", kind="output")
    stays(made, "aa")


def test_a_part_at_an_odd_offset_is_copied() -> None:
    made = Made(x=64)
    made.op("a", "x", 96)
    made.op("b", "x")
    made.concat("c", "a b")
    made.slice("s", "a", 32, 64)
    made.op("y", "c s", kind="output")
    stays(made, "c", "s")


def test_an_output_that_is_a_view_of_an_input_is_copied() -> None:
    made = Made(x=256)
    made.slice("y", "x", 0, 256)
    made.buffers["y"] = replace(made.buffers["y"], kind="output")
    stays(made, "y")


def test_two_outputs_of_the_same_data_are_two_tensors() -> None:
    made = Made(x=64)
    made.op("a", "x", 512)
    made.split({"y": 256, "z": 256}, "a", kind="output")
    stays(made, "y_z")


def test_elements_of_another_type_are_copied() -> None:
    made = Made(x=64)
    made.op("a", "x")
    made.slice("s", "a", 0, 256)
    made.buffers["s"] = Buffer("s", (64,), "float32", "intermediate")
    made.op("y", "s", kind="output")
    stays(made, "s")


def test_only_what_is_torn_apart_by_programs_copies() -> None:
    """Launches that cost nothing: a program a wave. The first two parts are made in one, the third in another."""
    made = Made(x=64)
    made.op("a", "x")
    made.op("b", "x")
    made.concat("ab", "a b")
    made.op("d", "ab")
    made.concat("abd", "ab d")
    made.op("y", "abd", kind="output")
    kernels = made.kernels()
    cost = CostModel(launch_us=0.0, signal_us=50.0)
    programs = schedule(made.graph(), kernels, DEVICE, veus=3, cost=cost, copies=made.copies)
    assert len(programs) > 1
    assert {op.name for p in programs for op in p.graph.operators} == {"a", "b", "d", "abd", "y"}


@pytest.mark.parametrize("shares", [None, [1, 2]])
def test_graphs_that_share_a_device_keep_their_views_apart(shares: list[float] | None) -> None:
    made = joined()
    graphs = [with_prefix(made.graph(), prefix) for prefix in ("m0_", "m1_")]
    programs = schedule_together(graphs, made.kernels(), DEVICE, veus=4, shares=shares, copies=made.copies)
    assert sorted(op.name for p in programs for op in p.graph.operators) == sorted(
        prefix + name for prefix in ("m0_", "m1_") for name in "aby"
    )
    for program in programs:
        found = places(program.graph)
        assert all(name[:3] == base[:3] for name, (base, _) in found.items())


def random_made(rng: random.Random, size: int = 12) -> Made:
    """Any mixture of computing, concatenating, cutting and renaming, mostly at multiples of 64 bytes."""
    made = Made(x=256, z=512)
    for n in range(size):
        known = list(made.buffers)
        a, b = rng.choice(known[-5:]), rng.choice(known)
        nbytes = made.buffers[a].nbytes
        kind = rng.choice(["intermediate"] * 6 + ["output"])
        match rng.choice(["op", "op", "concat", "concat", "split", "slice"]):
            case "concat" if nbytes + made.buffers[b].nbytes <= 4096:
                made.concat(f"v{n}", f"{a} {b}", kind)
            case "split" if nbytes >= 128:
                first = 64 * rng.randint(1, nbytes // 64 - 1) if nbytes % 64 == 0 and nbytes > 64 else nbytes // 2
                made.split({f"v{n}": first, f"w{n}": nbytes - first}, a, kind)
            case "slice" if nbytes >= 128:
                start = rng.choice([0, 64, 32])
                made.slice(f"v{n}", a, start, nbytes - start)
            case _:
                made.op(f"v{n}", f"{a} {b}" if a != b else a, rng.choice([64, 128, 192, 96]), kind)
    read = {b for op in made.operators for b in op.inputs}
    for i, (name, buffer) in enumerate(list(made.buffers.items())):
        if i not in read and buffer.kind == "intermediate":
            made.buffers[name] = replace(buffer, kind="output")
    return made


def test_random_mixtures_are_proven_and_lose_copies() -> None:
    """The verifier says yes to each plan; and whatever an address is changed to, it says no."""
    gone = refused = 0
    for seed in range(120):
        rng = random.Random(seed)
        made = random_made(rng)
        graph, kernels = made.graph(), made.kernels()
        cost = rng.choice([CostModel(), CostModel(launch_us=0.0, signal_us=50.0), CostModel(signal_us=1.0)])
        programs = schedule(graph, kernels, DEVICE, veus=rng.randint(1, 5), cost=cost, copies=made.copies)
        gone += len(graph.operators) - sum(len(p.graph.operators) for p in programs)
        for k, program in enumerate(programs):
            for b, buffer in enumerate(program.graph.buffers):
                if buffer.place is None:
                    continue
                moved = replace(buffer, place=Place(buffer.place.base, buffer.place.offset + 64))
                buffers = (*program.graph.buffers[:b], moved, *program.graph.buffers[b + 1 :])
                broken = replace(program, graph=replace(program.graph, buffers=buffers))
                with pytest.raises(VerificationError):
                    verify_sequence(graph, (*programs[:k], broken, *programs[k + 1 :]), made.copies)
                refused += 1
    assert gone > 200
    assert refused > 150
