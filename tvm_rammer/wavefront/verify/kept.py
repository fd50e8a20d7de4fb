"""Whether the slices that a vEU keeps over all steps are those of constants that its rTasks read, and lie apart."""

from itertools import pairwise

from ...device import DeviceSpec
from ...errors import VerificationError
from ...ir import SLICE_ALIGNMENT, RProgram, Run

Part = tuple[int, int, str]
"""The first byte of what a vEU keeps, the one past the last, and whose it is."""


def check_kept(program: RProgram, device: DeviceSpec | None) -> None:
    """Prove that kept slices are of constants, whole, apart from each other, and where the device has memory for them.

    That an rTask reads nothing of the constant but its slice is known of its kernel, as its footprints are; that all
    fits beside the rTasks' scratch is proven with the residency.

    Raises
    ------
    VerificationError
        The first rule found broken.
    """
    for v, lane in enumerate(program.lanes):
        parts: list[Part] = []
        for n, run in enumerate(lane):
            if isinstance(run, Run) and run.kept is not None:
                parts.append(_part(program, run, f"lane {v}, instruction {n}"))
        parts.sort()
        for (_, end, one), (start, _, other) in pairwise(parts):
            if start < end:
                raise _error(program, f"{one} and {other} keep their slices in the same bytes, at {start}")
    if program.kept_bytes and device is not None and device.kind == "cpu":
        raise _error(program, f"vEUs keep {program.kept_bytes} bytes, and {device.name} has no memory for that")


def _part(program: RProgram, run: Run, where: str) -> Part:
    op, slices = program.graph.operators[run.operator], program.kernels[run.operator].slices
    if slices is None:
        raise _error(program, f"{where}: {op.name!r} has no slices that could be kept")
    number = slices.parameter
    if not 0 <= number < len(op.inputs) or program.graph.buffers[op.inputs[number]].kind != "constant":
        raise _error(program, f"{where}: parameter {number} of {op.name!r} is no constant, and is kept")
    if op.first and op.first[number] != op.inputs[number]:
        raise _error(program, f"{where}: {op.name!r} reads another parameter {number} in step 0, and keeps one")
    if run.count > 1 and run.step != 1:
        raise _error(program, f"{where}: slices of every {run.step}-th rTask of {op.name!r} are no neighbours")
    if run.kept is None or run.kept < 0 or run.kept % SLICE_ALIGNMENT or slices.nbytes % SLICE_ALIGNMENT:
        raise _error(
            program,
            f"{where}: slices of {slices.nbytes} bytes are kept at byte {run.kept}; both must be multiples of "
            f"{SLICE_ALIGNMENT}",
        )
    return run.kept, run.kept + run.count * slices.nbytes, where


def _error(program: RProgram, message: str) -> VerificationError:
    return VerificationError(f"program {program.name!r}: {message}")
