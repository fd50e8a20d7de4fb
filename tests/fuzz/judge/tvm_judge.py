"""TVM's plain pipeline, for modules of TVM."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.tirx.compilation_pipeline import register_tir_pipeline

from tvm_rammer.keep_indices import hide_quotients

from .compare import difference, largest_of, unit_of

TRIALS = 3

EXACT = "exact_plain_tvm"
"""Name for `tvm.compile(..., tir_pipeline=EXACT)`: TVM's own lowering, which sees no quotient, so it changes none."""


@tvm.transform.module_pass(opt_level=0, name="HideQuotients")
def _hide_quotients(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    functions = {v: hide_quotients(f) if isinstance(f, tirx.PrimFunc) else f for v, f in mod.functions.items()}
    return tvm.IRModule(functions, attrs=mod.attrs)


def _pipeline() -> tuple[tvm.transform.Pass, object, object]:
    lower, finish_host, finish_device = tirx.get_tir_pipeline("s_tir")
    return tvm.transform.Sequential([_hide_quotients, lower]), finish_host, finish_device


register_tir_pipeline(EXACT, _pipeline)


def parse(source: str) -> tvm.IRModule:
    """A module from TVMScript."""
    names = {"I": tvm.script.ir, "T": tvm.script.tirx, "R": tvm.script.relax}
    return tvm.script.from_source(source, extra_vars=names)


def arrays_of(result: Any) -> list[np.ndarray]:
    """The results of a virtual machine."""
    return [result.numpy()] if isinstance(result, tvm.runtime.Tensor) else [r.numpy() for r in result]


class PlainTvm:
    """A module as TVM compiles it."""

    def __init__(self, source: str) -> None:
        self._source = source
        executable = tvm.compile(parse(source), tvm.target.Target("llvm"), tir_pipeline=EXACT)
        self._main = relax.VirtualMachine(executable, tvm.cpu())["main"]

    def run(self, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
        return arrays_of(self._main(*[tvm.runtime.tensor(a) for a in feeds]))

    def fault(self, feeds: Sequence[np.ndarray], want: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> str | None:
        """Say what is wrong with results, or None; "unstable" where roundings explain it.

        They do where inputs that are a little different move TVM's own results as far, or where these are as far from
        what float64 makes of the same functions, as those of a long sum in a narrow type are.
        """
        arrays = [*feeds, *want]
        unit, largest = unit_of(arrays) or 1e-9, largest_of(arrays)
        fault = difference(got, want, unit, largest)
        if fault is None or not fault.startswith(("value", "inf", "NaN")):
            return fault
        spread = [np.zeros(w.shape) for w in want]
        others = [self.run([_shaken(f, seed) for f in feeds]) for seed in range(TRIALS)]
        for other in (*others, self._in_float64(feeds)):
            for s, a, b in zip(spread, other, want, strict=True):
                away = np.abs(a.astype("float64") - b.astype("float64"))
                np.maximum(s, np.where(np.isnan(away), np.inf, away), out=s)
        slack = [8 * s for s in spread]
        return "unstable" if difference(got, want, unit, largest, slack) is None else fault

    def _in_float64(self, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of the same functions where every floating-point number has 64 bits."""
        wide = PlainTvm(re.sub(r"float(16|32)\b", "float64", self._source))
        return wide.run([a.astype("float64") if a.dtype.kind == "f" else a for a in feeds])


def _shaken(array: np.ndarray, seed: int) -> np.ndarray:
    if array.dtype.kind != "f":
        return array
    eps = 2e-3 if array.dtype == np.float16 else 1e-6
    return (array * (1 + eps * np.random.default_rng(seed).choice([-1, 1], array.shape))).astype(array.dtype)
