"""TVM's tensor intrinsics, which MetaSchedule imports too, imported in seconds."""

import contextlib
import inspect
import sys
from collections.abc import Iterator


def import_tensor_intrinsics() -> None:
    """Import what a `TuneContext` imports: by itself that takes half a minute on Python 3.11.

    Its 500 calls of `inspect.stack` read the source around each frame, and none of them looks at it.
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
    found, frame = [], sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        found.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None))
        frame = frame.f_back
    return found
