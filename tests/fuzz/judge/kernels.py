"""The kernels of a function, of each rule that applies, against the function as TVM lowers it."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import tirx

from tests.functions import UNOPTIMISED, best_of_each_size
from tvm_rammer.device import DeviceSpec, host_cpu
from tvm_rammer.keep_indices import hide_quotients, keep_indices
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.rkernel_gen.construct import build, rules, tilings_of
from tvm_rammer.rkernel_gen.tiling import Function

from .compare import UNITS, difference, largest_of, unit_of

PLAIN = "plain"
FILLS = (3, 5)
"""What outputs hold before a function runs: elements that differ afterwards were not written, and may be anything."""


@dataclass(frozen=True)
class Verdict:
    """What came of a function's kernels.

    Attributes
    ----------
    fault : str
        The first wrong kernel and its result; empty where all are right.
    rules : tuple of str
        The rules that made kernels, by name, once for each kernel.
    """

    fault: str
    rules: tuple[str, ...]


class UnjudgedError(Exception):
    """TVM does not lower the function itself, so that nobody knows what is right."""


def judge_kernels(
    func: tirx.PrimFunc, feeds: Sequence[np.ndarray], *, weights: bool, device: DeviceSpec | None = None
) -> Verdict:
    """Build and run a function's kernels: on this CPU, or emulated where they are for a GPU.

    Parameters
    ----------
    func : tirx.PrimFunc
    feeds : sequence of arrays
        Of the inputs, which are the first parameters.
    weights : bool
        Whether all inputs but the first are constants, so that they may be packed.
    device : DeviceSpec, optional
        This CPU if it is left out.

    Raises
    ------
    UnjudgedError
    """
    constants = frozenset(range(1, len(feeds))) if weights else frozenset()
    function = Function("f", func, device or host_cpu(), constants)
    kernels = kernels_of(function)
    made = tuple(k.rule for k in kernels)
    plain = _Plain(func, {k.spec.name: k for k in kernels if function.device.kind == "cpu"})
    want, slack = _wanted(plain, feeds)
    arrays = [*feeds, *want]
    unit, largest = unit_of(arrays), largest_of(arrays)
    if function.device.kind == "cpu":
        results = [plain.kernel(k, feeds) for k in kernels]
    else:
        from tests.rkernel_gen.cuda.operators import emulated

        results = emulated(func, kernels, feeds, constants) if kernels else []
    for kernel, got in zip(kernels, results, strict=True):
        fault = difference(got, want, unit, largest, slack)
        if fault:
            return Verdict(f"{fault} ({kernel.spec.name.removeprefix('f_')})", made)
    return Verdict("", made)


def kernels_of(function: Function, count: int = 3) -> list[ScheduledKernel]:
    """For each rule that applies the best tilings of some sizes, or on a GPU any tilings."""
    chosen = []
    for rule in (rule for tier in rules(function.device) for rule in tier):
        known = tilings_of(rule, function)
        if function.device.kind == "cpu":
            chosen += best_of_each_size(known)[:count]
        else:
            chosen += random.Random(function.key).sample(known, min(count, len(known)))
    made = [build(function, tiling) for tiling in chosen]
    return [kernel for kernel in made if kernel is not None]


class _Plain:
    """A function as TVM lowers it for this CPU, compiled together with kernels of it."""

    def __init__(self, func: tirx.PrimFunc, kernels: Mapping[str, ScheduledKernel]) -> None:
        self.outputs = func.params
        try:
            self.library = _compiled(
                {PLAIN: hide_quotients(func)} | {name: keep_indices(k.func) for name, k in kernels.items()}
            )
        except Exception as error:
            _compiled_alone(func, error)
            raise

    def call(self, name: str, feeds: Sequence[np.ndarray], fill: int) -> list[np.ndarray]:
        """Results, in arrays that held a number before."""
        shapes = [(tuple(int(n) for n in p.shape), str(p.dtype)) for p in self.outputs[len(feeds) :]]
        outs = [tvm.runtime.tensor(np.full(shape, fill, dtype)) for shape, dtype in shapes]
        self.library[name](*(tvm.runtime.tensor(a) for a in feeds), *outs)
        return [out.numpy() for out in outs]

    def kernel(self, kernel: ScheduledKernel, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Results of a kernel, which reads its constants packed."""
        packed = [kernel.packs[i].apply(a) if i in kernel.packs else a for i, a in enumerate(feeds)]
        return self.call(kernel.spec.name, packed, FILLS[0])


def _wanted(plain: _Plain, feeds: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What is right, and by how much each element may be off: it may be undefined, or hang on inputs' last bits."""
    want, other = (plain.call(PLAIN, feeds, fill) for fill in FILLS)
    shaken = plain.call(PLAIN, [_shaken(a) for a in feeds], FILLS[0])
    slack = []
    for a, b, c in zip(want, other, shaken, strict=True):
        undefined = (a != b) & ~(np.isnan(a) & np.isnan(b))
        unstable = 8 * _away(c, a) if str(a.dtype) in UNITS else np.zeros(a.shape)
        slack.append(np.where(undefined, np.inf, unstable))
    return want, slack


def _compiled(functions: Mapping[str, tirx.PrimFunc]) -> tvm.runtime.Module:
    named = {name: f.with_attr("global_symbol", name) for name, f in functions.items()}
    return tvm.compile(tvm.IRModule(named), target=UNOPTIMISED)


def _compiled_alone(func: tirx.PrimFunc, error: Exception) -> None:
    try:
        _compiled({PLAIN: hide_quotients(func)})
    except Exception:
        raise UnjudgedError(str(error)) from error


def _shaken(array: np.ndarray) -> np.ndarray:
    eps = {"float16": 1e-3, "float32": 1e-6}.get(str(array.dtype), 0.0)
    return (array * (1 + eps)).astype(array.dtype)


def _away(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How far numbers are from others: infinitely where one of the two is no finite number."""
    with np.errstate(invalid="ignore"):
        away = np.abs(a.astype("float64") - b.astype("float64"))
    return np.where(a == b, 0.0, np.where(np.isfinite(away), away, np.inf))
