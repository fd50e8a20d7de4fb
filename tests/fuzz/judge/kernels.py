"""The kernels of a function, of each rule that applies, against the function as TVM lowers it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import tirx

from tests.functions import UNOPTIMISED, best_of_each_size
from tvm_rammer.device import DeviceSpec, host_cpu
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


def kernels_of(function: Function, count: int = 3) -> Iterator[ScheduledKernel]:
    """For each rule that applies the best tilings of some sizes."""
    for tier in rules(function.device):
        for rule in tier:
            for tiling in best_of_each_size(tilings_of(rule, function))[:count]:
                kernel = build(function, tiling)
                if kernel is not None:
                    yield kernel


def judge_kernels(
    func: tirx.PrimFunc, feeds: Sequence[np.ndarray], *, weights: bool, device: DeviceSpec | None = None
) -> Verdict:
    """Build and run a function's kernels on this CPU.

    Parameters
    ----------
    func : tirx.PrimFunc
    feeds : sequence of arrays
        Of the inputs, which are the first parameters.
    weights : bool
        Whether all inputs but the first are constants, so that they may be packed.
    device : DeviceSpec, optional
    """
    constants = frozenset(range(1, len(feeds))) if weights else frozenset()
    kernels = list(kernels_of(Function("f", func, device or host_cpu(), constants)))
    try:
        library = _compiled({PLAIN: func} | {k.spec.name: k.func for k in kernels})
    except Exception as error:
        _compiled_alone(func, error)
        raise
    shapes = [(tuple(int(n) for n in p.shape), str(p.dtype)) for p in func.params[len(feeds) :]]

    def call(name: str, given: Sequence[np.ndarray], fill: int) -> list[np.ndarray]:
        outs = [tvm.runtime.tensor(np.full(shape, fill, dtype)) for shape, dtype in shapes]
        library[name](*(tvm.runtime.tensor(a) for a in given), *outs)
        return [out.numpy() for out in outs]

    want, other = (call(PLAIN, feeds, fill) for fill in FILLS)
    free = [np.where((a != b) & ~(np.isnan(a) & np.isnan(b)), np.inf, 0.0) for a, b in zip(want, other, strict=True)]
    shaken = [_shaken(f) for f in feeds]
    slack = [
        f + 8 * _away(a, b) if str(a.dtype) in UNITS else f
        for f, a, b in zip(free, want, call(PLAIN, shaken, FILLS[0]), strict=True)
    ]
    arrays = [*feeds, *want]
    unit, largest = unit_of(arrays), largest_of(arrays)
    made = tuple(k.rule for k in kernels)
    for kernel in kernels:
        packed = [kernel.packs[i].apply(a) if i in kernel.packs else a for i, a in enumerate(feeds)]
        fault = difference(call(kernel.spec.name, packed, FILLS[0]), want, unit, largest, slack)
        if fault:
            return Verdict(f"{fault} ({kernel.spec.name.removeprefix('f_')})", made)
    return Verdict("", made)


class UnjudgedError(Exception):
    """TVM does not lower the function itself, so that nobody knows what is right."""


def _compiled(functions: Mapping[str, tirx.PrimFunc]) -> tvm.runtime.Module:
    named = {name: f.with_attr("global_symbol", name) for name, f in functions.items()}
    return tvm.compile(tvm.IRModule(named), target=UNOPTIMISED)


def _compiled_alone(func: tirx.PrimFunc, error: Exception) -> None:
    try:
        _compiled({PLAIN: func})
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
