"""With loops, or with all of them unrolled: one way is tried first, and the other where that one fails."""

from collections.abc import Callable
from typing import TypeVar

from .. import debug
from ..device import DeviceSpec
from ..errors import LongLoopError, LoopError

T = TypeVar("T")


def with_loops(compile_model: Callable[[bool, int | None], T], device: DeviceSpec, possible: bool = True) -> T:
    """Compile a model whose loops stay loops, or are unrolled.

    On a CPU loops stay wherever they can. On a GPU a single loop stays; stacked layers are one (`Request.joins_loops`).
    Several loops would run one after another there, and unrolled they run side by side: so they are unrolled, unless
    they are too long for it.

    Parameters
    ----------
    compile_model : callable
        Gets whether loops are to stay loops, and how many there may be then: with more it raises a `LoopError`.
    device : DeviceSpec
    possible : bool
        Whether they may.

    Raises
    ------
    LongLoopError
        They are too long to be unrolled, and cannot stay loops.
    """
    if not possible:
        return compile_model(False, None)
    try:
        return compile_model(True, None if device.kind == "cpu" else 1)
    except LoopError as error:
        debug.say(1, f"all loops are unrolled: {error}")
    try:
        return compile_model(False, None)
    except LongLoopError as long:
        if device.kind == "cpu":
            raise
        try:
            return compile_model(True, None)
        except LoopError as error:
            raise LongLoopError(f"{long}; and it cannot stay a loop: {error}") from error
