"""What loops cannot do: compile once more with all of them unrolled."""

from collections.abc import Callable
from typing import TypeVar

from .. import debug
from ..errors import LoopError

T = TypeVar("T")


def with_loops(compile_model: Callable[[bool], T], loops: bool = True) -> T:
    """Compile a model whose loops stay loops; and again without, where one of them cannot.

    Parameters
    ----------
    compile_model : callable
        Gets whether loops are to stay loops.
    loops : bool
        Whether to try that at all.
    """
    if loops:
        try:
            return compile_model(True)
        except LoopError as error:
            debug.say(1, f"all loops are unrolled: {error}")
    return compile_model(False)
