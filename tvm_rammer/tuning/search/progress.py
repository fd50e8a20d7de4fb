"""Shows progress: on a terminal a bar, and a line for each function; elsewhere these lines are logged."""

from types import TracebackType
from typing import Any, TextIO

from tqdm import tqdm

from ... import debug
from ..trial import Outcome, Trial


class Progress:
    """Counts trials. A context manager, which ends the bar.

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

    def __init__(self, stream: TextIO, quotas: dict[str, int], tried: dict[str, int]) -> None:
        self._left = {key: max(0, quota - tried.get(key, 0)) for key, quota in quotas.items()}
        self.total = sum(quotas.values())
        self.done = self.total - sum(self._left.values())
        self.failed = 0
        self._failures: dict[str, int] = {}
        self._best: dict[str, tuple[float, str]] = {}
        self._bar: Any = tqdm(
            total=self.total,
            initial=self.done,
            file=stream,
            disable=None,
            leave=False,
            position=0,
            dynamic_ncols=True,
            unit="trial",
        )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

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
        self._bar.set_postfix_str(self._state(trial), refresh=False)
        self._bar.update()
        if self._left[key] <= 0:
            self._line(f"{self.done}/{self.total}: {self._state(trial)}")

    def skip(self, key: str, count: int) -> None:
        """Give up some trials of a function: it has no more tilings that can be built."""
        self.total -= count
        self._left[key] -= count
        self._bar.total = self.total
        self._bar.refresh()

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

    def _line(self, text: str) -> None:
        if self._bar.disable:
            debug.say(1, text)
        else:
            self._bar.write(text, file=self._bar.fp)
