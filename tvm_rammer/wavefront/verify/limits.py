"""Whether every number of a plan fits into the 32 bits that generated code counts with."""

from collections.abc import Iterator

from ...errors import VerificationError
from ...ir import ITEM_BYTES, RProgram, Run

_INT32 = 2**31
_ROW_WORDS = 8
"""int32 words of an instruction in the tables."""

_COUNTER_WORDS = 32
"""A counter lies in a cache line of its own."""


def check_limits(program: RProgram) -> None:
    """Prove that no index of a lane, a row, a counter, an rTask or an element leaves 32 bits.

    Raises
    ------
    VerificationError
        One does.
    """
    for number, what in _indices(program):
        if number > _INT32:
            raise VerificationError(
                f"program {program.name!r}: {what}: more than {_INT32}, and generated code counts with 32 bits; divide "
                "the model or its batch"
            )


def _indices(program: RProgram) -> Iterator[tuple[int, str]]:
    """Each range of indices as its length, and what it counts."""
    runs = sum(isinstance(i, Run) for _, _, i in program.instructions())
    rows = sum(map(len, program.lanes)) + runs  # a CPU's tables hold the runs twice: all of them in one lane, too
    yield len(program.lanes) + 2, f"{len(program.lanes)} lanes"
    yield rows * _ROW_WORDS, f"{rows} instructions of {_ROW_WORDS} words"
    yield (program.num_events + 3) * _COUNTER_WORDS, f"{program.num_events} events, each with a cache line"
    for op, kernel in zip(program.graph.operators, program.kernels, strict=True):
        yield kernel.num_rtasks, f"{kernel.num_rtasks} rTasks of {op.name!r}"
    for b, buffer in enumerate(program.graph.buffers):
        owner, start = (b, 0) if buffer.place is None else (buffer.place.base, buffer.place.offset)
        end = (program.offsets.get(owner, 0) + start + buffer.nbytes) // ITEM_BYTES[buffer.dtype]
        yield end, f"buffer {buffer.name!r} ends at element {end} of its segment"
