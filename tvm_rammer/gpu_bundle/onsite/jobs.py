"""Processes with time limits: a kernel that hangs must not hang the benchmark."""

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

_POLL_S, _KILL_S = 0.2, 20.0


def run_job(
    command: Sequence[str], limit_s: float, silence_s: float, on_event: Callable[[dict[str, Any]], None]
) -> str:
    """Run a process that prints JSON, an object a line.

    Parameters
    ----------
    command : sequence of str
    limit_s : float
        Time for all of it.
    silence_s : float
        Time between two lines.
    on_event : callable
        Takes each object as soon as it is printed.

    Returns
    -------
    str
        Empty if the process ended well; otherwise what became of it, with the end of what it said.
    """
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines: queue.Queue[str | None] = queue.Queue()
    errors: list[str] = []
    readers = [
        threading.Thread(target=_read, args=(process.stdout, lines.put, lambda: lines.put(None)), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, errors.append, lambda: None), daemon=True),
    ]
    for reader in readers:
        reader.start()
    end = time.monotonic() + limit_s
    heard = time.monotonic()
    while True:
        try:
            line = lines.get(timeout=_POLL_S)
        except queue.Empty:
            now = time.monotonic()
            if now > end or now - heard > silence_s:
                process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):  # the driver may hold on to it
                    process.wait(timeout=_KILL_S)
                late = f"{limit_s:.0f} s in all" if now > end else f"{silence_s:.0f} s without a word"
                return f"killed after {late}"
            continue
        if line is None:
            break
        heard = time.monotonic()
        if line.startswith("{"):
            on_event(json.loads(line))
    status = process.wait()
    for reader in readers:
        reader.join(timeout=1)
    return f"ended with status {status}: {''.join(errors)[-800:].strip()}" if status else ""


def _read(stream: IO[str] | None, take: Callable[[str], None], done: Callable[[], None]) -> None:
    if stream is not None:
        for line in stream:
            take(line)
    done()
