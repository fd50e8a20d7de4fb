from dataclasses import replace

import pytest
from hypothesis import given, settings

from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import ALIGNMENT, RProgram
from tvm_rammer.wavefront import verify

from ..graphs import SYNC_COSTS, plan, random_plans

CHAIN = {"a": "", "b": "a", "c": "b", "d": "c", "e": "d"}


def offsets(program: RProgram) -> dict[str, int]:
    return {program.graph.buffers[b].name: offset for b, offset in program.offsets.items()}


@pytest.mark.parametrize("rtasks", [1, 4])
def test_a_chain_needs_two_places(rtasks: int) -> None:
    (program,) = plan(CHAIN, veus=2, cost=SYNC_COSTS, **dict.fromkeys(CHAIN, (rtasks, 1.0)))
    assert offsets(program) == {"a.out": 0, "b.out": 512, "c.out": 0, "d.out": 512}
    assert program.workspace_bytes == 1024


def test_outputs_lie_outside_the_workspace() -> None:
    (program,) = plan({"a": "", "b": "a"}, veus=1)
    assert offsets(program) == {"a.out": 0}


def test_buffers_alive_together_lie_apart() -> None:
    (program,) = plan({"a": "", "b": "", "c": "a b"}, veus=1)
    assert program.workspace_bytes == 1024


def test_nothing_is_reused_without_an_order() -> None:
    # Two chains side by side on two vEUs: c begins when a is dead only as seen by its own lane.
    reads = {"a": "", "b": "", "c": "a", "d": "b", "e": "c", "f": "d", "g": "e", "h": "f"}
    (program,) = plan(reads, veus=2, cost=SYNC_COSTS)
    assert program.waits() == 0
    found = offsets(program)
    assert found["e.out"] == found["a.out"]
    assert found["f.out"] == found["b.out"]
    assert program.workspace_bytes == 4 * 512


def test_an_operator_that_ends_with_others_is_known_to_be_done() -> None:
    # d waits for c alone, but on each lane of c its rTasks follow those of b, the last reader of a.
    reads = {"a": "", "b": "a", "c": "a", "d": "c", "e": "d b"}
    (program,) = plan(reads, veus=2, cost=SYNC_COSTS, **dict.fromkeys(reads, (2, 1.0)))
    assert offsets(program)["d.out"] == offsets(program)["a.out"]


def test_the_smallest_gap_that_fits_is_taken() -> None:
    # When e is written, a (1024) and c (256) are dead while b and d live on: e fits in the memory of c.
    reads = {"a": "", "b": "", "c": "", "d": "", "k": "a c", "e": "k", "f": "b d e k"}
    nbytes = {"a": 1024, "b": 128, "c": 256, "d": 128, "e": 200, "k": 128}
    (program,) = plan(reads, veus=1, nbytes=nbytes)
    found = offsets(program)
    assert found["c.out"] == 1024 + 128
    assert found["e.out"] == found["c.out"]


def test_moving_any_buffer_onto_a_living_one_is_refused() -> None:
    (program,) = plan(CHAIN, veus=2, cost=SYNC_COSTS, **dict.fromkeys(CHAIN, (4, 1.0)))
    names = {buffer.name: b for b, buffer in enumerate(program.graph.buffers)}
    for name, onto, writer in (("b.out", 0, "b"), ("c.out", 512, "c"), ("d.out", 128, "d")):
        moved = replace(program, offsets=program.offsets | {names[name]: onto}, workspace_bytes=2048)
        with pytest.raises(VerificationError, match=f"share memory, but '{writer}' writes the second"):
            verify(moved)


@pytest.mark.parametrize("older, newer", [(0, 512), (512, 0), (512, 512), (256, 512), (512, 256)])
def test_any_overlap_of_buffers_alive_together_is_refused(older: int, newer: int) -> None:
    # c reads both; a fourth buffer that lies there earlier must not hide them from each other.
    reads = {"z": "", "y": "z", "a": "y", "b": "y", "c": "a b"}
    nbytes = {"z": 2048, "y": 128, "a": 1024, "b": 1024}
    (program,) = plan(reads, veus=2, cost=SYNC_COSTS, nbytes=nbytes)
    names = {buffer.name: b for b, buffer in enumerate(program.graph.buffers)}
    apart = {"z.out": 0, "y.out": 2048, "a.out": 0, "b.out": 1024}
    together = apart | {"a.out": older, "b.out": newer}
    for chosen in (apart, together):
        moved = replace(program, offsets={names[n]: at for n, at in chosen.items()}, workspace_bytes=4096)
        if chosen is apart:
            verify(moved)
        else:
            with pytest.raises(VerificationError, match=r"buffers '[ab].out' and '[ab].out' share memory"):
                verify(moved)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(random_plans())
def test_offsets_are_aligned_and_within_the_sum(programs: tuple[RProgram, ...]) -> None:
    for program in programs:
        verify(program)
        sizes = [-(-program.graph.buffers[b].nbytes // ALIGNMENT) * ALIGNMENT for b in program.offsets]
        assert max(sizes, default=0) <= program.workspace_bytes <= sum(sizes)
