"""The kernels of a function, of each rule that applies, against what NumPy makes of it, or TVM's plain lowering."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import tirx

from tests.functions import UNOPTIMISED, best_of_each_size
from tests.rkernel_gen.footprint.touched import shared, touched
from tvm_rammer.device import DeviceSpec, host_cpu
from tvm_rammer.keep_indices import hide_quotients, keep_indices
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.rkernel_gen.construct import build, rules, tilings_of
from tvm_rammer.rkernel_gen.tiling import Function

from .compare import UNITS, difference, largest_of, unit_of
from .evaluated import Evaluated, away

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
    plain : str
        What TVM's plain lowering computes otherwise than NumPy, or why there is none; then NumPy is right.
    """

    fault: str
    rules: tuple[str, ...]
    plain: str = ""


class UnjudgedError(Exception):
    """TVM lowers neither the function nor kernels of it, or nobody else knows what is right."""


def judge_kernels(
    func: tirx.PrimFunc,
    feeds: Sequence[np.ndarray],
    *,
    weights: bool,
    device: DeviceSpec | None = None,
    right: Evaluated | None = None,
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
    right : Evaluated, optional
        What counts where TVM's plain lowering has no results, or others.

    Raises
    ------
    UnjudgedError
    """
    constants = frozenset(range(1, len(feeds))) if weights else frozenset()
    function = Function("f", func, device or host_cpu(), constants)
    kernels = kernels_of(function)
    made = tuple(k.rule for k in kernels)
    on_cpu = function.device.kind == "cpu"
    plain = _Plain(func, {k.spec.name: k for k in kernels if on_cpu}, right is not None)
    fault_of, otherwise = _judge(plain, feeds, right)
    for kernel in kernels:
        if fault := shared(touched(kernel.func, kernel.spec.num_rtasks)):
            return Verdict(f"{fault} ({kernel.spec.name.removeprefix('f_')})", made, otherwise)
    if on_cpu:
        results = [plain.kernel(k, feeds) for k in kernels]
    else:
        from tests.rkernel_gen.cuda.operators import emulated

        results = emulated(func, kernels, feeds, constants) if kernels else []
    for kernel, got in zip(kernels, results, strict=True):
        fault = fault_of(got)
        if fault:
            return Verdict(f"{fault} ({kernel.spec.name.removeprefix('f_')})", made, otherwise)
    return Verdict("", made, otherwise)


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
    """A function as TVM lowers it for this CPU, compiled together with kernels of it; perhaps TVM does not lower it."""

    def __init__(self, func: tirx.PrimFunc, kernels: Mapping[str, ScheduledKernel], optional: bool = False) -> None:
        self.outputs = func.params
        self.refused = ""
        kept = {name: keep_indices(k.func) for name, k in kernels.items()}
        try:
            self.library = _compiled({PLAIN: hide_quotients(func)} | kept)
        except Exception as error:
            self.refused = _refusal(func)
            if not self.refused:
                raise
            if not optional:
                raise UnjudgedError(self.refused) from error
            try:
                self.library = _compiled(kept) if kept else None
            except Exception as again:
                raise UnjudgedError(self.refused) from again

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


def _judge(
    plain: _Plain, feeds: Sequence[np.ndarray], right: Evaluated | None
) -> tuple[Callable[[Sequence[np.ndarray]], str | None], str]:
    """What says whether results are wrong, and what is wrong with TVM's own."""
    if right is not None and plain.refused:
        return right.fault, plain.refused
    want, slack = _wanted(plain, feeds)
    otherwise = right.fault(want, slack) if right is not None else None
    if right is not None and otherwise:
        return right.fault, otherwise
    arrays = [*feeds, *want]
    unit, largest = unit_of(arrays), largest_of(arrays)
    return (lambda got: difference(got, want, unit, largest, slack)), ""


def _wanted(plain: _Plain, feeds: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What TVM computes, and by how much each element may be off: it may be undefined, or hang on inputs' last bits."""
    want, other = (plain.call(PLAIN, feeds, fill) for fill in FILLS)
    shaken = plain.call(PLAIN, [_shaken(a) for a in feeds], FILLS[0])
    slack = []
    for a, b, c in zip(want, other, shaken, strict=True):
        undefined = (a != b) & ~(np.isnan(a) & np.isnan(b))
        unstable = 8 * away(c, a) if str(a.dtype) in UNITS else np.zeros(a.shape)
        slack.append(np.where(undefined, np.inf, unstable))
    return want, slack


def _compiled(functions: Mapping[str, tirx.PrimFunc]) -> tvm.runtime.Module:
    named = {name: f.with_attr("global_symbol", name) for name, f in functions.items()}
    return tvm.compile(tvm.IRModule(named), target=UNOPTIMISED)


def _refusal(func: tirx.PrimFunc) -> str:
    """Why TVM does not lower a function; empty where it does."""
    try:
        _compiled({PLAIN: hide_quotients(func)})
    except Exception as error:
        return str(error)
    return ""


def _shaken(array: np.ndarray) -> np.ndarray:
    eps = {"float16": 1e-3, "float32": 1e-6}.get(str(array.dtype), 0.0)
    return (array * (1 + eps)).astype(array.dtype)
