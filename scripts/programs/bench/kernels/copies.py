"""Print how much of a model's time the windows spend on copying images into scratch: each is timed without it too."""

import argparse
import math
import pathlib
import time
from collections import Counter

import numpy as np
import onnx
import tvm
from tvm import tirx

from tvm_rammer import relay_passes
from tvm_rammer.compilation.target import tvm_target
from tvm_rammer.device import DeviceSpec, host_cpu
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.rkernel_gen import constant_parameters
from tvm_rammer.rkernel_gen.cpu.filters.code import filters_code
from tvm_rammer.rkernel_gen.cpu.filters.layout import FilterLayout, FilterTile
from tvm_rammer.rkernel_gen.cpu.rules import CPU_RULES
from tvm_rammer.rkernel_gen.cpu.space import scheduled_kernel
from tvm_rammer.rkernel_gen.cpu.window.code import window_code
from tvm_rammer.rkernel_gen.cpu.window.layout import WindowTile
from tvm_rammer.rkernel_gen.cpu.window.read import find_window
from tvm_rammer.rkernel_gen.tiling import Function, Tiling
from tvm_rammer.zoo.onnx_tools.random_weights import random_weights

RUN_S, SECONDS = 3e-4, 0.3
"""Seconds of a run, at least, and of all runs of a kernel."""


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=onnx_file, metavar="FILE.onnx", help="weights become random")
    device = host_cpu()
    for path in parser.parse_args().models:
        total, windows, copies = shares(random_weights(onnx.load(path)), device)
        print(
            f"{path}: kernels {total:.2f} ms, of which windows with scratch {windows:.2f} ms, "
            f"of which copies {copies:.2f} ms: {100 * copies / total:.1f} % of all"
        )


def onnx_file(text: str) -> str:
    """The `type` of an argument that names a file."""
    if not pathlib.Path(text).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text!r}")
    return text


def shares(model: onnx.ModelProto, device: DeviceSpec) -> tuple[float, float, float]:
    """Milliseconds of all kernels, of the windows that have a scratch image, and of their copies."""
    target = tvm_target(device)
    mod = relay_passes.prepare(target)(relay_passes.load_model(model))
    graphs = [region.graph for region in relay_passes.partition(mod).regions]
    calls = Counter(op.function for graph in graphs for op in graph.operators)
    total = windows = copies = 0.0
    for name, constants in constant_parameters(graphs).items():
        function = Function(name, mod[name], device, constants)
        tiling, kernel = best(function)
        calls_ms = calls[name] * milliseconds(kernel, kernel.func, target)
        total += calls_ms
        bare = without_copies(function, tiling)
        if bare is not None:
            windows += calls_ms
            copies += calls_ms - calls[name] * milliseconds(
                kernel, scheduled_kernel(function, tiling, bare).func, target
            )
    return total, windows, copies


def without_copies(function: Function, tiling: Tiling) -> tirx.PrimFunc | None:
    """A convolution or pool that leaves its scratch image as it is; None where it has none."""
    window, choices = find_window(function.func), dict(tiling.choices)
    if window is None:
        return None
    if tiling.rule == "window" and not window.flat:
        packed = window.weight_of(function.func) in function.constants
        return window_code(function.func, window, WindowTile(**choices), packed=packed, copies=False)
    if tiling.rule == "filters" and FilterLayout.of(window, tile := FilterTile(**choices)).copied:
        return filters_code(function.func, window, tile, copies=False)
    return None


def best(function: Function) -> tuple[Tiling, ScheduledKernel]:
    """The kernel that is predicted to be fastest alone."""
    found = [(t, rule) for rule in CPU_RULES for t in rule.tilings(function)]
    for tiling, rule in sorted(found, key=lambda f: f[0].operator_us(function.device.units)):
        kernel = rule.build(function, dict(tiling.choices))
        if kernel is not None:
            return tiling, kernel
    raise AssertionError("the last rule builds any function")


def milliseconds(kernel: ScheduledKernel, func: tirx.PrimFunc, target: tvm.target.Target) -> float:
    """The least processor time of some runs, each of at least `RUN_S` seconds: so short that many are not disturbed."""
    built = tvm.compile(func.with_attr("global_symbol", "main"), target=target).jit()
    rng = np.random.default_rng(0)
    shapes = [tuple(int(s) for s in p.shape) for p in kernel.func.params]
    arrays = [
        tvm.runtime.tensor((rng.standard_normal(shape) / math.sqrt(max(1, math.prod(shape)))).astype(str(p.dtype)))
        for p, shape in zip(kernel.func.params, shapes, strict=True)
    ]
    main = built["main"]

    def run(calls: int) -> float:
        begin = time.process_time()
        for _ in range(calls):
            main(*arrays)
        return (time.process_time() - begin) / calls

    calls = math.ceil(RUN_S / max(1e-6, run(1), run(1)))
    end, best = time.monotonic() + SECONDS, math.inf
    while time.monotonic() < end:
        best = min(best, run(calls))
    return best * 1e3


if __name__ == "__main__":
    main()
