"""What a command is about: a line on a terminal that changes and goes away, a log entry elsewhere."""

import contextlib
import sys
from typing import Any

from .. import debug

_bar: Any = None
"""The bar of tqdm's that shows the line, while one stands on the terminal."""


def progress(message: str) -> None:
    """Say what happens next."""
    global _bar
    if not sys.stderr.isatty():
        debug.say(1, message)
        return
    with contextlib.suppress(OSError, ValueError):
        if _bar is None:
            from tqdm import tqdm

            _bar = tqdm(bar_format="{desc}", file=sys.stderr, leave=False, position=0, dynamic_ncols=True)
        _bar.set_description_str(message)


def end_progress() -> None:
    """Take the line away, so that what comes next begins one of its own."""
    global _bar
    bar, _bar = _bar, None
    if bar is not None:
        with contextlib.suppress(OSError, ValueError):
            bar.close()
