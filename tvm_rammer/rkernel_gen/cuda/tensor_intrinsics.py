"""Imports TVM's tensor intrinsics, which MetaSchedule needs too, in a few seconds."""

import contextlib
import inspect
import sys
import types
from collections.abc import Iterator


def import_tensor_intrinsics() -> None:
    """Import the module that a `TuneContext` imports; a plain import takes half a minute on Python 3.11.

    The module calls `inspect.stack` 500 times, which reads the source around each frame. Nothing uses that source.
    """
    with _stack_without_source():
        import tvm.s_tir.tensor_intrin  # noqa: F401


@contextlib.contextmanager
def _stack_without_source() -> Iterator[None]:
    original = inspect.stack
    inspect.stack = _stack
    try:
        yield
    finally:
        inspect.stack = original


def _stack(context: int = 1) -> list[inspect.FrameInfo]:
    found: list[inspect.FrameInfo] = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        found.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None))
        frame = frame.f_back
    return found
