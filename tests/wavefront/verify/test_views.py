"""Views that cannot be, and copies that nothing replaces: the verifier says no."""

from dataclasses import replace

import pytest

from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import Move, Place, RProgram
from tvm_rammer.wavefront import schedule, verify, verify_sequence

from ..copying_graphs import joined
from ..graphs import DEVICE


def test_a_copy_that_nothing_replaces_is_missed() -> None:
    made = joined()
    graph = made.graph()
    programs = schedule(graph, made.kernels(), DEVICE, veus=2, copies=made.copies)
    with pytest.raises(VerificationError, match="operator 'c' of graph 'g' is in none of its programs"):
        verify_sequence(graph, programs)
    apart = {"f_c": (Move(0, 0, 0, 256, 256), Move(1, 0, 0, 0, 256))}
    with pytest.raises(VerificationError, match="'c' of graph 'g' is in no program, but"):
        verify_sequence(graph, programs, apart)


def joined_program() -> RProgram:
    made = joined()
    (program,) = schedule(made.graph(), made.kernels(), DEVICE, veus=2, copies=made.copies)
    return program


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("b", {"place": Place(3, 224)}, "view 'b' at offset 224: not a multiple of 64"),
        ("b", {"place": Place(3, 320)}, "view 'b' at bytes 320 to 576 of int8 is no part of 'c', which has 512 bytes"),
        ("b", {"place": Place(3, -64)}, "view 'b' at bytes -64 to 192 of int8 is no part of 'c'"),
        ("b", {"place": Place(1, 0)}, "view 'b' is a part of buffer 1, which owns no memory"),
        ("b", {"place": Place(9, 0)}, "view 'b' is a part of buffer 9, which owns no memory"),
        ("b", {"place": None}, "buffer 'b' is of kind view and has the place None"),
        ("b", {"kind": "intermediate"}, "buffer 'b' is of kind intermediate and has the place"),
        ("b", {"dtype": "uint8"}, "view 'b' at bytes 256 to 512 of uint8 is no part of 'c'"),
        ("b", {"place": Place(3, 192)}, "buffer 'c' is written by 'a' and by 'b' at byte 192"),
        ("b", {"place": Place(0, 0), "shape": (64,)}, "operator 'b' writes 'x', which is of kind input"),
        ("a", {"shape": (128,)}, "operator 'y' reads 'c', which no operator writes at byte 128"),
        ("c", {"kind": "output", "shape": (576,)}, "operator 'y' reads 'c', which no operator writes at byte 512"),
    ],
)
def test_views_that_cannot_be_are_refused(name: str, changes: dict[str, object], message: str) -> None:
    program = joined_program()
    assert [b.name for b in program.graph.buffers] == ["x", "a", "b", "c", "y"]
    buffers = tuple(replace(b, **changes) if b.name == name else b for b in program.graph.buffers)
    with pytest.raises(VerificationError, match=message):
        verify(replace(program, graph=replace(program.graph, buffers=buffers)))
