"""Choose while running (Astra, ASPLOS 2019): the first calls try plans of nearly equal predicted time.

Astra's enumerator is in `alternatives`: static knowledge leaves a few plans, of several policies and kernel choices,
whose predicted times are close. Its wirer is `Exploration`: real calls cycle through them, then the fastest is kept.
Every alternative is a verified plan of the same model, so results are right throughout.
"""

import pathlib
import statistics
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..device import DeviceSpec
from ..errors import RammerError
from ..tuning.log.lines import TuningLogWarning

if TYPE_CHECKING:
    from tvm import relax

    from ..compilation.record import Compilation

MIN_CALLS = 3
"""Least calls of an alternative. The first one finds cold caches, and counts only where it is the only one."""

Result = TypeVar("Result")


class Plan(Protocol):
    """One way to run a model: just compiled (`Alternative`), or read from a file (`saving.loaded`)."""

    label: str
    times_us: list[float]

    @property
    def device(self) -> DeviceSpec:
        """What it was compiled for."""
        ...

    @property
    def stock_calls(self) -> int:
        """How many calls were left to stock TVM."""
        ...

    @property
    def grows(self) -> bool:
        """Whether a loop of it has states whose sizes change from round to round."""
        ...

    @property
    def median_us(self) -> float:
        """Median time of a call."""
        ...

    @property
    def compilation(self) -> "Compilation":
        """What was decided."""
        ...

    @property
    def executable(self) -> "relax.VMExecutable":
        """TVM's executable."""
        ...

    @property
    def module(self) -> Any:
        """What a virtual machine loads."""
        ...

    @property
    def file(self) -> pathlib.Path | None:
        """The file that it was read from."""
        ...

    def cuda_source(self) -> str:
        """The generated CUDA text; empty on a CPU."""
        ...


@dataclass(slots=True)
class Alternative:
    """One way to run the model, just compiled.

    Parameters
    ----------
    label : str
        Its policy and its choice of kernels.
    compilation : Compilation
    executable : relax.VMExecutable
    times_us : list of float
        Of its calls so far.
    """

    label: str
    compilation: "Compilation"
    executable: "relax.VMExecutable"
    times_us: list[float] = field(default_factory=list)

    @property
    def device(self) -> DeviceSpec:
        """What it was compiled for."""
        return self.compilation.device

    @property
    def stock_calls(self) -> int:
        """How many calls were left to stock TVM."""
        return len(self.compilation.stock_calls)

    @property
    def grows(self) -> bool:
        """Whether a loop of it has states whose sizes change from round to round."""
        return self.compilation.grows

    @property
    def module(self) -> Any:
        """What a virtual machine loads: code in memory."""
        return self.executable.jit()

    @property
    def file(self) -> pathlib.Path | None:
        """None: it was read from no file."""
        return None

    def cuda_source(self) -> str:
        """The generated CUDA text; empty on a CPU."""
        return "\n".join(m.inspect_source("cuda") for m in _imports(self.executable.mod) if m.kind == "cuda")

    @property
    def median_us(self) -> float:
        """Median time of a call; infinite before the first."""
        counted = self.times_us[1:] or self.times_us
        return statistics.median(counted) if counted else float("inf")


class Exploration:
    """Spends calls on alternatives, one after another, and then stays with the fastest.

    Parameters
    ----------
    alternatives : sequence of Plan
        The best predicted first; at least one.
    calls : int
        How many calls to spend. Only so many alternatives are tried that each gets `MIN_CALLS` of them.
    finished : callable, optional
        Told of the end, once.
    """

    def __init__(
        self,
        alternatives: Sequence[Plan],
        calls: int,
        finished: Callable[["Exploration"], None] = lambda exploration: None,
    ) -> None:
        self.alternatives = tuple(alternatives[: max(1, calls // MIN_CALLS)])
        self.calls_left = calls if len(self.alternatives) > 1 else 0
        self._finished = finished
        self._lock = threading.Lock()
        self._begun = Counter[str]()

    @property
    def best(self) -> Plan:
        """The fastest so far; before all have been tried, the one that is predicted to be."""
        if len(self.alternatives) == 1:
            return self.alternatives[0]
        tried = all(a.times_us for a in self.alternatives)
        return min(self.alternatives, key=lambda a: a.median_us) if tried else self.alternatives[0]

    def call(self, run: Callable[[Plan], tuple[Result, float]]) -> Result:
        """Make one call by the alternative that has had the fewest.

        Parameters
        ----------
        run : callable
            Makes the call; returns its result and its time in microseconds.
        """
        if not self.calls_left:
            return run(self.best)[0]
        with self._lock:
            alternative = min(self.alternatives, key=lambda a: len(a.times_us) + self._begun[a.label])
            self._begun[alternative.label] += 1
        try:
            result, elapsed_us = run(alternative)
        finally:
            with self._lock:
                self._begun[alternative.label] -= 1
        with self._lock:
            alternative.times_us.append(elapsed_us)
            last = self.calls_left == 1
            self.calls_left = max(0, self.calls_left - 1)
        if last:
            self._finish()
        return result

    def _finish(self) -> None:
        """Tell of the end; that what was learnt cannot be kept is no reason to lose a result."""
        try:
            self._finished(self)
        except RammerError as error:
            warnings.warn(f"what the exploration found is not kept: {error}", TuningLogWarning, stacklevel=4)


def _imports(module: Any) -> list[Any]:
    return [module, *(m for child in module.imports for m in _imports(child))]
