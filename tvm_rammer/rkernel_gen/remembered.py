"""The kernels of functions that this process has seen lately: models share functions, and are compiled again."""

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import tvm

from ..kernel import ScheduledKernel
from ..pass_context import pass_settings
from .tiling import Function

MAX_FUNCTIONS = 512
"""Functions whose kernels are kept; those that were not asked for the longest go first."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was made of a function.

    Parameters
    ----------
    kernels : tuple of ScheduledKernel
    dropped : Counter
        Kernels that were not kept, counted by reason.
    """

    kernels: tuple[ScheduledKernel, ...]
    dropped: Counter[str]


class Remembered:
    """What was made of functions, by all that it depends on. Safe for many threads."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[object, ...], Made] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, function: Function, make: Callable[[], Made]) -> Made:
        """What was made of a function, or what `make` makes of it now.

        Two functions are the same where their code is, names included: kernels have the names of their function's
        parameters in the code that is generated. What lowering makes of a kernel depends on the pass context.
        """
        code = hashlib.sha256(tvm.ir.save_json(function.func).encode()).digest()
        settings = pass_settings(tvm.transform.PassContext.current())
        key = (function.name, code, function.device, function.constants, function.repeated, settings)
        with self._lock:
            found = self._made.get(key)
            if found is not None:
                self._made.move_to_end(key)
                return found
        made = make()
        with self._lock:
            self._made[key] = made
            if len(self._made) > MAX_FUNCTIONS:
                self._made.popitem(last=False)
        return made
