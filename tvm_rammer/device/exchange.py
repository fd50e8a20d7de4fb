"""What two cores need to tell each other something: from a signal to who polls for it, and to who sleeps."""

import importlib.resources
import os
import platform
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from .processors import processor_text

if TYPE_CHECKING:
    import tvm

ROUNDS, BLOCK = 16_000, 16
"""Signals there and back, and how many lie between two notes of the time (`exchange_words`): the fastest of such
blocks counts, since other processes only make them slower."""
START_S = 10.0
"""How long a side waits for the other to start."""
WAKES = 40
"""How often a thread is woken. A tenth of the times are shorter than the one that counts: where other processes run, a
thread waits for them, too."""


def signal_us(words: Callable[..., object], processors: tuple[int, int]) -> float:
    """Microseconds from a store on one core until a thread that polls on another has seen it.

    Parameters
    ----------
    words : callable
        `exchange_words`, compiled.
    processors : (int, int)
        Numbers of the two processors.
    """
    notes = _both((words, 0), (words, 1), ROUNDS, processors)[: ROUNDS // BLOCK]
    return float(np.diff(notes).min()) / (2 * BLOCK) / 1e3


def wake_us(sleep: Callable[..., object], wake: Callable[..., object], processors: tuple[int, int]) -> float:
    """Microseconds from the call that wakes a thread until it runs on its core.

    Parameters
    ----------
    sleep, wake : callable
        `exchange_sleep` and `exchange_wake`, compiled.
    processors : (int, int)
        Numbers of the two processors.
    """
    reader, writer = os.pipe()
    try:
        return float(np.quantile(_both((wake, writer), (sleep, reader), WAKES, processors), 0.1)) / 1e3
    finally:
        os.close(reader)
        os.close(writer)


def _both(
    one: tuple[Callable[..., object], int],
    other: tuple[Callable[..., object], int],
    rounds: int,
    processors: tuple[int, int],
) -> np.ndarray:
    """Run two sides on threads of their own, each on its processor; what the first one notes, in nanoseconds.

    Raises
    ------
    OSError, RuntimeError
        A thread cannot be started, or not be bound to its processor: neither side begins then, for it would wait for
        the other.
    """
    import tvm

    word = tvm.runtime.tensor(np.zeros(1, "int32"))
    notes = [tvm.runtime.tensor(np.zeros(rounds, "int64")) for _ in (one, other)]

    ready = threading.Barrier(2)

    def run(side: int) -> None:
        try:
            os.sched_setaffinity(0, {processors[side]})  # of this thread, which ends here
        except OSError:
            ready.abort()
            raise
        ready.wait(START_S)
        function, number = (one, other)[side]
        function(word, notes[side], number, rounds)

    with ThreadPoolExecutor(2) as threads:
        sides = [threads.submit(run, side) for side in (0, 1)]
    for side in sides:
        side.result()
    found: np.ndarray = notes[0].numpy()
    return found


def exchanges() -> "dict[str, tvm.tirx.PrimFunc]":
    """The functions to be compiled, by name: `exchange_words`, `exchange_sleep`, `exchange_wake`.

    Each has four parameters: a word that both sides know, notes of nanoseconds, a number and the number of rounds.
    """
    text = importlib.resources.files(__package__).joinpath("exchange.ll").read_text(encoding="utf-8")
    text += processor_text(platform.machine())
    return {name: _function(name, text) for name in ("exchange_words", "exchange_sleep", "exchange_wake")}


def _function(name: str, text: str) -> "tvm.tirx.PrimFunc":
    from tvm import ir, tirx
    from tvm.script import tirx as T

    number, rounds, count = (tirx.Var(n, "int32") for n in ("number", "rounds", "count"))
    word, notes = tirx.decl_buffer((1,), "int32", "word"), tirx.decl_buffer((count,), "int64", "notes")
    called = tirx.Evaluate(T.call_extern("int32", name, word.data, notes.data, number, rounds))
    body: Any = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", ir.StringImm(text), called)
    return tirx.PrimFunc([word, notes, number, rounds], body)
