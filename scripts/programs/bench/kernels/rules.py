"""Convolutions by each CPU rule that knows them, on one thread: how fast, and how near the predictions are.

Of each rule the tilings that are predicted to be fastest are timed, and the fastest counts. An operation is one of the
plain sum, for Winograd's algorithm, too. With `--cold` no cache holds the weights, as in a large model: each run reads
others than the last ones did.
"""

import argparse
import math
import os
import time
from collections.abc import Iterator

os.environ["TVM_NUM_THREADS"] = "1"

import numpy as np
import tvm
from copies import milliseconds
from onnx import helper, numpy_helper

from tvm_rammer import relay_passes
from tvm_rammer.compilation.target import tvm_target, with_threads
from tvm_rammer.device import DeviceSpec, measured_cpu
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.rkernel_gen import constant_parameters
from tvm_rammer.rkernel_gen.cpu.rules import CPU_RULES
from tvm_rammer.rkernel_gen.tiling import Function, Rule

CONVOLUTIONS = ((3, 64, 64, 56), (3, 128, 128, 28), (3, 256, 256, 14), (3, 512, 512, 7), (3, 128, 32, 28),
                (1, 1024, 256, 14), (1, 512, 2048, 7), (1, 64, 256, 56))  # fmt: skip
"""Kernel, channels, filters, and pixels along each side."""
RULES = ("contraction", "window", "filters", "winograd")


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tried", type=int, default=3, metavar="N", help="tilings of each rule")
    parser.add_argument("--cold", action="store_true", help="with weights that no cache holds")
    arguments = parser.parse_args()
    device = with_threads(measured_cpu(), 1)
    peak = device.clock_ghz * device.flops_per_cycle
    print(f"GFLOP/s, predicted over measured in brackets; {peak:.0f} with multiply-adds alone\n")
    print(f"| convolution | {' | '.join(RULES)} |")
    print(f"|{'---|' * (1 + len(RULES))}")
    for kernel, channels, filters, size in CONVOLUTIONS:
        function = function_of(kernel, channels, filters, size, device)
        work = 2e-6 * kernel**2 * channels * filters * size**2  # millions of operations, as of milliseconds
        cells = [cell(function, rule, work, arguments.tried, cold=arguments.cold) for rule in rules()]
        print(f"| {kernel}x{kernel}, {channels}-{filters}, {size}x{size} | {' | '.join(cells)} |", flush=True)


def rules() -> Iterator[Rule]:
    """Those of the table, in its order."""
    by_name = {rule.name: rule for rule in CPU_RULES}
    return (by_name[name] for name in RULES)


def function_of(kernel: int, channels: int, filters: int, size: int, device: DeviceSpec) -> Function:
    """A convolution with constant weights, and a Relu."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((filters, channels, kernel, kernel)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[kernel // 2] * 4),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    x, y = (
        helper.make_tensor_value_info(name, 1, shape)
        for name, shape in (("x", [1, channels, size, size]), ("y", [1, filters, size, size]))
    )
    graph = helper.make_graph(nodes, "convolution", [x], [y], [numpy_helper.from_array(weight, "w")])
    mod = relay_passes.prepare(tvm_target(device))(relay_passes.load_model(helper.make_model(graph)))
    ((name, constants),) = constant_parameters([r.graph for r in relay_passes.partition(mod).regions]).items()
    return Function(name, mod[name], device, constants)


def cell(function: Function, rule: Rule, work: float, tried: int, *, cold: bool) -> str:
    """The fastest of a rule's tilings that are predicted to be."""
    tilings = sorted(rule.tilings(function), key=lambda tiling: tiling.operator_us(1))[:tried]
    target: tvm.target.Target = tvm_target(function.device)
    found = []
    for tiling in tilings:
        kernel = rule.build(function, dict(tiling.choices))
        if kernel is not None:
            ms = cold_milliseconds(kernel, function) if cold else milliseconds(kernel, kernel.func, target)
            found.append((ms, tiling.operator_us(1) / 1e3 / ms))
    if not found:
        return "-"
    ms, share = min(found)
    return f"{work / ms:.0f} ({share:.2f})"


def cold_milliseconds(kernel: ScheduledKernel, function: Function) -> float:
    """The median of runs with more copies of the weights than a cache holds."""
    (constant,) = function.constants
    built = tvm.compile(kernel.func.with_attr("global_symbol", "main"), target=tvm_target(function.device)).jit()
    rng = np.random.default_rng(0)
    arrays = [
        tvm.runtime.tensor(rng.standard_normal([int(s) for s in p.shape]).astype(str(p.dtype)) / 100)
        for p in kernel.func.params
    ]
    weights = arrays[constant].numpy()
    copies = [
        tvm.runtime.tensor(weights) for _ in range(1 + math.ceil(2 * function.device.cache_bytes / weights.nbytes))
    ]
    main, taken = built["main"], []
    for copy in copies:
        begin = time.process_time()
        main(*arrays[:constant], copy, *arrays[constant + 1 :])
        taken.append(time.process_time() - begin)
    return float(np.median(taken)) * 1e3


if __name__ == "__main__":
    main()
