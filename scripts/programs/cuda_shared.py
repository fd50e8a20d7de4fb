"""Print a table of a model's rTask functions that several kernels share: their main loops with constants and without.

For a GPU. A kernel is compiled twice: alone in a persistent kernel, then in one with all that share its function, which
gets what differs as arguments. The cycles of a pass through the main loop are those of the issue model, as in
scripts/cuda_loops: ratios mean something.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tvm_rammer.compilation.compiler import load_request
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.regions import KernelizedModule, plan_regions
from tvm_rammer.compilation.request import Request
from tvm_rammer.compilation.stages import find_kernels
from tvm_rammer.device import DeviceSpec, preset
from tvm_rammer.ir import Buffer, RGraph, ROperator, RProgram, Run
from tvm_rammer.kernel import RTaskFunction, ScheduledKernel
from tvm_rammer.nvcc import compile_cuda
from tvm_rammer.nvcc.issue import simulate
from tvm_rammer.nvcc.ptxas import parse_reports
from tvm_rammer.nvcc.sass import disassemble, inner_passes, work_of
from tvm_rammer.persistent_codegen import cuda_source
from tvm_rammer.persistent_codegen.cuda.program import assemble_cuda
from tvm_rammer.persistent_codegen.share_code import share_code
from tvm_rammer.zoo.models import MODELS, model_names

HEAD = """| kernel | share | their us | arguments | registers, before | code KB, before | cycles a pass, before | % |
|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Shared:
    """Kernels that share a function, each with its function by itself; how many arguments; what all take in a model."""

    kernels: tuple[ScheduledKernel, ...]
    alone: tuple[RTaskFunction, ...]
    arguments: int
    us: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a persistent kernel: registers, bytes of code, cycles of a pass through its main loop (0: it has none)."""

    registers: int
    code_bytes: int
    cycles: float


def main() -> None:
    """Read the command line, plan, compile, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=model_names, help=f"of {', '.join(MODELS)}")
    parser.add_argument("--target", default="cuda:h200", help="a GPU by name (cuda:h200)")
    parser.add_argument("--most", type=int, default=12, help="functions of a model, those that take most time (12)")
    options = parser.parse_args()
    device = preset(options.target)
    for model in options.models:
        print(f"\n{model}\n\n{HEAD}")
        found = sorted(_shared(model, device), key=lambda shared: -shared.us)
        for shared in found[: options.most]:
            print(_line(shared, device), flush=True)


def _shared(model: str, device: DeviceSpec) -> Iterator[Shared]:
    """The functions of a model's programs that several kernels share."""
    request = Request((MODELS[model](),), (None,), device)
    record = Compilation(device, request.policy, request.sync, request.options)
    module = plan_regions(find_kernels(load_request(request).mod, record), record)
    by_name = {k.spec.name: k for made in module.kernels.values() for k in made}
    for program in record.programs:
        yield from _shared_in(program, module, by_name)


def _shared_in(program: RProgram, module: KernelizedModule, by_name: Mapping[str, ScheduledKernel]) -> Iterator[Shared]:
    functions = [module.library.function(by_name[spec.name]) for spec in program.kernels]
    groups: dict[str, list[int]] = {}
    shared = share_code(functions, program.name)
    for o, function in enumerate(shared):
        groups.setdefault(function.name, []).append(o)
    for operators in groups.values():
        alone = {functions[o].name: functions[o] for o in operators}
        if len(alone) > 1:
            us = sum(program.kernels[o].work_us for o in operators)
            kernels = tuple(by_name[name] for name in alone)
            yield Shared(kernels, tuple(alone.values()), len(shared[operators[0]].numbers), us)


def _line(shared: Shared, device: DeviceSpec) -> str:
    first = shared.kernels[0]
    before, after = (
        _figures(shared.kernels[:count], shared.alone[:count], device) for count in (1, len(shared.kernels))
    )
    cycles = change = "-"
    if before.cycles:
        cycles, change = f"{after.cycles:.0f}, {before.cycles:.0f}", f"{100 * (after.cycles / before.cycles - 1):+.1f}"
    return (f"| {first.spec.name.replace('_', ' ')} | {len(shared.kernels)} | {shared.us:.0f} | {shared.arguments} | "
            f"{after.registers}, {before.registers} | {after.code_bytes / 1024:.1f}, {before.code_bytes / 1024:.1f} | "
            f"{cycles} | {change} |")  # fmt: skip


def _figures(kernels: Sequence[ScheduledKernel], functions: Sequence[RTaskFunction], device: DeviceSpec) -> Figures:
    """What nvcc makes of a persistent kernel that runs an rTask of each kernel."""
    program = _program(kernels)
    built = assemble_cuda(program, {}, [{} for _ in kernels], functions, device)
    compiled = compile_cuda(cuda_source(built, device), device.arch)
    ((name, code),) = disassemble(compiled.cubin).items()
    span, cycles = code.main_loop(), 0.0
    if span and work_of(code.body(span))[0]:
        body = code.body(span, inner_passes(code, span, kernels[0].spec.name))
        cycles = simulate(body, kernels[0].spec.threads // device.warp).cycles
    return Figures(parse_reports(compiled.report)[name].registers, code.code_bytes, cycles)


def _program(kernels: Sequence[ScheduledKernel]) -> RProgram:
    """One vEU runs an rTask of each kernel; all that they read is an input."""
    buffers: list[Buffer] = []
    operators = []
    for n, kernel in enumerate(kernels):
        tensors = [(tuple(int(extent) for extent in p.shape), str(p.dtype)) for p in kernel.func.params]
        first, last = len(buffers), len(buffers) + len(tensors) - 1
        buffers += [Buffer(f"b{n}_{i}", *tensor, "input") for i, tensor in enumerate(tensors[:-1])]
        buffers.append(Buffer(f"b{n}", *tensors[-1], "output"))
        operators.append(ROperator(f"o{n}", kernel.spec.function, tuple(range(first, last)), (last,)))
    graph = RGraph("alone", tuple(buffers), tuple(operators))
    lane = tuple(Run(o, 0, 1) for o in range(len(kernels)))
    return RProgram("alone", graph, tuple(k.spec for k in kernels), (lane,), 0, {}, 0)


if __name__ == "__main__":
    main()
