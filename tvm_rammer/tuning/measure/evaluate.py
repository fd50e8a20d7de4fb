"""What runs beside a kernel: its arguments, the check of its result, the clock. Used by MetaSchedule's runners.

A runner passes nothing on but the descriptions of a kernel's arguments, so the first of these names a case: a tensor
whose extent is the case's number. What the number stands for lies in a folder that tuner and runner share.
"""

import math
import pathlib
import pickle
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tvm

from ...kernel import Pack
from ...runtime.pool import set_workers

TOLERANCE = {"float16": 2e-2, "float32": 2e-4, "float64": 1e-9}
"""Largest error over the largest magnitude of the reference, by type; integers must be equal."""

MIN_REPEAT_S, TOTAL_S, MAX_REPEATS = 0.01, 0.1, 7
"""Least time of one measurement; time of all measurements of a kernel, about; their greatest number (least: 3)."""

SEED = 20


@dataclass(frozen=True, slots=True)
class Case:
    """What a kernel is run on, and what must come out.

    Parameters
    ----------
    shapes : tuple of shape
    dtypes : tuple of str
        Of the function's parameters, inputs before outputs.
    num_inputs : int
    packs : mapping of int to Pack
        For the constants that the kernel wants in another layout.
    num_rtasks : int
    units : int
        Workers that the times are meant for.
    reference : str
        File of the right outputs (`numpy.savez`).
    """

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    num_inputs: int
    packs: Mapping[int, Pack]
    num_rtasks: int
    units: int
    reference: str

    def save(self, folder: pathlib.Path, number: int) -> None:
        """Write it where `load` finds it."""
        (folder / f"{number}.case").write_bytes(pickle.dumps(self))

    @staticmethod
    def load(folder: pathlib.Path, number: int) -> "Case":
        """Read it back."""
        case: Case = pickle.loads((folder / f"{number}.case").read_bytes())
        return case

    def arrays(self) -> list[np.ndarray]:
        """The kernel's arguments; outputs hold what no kernel would write."""
        arrays = tuning_inputs(self.shapes[: self.num_inputs], self.dtypes)
        packed = [self.packs[i].apply(a) if i in self.packs else a for i, a in enumerate(arrays)]
        return packed + poisoned_outputs(self.shapes[self.num_inputs :], self.dtypes[self.num_inputs :])


def tuning_inputs(shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str]) -> list[np.ndarray]:
    """Inputs of a function, always the same: normal floats; integers 0 and 1, which are valid indices of any tensor.

    Each input depends on its position and its own shape and type alone.
    """
    made = []
    for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=False)):
        rng = np.random.default_rng([SEED, i])
        values = rng.standard_normal(shape) if dtype.startswith("float") else rng.integers(0, 2, shape)
        made.append(np.asarray(values).astype(dtype))
    return made


def poisoned_outputs(shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str]) -> list[np.ndarray]:
    """Arrays of NaN, or of the largest value where there is none."""
    arrays = [np.empty(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    for array in arrays:
        array.reshape(-1).view(np.uint8).fill(0xFF)
    return arrays


def difference(got: np.ndarray, want: np.ndarray) -> str:
    """How a result differs from the right one; empty where it does not."""
    kind = want.dtype.name
    if kind not in TOLERANCE:
        return "" if np.array_equal(got, want) else f"{np.count_nonzero(got != want)} values differ"
    finite = np.isfinite(want)
    if not (np.array_equal(got[~finite], want[~finite], equal_nan=True) and np.isfinite(got[finite]).all()):
        return "values are not finite"
    right = want[finite].astype(np.float64)
    error, scale = np.abs(got[finite] - right).max(initial=0.0), np.abs(right).max(initial=0.0)
    return "" if error <= scale * TOLERANCE[kind] else f"off by {error:.1e} where the largest value is {scale:.1e}"


def allocate(folder: pathlib.Path, device: Any, args_info: Sequence[Any], repeats: int) -> list[list[Any]]:
    """A runner's `f_alloc_argument`, once `folder` is bound: the case, then the kernel's arguments."""
    case = Case.load(folder, int(args_info[0][2][0]))
    return [[case, *(tvm.runtime.tensor(a, device=device) for a in case.arrays())]]


def allocate_remote(folder: pathlib.Path, _session: Any, device: Any, args_info: Any, repeats: int) -> list[list[Any]]:
    """The same for a runner of another machine."""
    return allocate(folder, device, args_info, repeats)


def evaluate(module: Any, device: Any, _config: Any, arguments: list[list[Any]]) -> list[float]:
    """A runner's `f_run_evaluator`: checks the result, then takes the times.

    Returns
    -------
    list of float
        In seconds: the operator on all workers, some times; then, as many times, one rTask of it.

    Raises
    ------
    ValueError
        The result is wrong, or there are more or fewer workers than the times are meant for.
    """
    return _evaluate(module, device, arguments[0], set_workers, tvm.get_global_func("runtime.NumThreads"))


def evaluate_remote(session: Any, module: Any, device: Any, _config: Any, arguments: list[list[Any]]) -> list[float]:
    """The same for a runner of another machine."""
    use_workers = partial(session.get_function("runtime.config_threadpool"), 1)
    return _evaluate(module, device, arguments[0], use_workers, session.get_function("runtime.NumThreads"))


def _evaluate(
    module: Any,
    device: Any,
    arguments: list[Any],
    use_workers: Callable[[int], Any],
    num_workers: Callable[[], int],
) -> list[float]:
    case, *tensors = arguments
    use_workers(case.units)
    workers = num_workers()
    if workers != case.units:
        raise ValueError(f"there are {workers} workers, not {case.units}; start with TVM_NUM_THREADS={case.units}")
    module["main"](*tensors)
    _check(case, tensors)
    together = _times(module, device, tensors)
    # One worker runs all rTasks one after another: one rTask alone, without the cost of a launch.
    use_workers(1)
    alone = [t / case.num_rtasks for t in _times(module, device, tensors)]
    use_workers(case.units)
    count = min(len(together), len(alone))
    return together[:count] + alone[:count]


def _check(case: Case, tensors: Sequence[Any]) -> None:
    with np.load(case.reference) as right:
        for i, got in enumerate(tensors[case.num_inputs :]):
            if problem := difference(got.numpy(), right[f"arr_{i}"]):
                raise ValueError(f"wrong result: output {i}: {problem}")


def _times(module: Any, device: Any, tensors: Sequence[Any]) -> list[float]:
    once = module.time_evaluator("main", device, number=1, repeat=1)(*tensors).mean
    number = max(1, math.ceil(MIN_REPEAT_S / max(once, 1e-9)))
    repeats = min(MAX_REPEATS, max(3, int(TOTAL_S / (number * max(once, 1e-9)))))
    return [float(t) for t in module.time_evaluator("main", device, number=number, repeat=repeats)(*tensors).results]


def split_times(seconds: Sequence[float]) -> tuple[tuple[float, ...], float]:
    """Of what `evaluate` returned: the operator's times, and the median of one rTask, in microseconds."""
    half = len(seconds) // 2
    return tuple(round(s * 1e6, 4) for s in seconds[:half]), round(statistics.median(seconds[half:]) * 1e6, 5)
