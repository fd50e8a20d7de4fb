"""Shows progress: on a terminal one line that changes and one for each function; elsewhere these are logged."""

import time
from collections.abc import Callable
from typing import TextIO

from ... import debug
from ..trial import Outcome, Trial


class Progress:
    """Counts trials.

    Parameters
    ----------
    stream : text file
        Standard error.
    total, done : int
        Trials in all, and those that the log had at the start.
    quotas : dict of str to int
        Trials of each function, by its key.
    tried : dict of str to int
        Those that the log had at the start.
    """

    def __init__(
        self,
        stream: TextIO,
        quotas: dict[str, int],
        tried: dict[str, int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._clock, self._started = stream, clock, clock()
        self._left = {key: max(0, quota - tried.get(key, 0)) for key, quota in quotas.items()}
        self.total = sum(quotas.values())
        self.done = self.total - sum(self._left.values())
        self._before = self.done
        self.failed = 0
        self._failures: dict[str, int] = {}
        self._best: dict[str, tuple[float, str]] = {}

    def known(self, trial: Trial, outcome: Outcome) -> None:
        """Take note of a trial of an earlier run."""
        self._note_best(trial, outcome)

    def add(self, trial: Trial, outcome: Outcome) -> None:
        """Count a trial."""
        key = trial.task.function.key
        self.done += 1
        self._left[key] -= 1
        self._note_best(trial, outcome)
        if outcome.error:
            self.failed += 1
            self._failures[key] = self._failures.get(key, 0) + 1
            self._line(f"{trial.kernel.spec.name}: {outcome.error}")
        if self._stream.isatty():
            text = f"trial {self.done}/{self.total}, {self._time_left()} left: {self._state(trial)}"
            self._stream.write(f"\r\033[K{text}")
            self._stream.flush()
        if self._left[key] <= 0:
            self._line(f"{self.done}/{self.total}, {self._time_left()} left: {self._state(trial)}")

    def skip(self, key: str, count: int) -> None:
        """Give up some trials of a function: it has no more tilings that can be built."""
        self.total -= count
        self._left[key] -= count

    def _note_best(self, trial: Trial, outcome: Outcome) -> None:
        best = self._best.get(trial.task.function.key)
        if outcome.operator_us is not None and (best is None or outcome.operator_us < best[0]):
            self._best[trial.task.function.key] = (outcome.operator_us, trial.tiling.label)

    def _state(self, trial: Trial) -> str:
        name, predicted = trial.task.function.name, trial.task.predicted_us
        best = self._best.get(trial.task.function.key)
        failed = self._failures.get(trial.task.function.key, 0)
        text = f"{name}: best {best[0]:.1f} us ({best[1]})" if best else f"{name}: nothing worked"
        return f"{text}, best predicted {predicted:.1f} us" + (f", {failed} failed" if failed else "")

    def _time_left(self) -> str:
        made = self.done - self._before
        seconds = round((self._clock() - self._started) / max(1, made) * (self.total - self.done))
        return f"{seconds // 60}:{seconds % 60:02}"

    def _line(self, text: str) -> None:
        if not self._stream.isatty():
            debug.say(1, text)
            return
        self._stream.write(f"\r\033[K{text}\n")
        self._stream.flush()
