"""What threads of a process do one after another: TVM's builders keep what is being built in the process."""

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_lock = threading.RLock()


def serial(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Let a function run in one thread at a time, and not beside another one that is serial; it may call such ones."""

    @wraps(function)
    def alone(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        with _lock:
            return function(*args, **kwargs)

    return alone


def _after_fork() -> None:
    """A thread that held the lock is not there any more."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
