"""With loops, or with all of them unrolled: the former wherever they can stay and are worth a launch."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from .. import debug
from ..device import DeviceSpec
from ..errors import LongLoopError, LoopError

T = TypeVar("T")

FEW_STEPS = 64
"""By the predictions for an H200 (`./scripts/run stacked_layers --bidirectional`): unrolled, several loops of 16 steps
in all take 0.70 to 0.82 of the time, of 32 to 60 steps 0.84 to 1.05, of 100 to 200 steps 0.94."""


def with_loops(compile_model: Callable[[bool], T], possible: bool = True) -> T:
    """Compile a model whose loops stay loops wherever they can, or are all unrolled.

    Parameters
    ----------
    compile_model : callable
        Gets whether loops are to stay loops: where they cannot, or should not (`check_loops`), it raises a `LoopError`.
    possible : bool
        Whether they may.

    Raises
    ------
    LongLoopError
        They are too long to be unrolled, and cannot stay loops.
    """
    if not possible:
        return compile_model(False)
    try:
        return compile_model(True)
    except LoopError as error:
        debug.say(1, f"all loops are unrolled: {error}")
        reason = error
    try:
        return compile_model(False)
    except LongLoopError as error:
        raise LongLoopError(f"{error}; and it cannot stay a loop: {reason}") from error


def check_loops(steps: Sequence[int], device: DeviceSpec) -> None:
    """Refuse loops that are faster unrolled: several short ones, on a GPU.

    Each is a launch of its own there, after which another set of weights is fetched; stacked layers are one loop
    (`Request.joins_loops`). Of `FEW_STEPS` steps or more the difference is small, and planning them takes minutes.

    Parameters
    ----------
    steps : sequence of int
        Of each loop of a model.
    device : DeviceSpec

    Raises
    ------
    LoopError
    """
    if device.kind != "cpu" and len(steps) > 1 and sum(steps) < FEW_STEPS:
        raise LoopError(f"{len(steps)} loops have {sum(steps)} steps together, fewer than {FEW_STEPS}")
