"""Which tilings are tried next: first the best by the analytical cost model of the rules, then by a learned one.

The cost model is MetaSchedule's: boosted trees over its 164 features of each store of the scheduled function. It reads
loops built by hand as well as schedules (some 5 ms a kernel), so no features of our own are needed. One model learns
from all functions; each function's times count relative to its best.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import tvm
from tvm import s_tir

from ...compilation.target import tvm_target
from ...rkernel_gen.construct import build
from ...rkernel_gen.cuda.tensor_intrinsics import import_tensor_intrinsics
from ...rkernel_gen.measured import code_hash
from ...rkernel_gen.tiling import Tiling
from ..tasks import Task
from ..trial import Outcome, Trial

EXPLORE = 0.2
"""Share of the trials that are drawn at random."""

POOL = 64
"""Kernels of a function that the cost model ranks at once."""


class LearnedCostModel:
    """Predicts kernels that were not measured from the times of those that were."""

    def __init__(self) -> None:
        from tvm.s_tir.meta_schedule.cost_model import XGBModel

        self._model = XGBModel(num_warmup_samples=1, early_stopping_rounds=20)
        self._functions: set[str] = set()

    def has_times_of(self, task: Task) -> bool:
        """Whether it was trained on times of this function."""
        return task.function.key in self._functions

    def update(self, task: Task, trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> None:
        """Train on the times of some kernels of one function; a failure counts as very slow."""
        from tvm.s_tir.meta_schedule.runner import RunnerResult

        results = [RunnerResult([us / 1e6 for us in o.run_us] or None, o.error or None) for o in outcomes]
        self._model.update(self._context(task), [_candidate(t) for t in trials], results)
        if any(o.run_us for o in outcomes):
            self._functions.add(task.function.key)

    def predict(self, task: Task, trials: Sequence[Trial]) -> list[float]:
        """For each kernel, roughly the best measured time over its own: higher is faster."""
        return [float(s) for s in self._model.predict(self._context(task), [_candidate(t) for t in trials])]

    @staticmethod
    def _context(task: Task) -> object:
        from tvm.s_tir.meta_schedule import TuneContext

        import_tensor_intrinsics()
        target = tvm_target(task.function.device)
        return TuneContext(task.function.func, target=target, num_threads=1)


def _candidate(trial: Trial) -> object:
    from tvm.s_tir.meta_schedule.arg_info import ArgInfo
    from tvm.s_tir.meta_schedule.search_strategy import MeasureCandidate

    func = trial.kernel.func.with_attr("global_symbol", "main")
    return MeasureCandidate(s_tir.Schedule(tvm.IRModule({"main": func})), ArgInfo.from_prim_func(func))


class Search:
    """The trials of one function.

    Parameters
    ----------
    task : Task
    seed : int
        With equal seeds, logs and times, equal tilings are tried.
    """

    def __init__(self, task: Task, seed: int) -> None:
        self.task = task
        self._random = np.random.default_rng([seed, int(task.function.key.split("-")[0], 16)])
        self._untried = list(task.space)
        self._codes: set[str] = set()
        self._discarded: set[Tiling] = set()

    def restore(self, tried: dict[Tiling, tuple[str, Outcome]]) -> tuple[list[Trial], list[Outcome]]:
        """Restore the trials of a log, as far as the rules still generate the same code."""
        trials, outcomes = [], []
        for tiling in [t for t in self._untried if t in tried]:
            code, outcome = tried[tiling]
            kernel = build(self.task.function, tiling)
            if kernel is not None and code_hash(kernel) == code:
                self._untried.remove(tiling)
                self._codes.add(code)
                trials.append(Trial(self.task, tiling, kernel))
                outcomes.append(outcome)
        return trials, outcomes

    def propose(self, count: int, model: LearnedCostModel) -> list[Trial]:
        """Choose the next tilings, and remove them: a part at random, the rest half from the best of each class.

        Classes are as in `construct.choose`, which selects kernels with different numbers of rTasks.
        """
        trained = model.has_times_of(self.task)
        ranked = self._ranked(model) if trained else self._untried
        explored = round(EXPLORE * count) if trained else 0
        chosen = self._best_of_classes(ranked, (count - explored) // 2)
        chosen += self._first(ranked, count - explored - len(chosen))
        chosen += self._first(self._shuffled(self._untried), count - len(chosen))
        self._discarded |= {t.tiling for t in chosen}
        self._untried = [t for t in self._untried if t not in self._discarded]
        return chosen

    def _best_of_classes(self, ranked: Sequence[Tiling], count: int) -> list[Trial]:
        """Of tilings, best first, the best one of each class."""
        found: dict[int, Trial] = {}
        for tiling in ranked:
            size_class = math.frexp(tiling.num_rtasks)[1]
            if len(found) < count and size_class not in found and (trial := self._take(tiling)):
                found[size_class] = trial
        return list(found.values())

    def _first(self, tilings: Sequence[Tiling], count: int) -> list[Trial]:
        return list(itertools.islice(filter(None, map(self._take, tilings)), count))

    def _ranked(self, model: LearnedCostModel) -> list[Tiling]:
        """A pool, best first: three quarters of it the best by the analytical cost model, the rest drawn at random."""
        likely = self._untried[: 3 * POOL // 4]
        drawn = self._shuffled(self._untried[3 * POOL // 4 :])[: POOL - len(likely)]
        pool = [trial for tiling in (*likely, *drawn) if (trial := self._build(tiling))]
        scores = model.predict(self.task, pool) if pool else []
        return [pool[i].tiling for i in sorted(range(len(pool)), key=lambda i: -scores[i])]

    def _take(self, tiling: Tiling) -> Trial | None:
        trial = self._build(tiling)
        if trial:
            self._codes.add(code_hash(trial.kernel))
        return trial

    def _build(self, tiling: Tiling) -> Trial | None:
        """None also where this tiling, or another one, has given the same code already."""
        kernel = build(self.task.function, tiling)
        if kernel is None or code_hash(kernel) in self._codes:
            self._discarded.add(tiling)
            return None
        return Trial(self.task, tiling, kernel)

    def _shuffled(self, tilings: Sequence[Tiling]) -> list[Tiling]:
        return [tilings[i] for i in self._random.permutation(len(tilings))]
