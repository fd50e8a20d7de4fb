"""Print a table of a model's products: what an issue model says of the SASS of their fastest kernels."""

import argparse
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tvm import tirx

from tvm_rammer import relay_passes
from tvm_rammer.compilation.target import tvm_target
from tvm_rammer.device import DeviceSpec, preset
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.nvcc.compile import compile_cuda
from tvm_rammer.nvcc.ptxas import parse_reports
from tvm_rammer.nvcc.sass import Instruction, Kernel, branches_between_loads, disassemble, simulate
from tvm_rammer.rkernel_gen.analysis.work import Work
from tvm_rammer.rkernel_gen.construct import choose
from tvm_rammer.rkernel_gen.cuda.resources import source_of
from tvm_rammer.rkernel_gen.make_kernels import constant_parameters
from tvm_rammer.rkernel_gen.tiling import Function
from tvm_rammer.zoo.models import MODELS, model_names

PRODUCTS = ("gemm", "reduction")
"""Rules whose loops multiply and add."""

KERNELS_PER_FILE = 12

HEAD = """| function | uses | kernel | rTasks x threads | registers | code KB | guards | KB in flight | % of peak | us |
|---|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Product:
    """A function with its candidates, fastest first, and how often a model calls it."""

    name: str
    uses: int
    flops: float
    kernels: tuple[ScheduledKernel, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """What the SASS of a kernel says; `peak` and `us` are 0 where it has no loop: all is one step."""

    registers: int
    code_bytes: int
    guards: int
    in_flight: float
    peak: float
    us: float


def main() -> None:
    """Read the command line, build, compile, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=model_names, help=f"of {', '.join(MODELS)}")
    parser.add_argument("--target", default="cuda:h200", help="a GPU by name (cuda:h200)")
    parser.add_argument("--ranking", action="store_true", help="compare all candidates of each function, too")
    options = parser.parse_args()
    device = preset(options.target)
    for model in options.models:
        products = list(_products(model, device))
        best = [product.kernels[0] for product in products]
        loops = list(_loops([(p.flops, p.kernels[0]) for p in products], device))
        rows = zip(products, best, loops, strict=True)
        print(f"\n{model}\n\n{HEAD}")
        for product, kernel, loop in sorted(rows, key=lambda row: -row[0].uses * row[2].us):
            print(_line(product, kernel, loop))
        total = sum(p.uses * loop.us for p, loop in zip(products, loops, strict=True))
        code = sum(loop.code_bytes for loop in loops) / 1024
        print(f"\nall: {total:.1f} us, {code:.0f} KB of code")
        if options.ranking:
            found = list(_rankings(products, device))
            print(f"rank correlation within {len(found)} functions: mean {statistics.mean(found):.2f}")


def _products(model: str, device: DeviceSpec) -> Iterator[Product]:
    """The products of a model, each function once."""
    module = relay_passes.prepare(tvm_target(device))(relay_passes.load_model(MODELS[model]()))
    graphs = [region.graph for region in relay_passes.partition(module).regions]
    functions = {v.name_hint: f for v, f in module.functions.items() if isinstance(f, tirx.PrimFunc)}
    constants = constant_parameters(graphs)
    for name, uses in Counter(op.function for graph in graphs for op in graph.operators).items():
        kernels = choose(Function(name, functions[name], device, constants[name]))
        fitting = [k for k in kernels if k.rule in PRODUCTS]
        if fitting:
            ranked = sorted(fitting, key=lambda k: _alone_us(k, device))
            yield Product(name, uses, Work.of(functions[name]).flops, tuple(ranked))


def _alone_us(kernel: ScheduledKernel, device: DeviceSpec) -> float:
    return kernel.spec.rtask_us * -(-kernel.spec.num_rtasks // device.units)


def _loops(kernels: Sequence[tuple[float, ScheduledKernel]], device: DeviceSpec) -> Iterator[Loop]:
    """Compile kernels of functions with so many operations, some in a file, and look at their main loops."""
    for first in range(0, len(kernels), KERNELS_PER_FILE):
        batch = kernels[first : first + KERNELS_PER_FILE]
        compiled = compile_cuda(source_of([k for _, k in batch], device), device.arch)
        code, needs = disassemble(compiled.cubin), parse_reports(compiled.report)
        for i, (flops, kernel) in enumerate(batch):
            yield _loop(flops, kernel, code[f"k{i}_kernel"], needs[f"k{i}_kernel"].registers, device)


def _loop(flops: float, kernel: ScheduledKernel, code: Kernel, registers: int, device: DeviceSpec) -> Loop:
    span, warps = code.main_loop(), kernel.spec.threads // device.warp
    if span is None:
        return Loop(registers, code.code_bytes, 0, 0.0, 0.0, 0.0)
    body = _one_pass(kernel, code, span)
    speed = simulate(body, warps)
    multiplied = sum(i.name == "FFMA" for i in body) * warps * device.warp
    passes = flops / 2 / kernel.spec.num_rtasks / multiplied
    waves = -(-kernel.spec.num_rtasks // device.units)
    us = waves * passes * speed.cycles / (device.clock_ghz * 1e3)
    peak = 200 * multiplied / speed.cycles / device.flops_per_cycle
    return Loop(registers, code.code_bytes, branches_between_loads(body), speed.bytes_in_flight, peak, us)


def _one_pass(kernel: ScheduledKernel, code: Kernel, span: tuple[int, int]) -> list[Instruction]:
    """A pass of the main loop: a loop within it, over K, runs as often as the tiling's multiply-adds say."""
    choices = {name: int(value) for name, value in re.findall(r"_([a-z]+?)(\d+)(?=_|$)", kernel.spec.name)}
    once, twice = ([i.name for i in code.body(span, n)].count("FFMA") for n in (1, 2))
    if once == twice or "slices" not in choices:
        return code.body(span)
    wanted = choices["mi"] * choices["mj"] * choices["k"] // choices["slices"]
    return code.body(span, max(1, 1 + (wanted - once) // (twice - once)))


def _line(product: Product, kernel: ScheduledKernel, loop: Loop) -> str:
    tiling = kernel.spec.name.removeprefix(f"{product.name}_").replace("_", " ")
    speed = f"{loop.in_flight / 1024:.1f} | {loop.peak:.0f} | {loop.us:.1f}" if loop.us else "- | - | one step"
    return (f"| {product.name} | {product.uses} | {tiling} | {kernel.spec.num_rtasks} x {kernel.spec.threads} | "
            f"{loop.registers} | {loop.code_bytes / 1024:.1f} | {loop.guards} | {speed} |")  # fmt: skip


def _rankings(products: Sequence[Product], device: DeviceSpec) -> Iterator[float]:
    """For each function with several candidates that have loops: do the predictions rank them as their SASS does?"""
    pairs = [(p, k) for p in products for k in p.kernels if k.rule == "gemm"]
    loops = list(_loops([(p.flops, k) for p, k in pairs], device))
    for product in products:
        timed = [(_alone_us(k, device), x.us) for (p, k), x in zip(pairs, loops, strict=True) if p is product and x.us]
        if len(timed) > 3:
            yield statistics.correlation(*(_ranks(times) for times in zip(*timed, strict=True)))


def _ranks(times: Sequence[float]) -> list[float]:
    """The place of each time among all; equal ones share theirs."""
    return [sum(other < time for other in times) + sum(other == time for other in times) / 2 for time in times]


if __name__ == "__main__":
    main()
