"""Print a table of a model's CUDA kernels: what an issue model says of the SASS of the fastest of each function."""

import argparse
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad

from tvm_rammer import relay_passes
from tvm_rammer.compilation.splitting import split_long_sums
from tvm_rammer.compilation.target import tvm_target
from tvm_rammer.device import DeviceSpec, preset
from tvm_rammer.errors import ToolError
from tvm_rammer.ir import ITEM_BYTES
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.nvcc.compile import compile_cuda
from tvm_rammer.nvcc.issue import simulate, simulate_once
from tvm_rammer.nvcc.ptxas import Resources, parse_reports
from tvm_rammer.nvcc.sass import Kernel, branches_between_loads, disassemble, inner_passes, step_macs, work_of
from tvm_rammer.rkernel_gen.analysis.work import Work
from tvm_rammer.rkernel_gen.construct import choose
from tvm_rammer.rkernel_gen.cuda.lowered import lowered_kernels, read_launch
from tvm_rammer.rkernel_gen.cuda.product.warp_matrix import matrix_macs
from tvm_rammer.rkernel_gen.cuda.resources import source_of
from tvm_rammer.rkernel_gen.cuda.rule import name_for_c
from tvm_rammer.rkernel_gen.make_kernels import constant_parameters
from tvm_rammer.rkernel_gen.tiling import Function
from tvm_rammer.zoo.models import MODELS, model_names

PRODUCTS = ("gemm", "gemv", "mma", "tf32", "reduction")
"""Rules whose loops multiply and add."""

KERNELS_PER_FILE = 12

TENSOR_GAIN = 16
"""Peak of tensor cores in half precision over that of single precision on CUDA cores: of an A100 and an H100. That of
TF32 is half of it.
"""

COLUMNS = ("function", "uses", "kernel", "rTasks x threads", "registers", "code KB", "guards", "KB in flight",
           "% of peak", "us")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidates:
    """A function with its kernels, fastest first, and how often a model calls it.

    `stock` is what TVM has in its place: of a long sum that two rOperators share the whole, with the first.
    """

    name: str
    uses: int
    func: tirx.PrimFunc
    kernels: tuple[ScheduledKernel, ...]
    stock: tirx.PrimFunc | None

    @property
    def is_product(self) -> bool:
        """Whether its fastest kernel multiplies matrices."""
        return self.kernels[0].rule in PRODUCTS


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel as it is launched: for a thread the multiply-adds and loaded bytes, with those on padding."""

    blocks: int
    threads: int
    macs: int
    loaded: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the SASS of a kernel says; `peak` is 0 where it does not multiply in its main loop."""

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
    parser.add_argument("--half", action="store_true", help="the model in half precision")
    parser.add_argument("--share", type=float, default=0.0, metavar="PERCENT", help="rows that take so much of a model")
    parser.add_argument("--against", choices=["dlight"], help="the same functions by stock TVM's rules for GPUs, too")
    parser.add_argument("--ranking", action="store_true", help="compare all candidates of each product, too")
    options = parser.parse_args()
    device = preset(options.target)
    for model in options.models:
        found = list(_candidates(model, device, half=options.half))
        best = _estimates([_own(c.kernels[0], device) for c in found], device)
        stock = [_stock_us(c.stock, device) if c.stock and options.against else 0.0 for c in found]
        columns = (*COLUMNS, *(["dlight, us"] if options.against else []))
        print(f"\n{model}{' in half precision' if options.half else ''}\n")
        print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        total = sum(c.uses * one.us for c, one in zip(found, best, strict=True))
        rows = sorted(zip(found, best, stock, strict=True), key=lambda row: -row[0].uses * row[1].us)
        for candidates, one, theirs in rows:
            if candidates.uses * one.us >= options.share / 100 * total:
                compared = f"{theirs:.1f}" if candidates.stock else "-"
                print(_line(candidates, one) + (f" {compared} |" if options.against else ""))
        print()
        for what, part in (("products", [r for r in rows if r[0].is_product]), ("all", rows)):
            times = [sum(c.uses * us for c, us in zip((r[0] for r in part), by, strict=True))
                     for by in ([r[1].us for r in part], [r[2] for r in part])]  # fmt: skip
            code = sum(r[1].code_bytes for r in part) / 1024
            compared = f"; dlight {times[1]:.1f} us, {times[1] / times[0]:.1f} times" if options.against else ""
            print(f"{what}: {times[0]:.1f} us, {code:.0f} KB of code{compared}")
        if options.ranking:
            ranks = list(_rankings(found, device))
            print(f"rank correlation within {len(ranks)} functions: mean {statistics.mean(ranks):.2f}")


def _candidates(model: str, device: DeviceSpec, half: bool) -> Iterator[Candidates]:
    """The functions of a model that have kernels, each once."""
    module = relay_passes.load_model(MODELS[model]())
    if half:
        module = tvm.relax.transform.ConvertToDataflow()(module)
        module = tvm.relax.transform.ToMixedPrecision("float32")(module)
    whole = relay_passes.prepare(tvm_target(device))(module)
    module = split_long_sums(whole, device)
    graphs = [region.graph for region in relay_passes.partition(module).regions]
    functions, stock = _functions(module), _functions(whole)
    constants = constant_parameters(graphs)
    for name, uses in Counter(op.function for graph in graphs for op in graph.operators).items():
        kernels = choose(Function(name, functions[name], device, constants[name]))
        if kernels:
            ranked = sorted(kernels, key=lambda k: _alone_us(k, device))
            yield Candidates(name, uses, functions[name], tuple(ranked), stock.get(name.removesuffix("_parts")))


def _functions(module: tvm.IRModule) -> dict[str, tirx.PrimFunc]:
    return {v.name_hint: f for v, f in module.functions.items() if isinstance(f, tirx.PrimFunc)}


def _alone_us(kernel: ScheduledKernel, device: DeviceSpec) -> float:
    return kernel.spec.rtask_us * -(-kernel.spec.num_rtasks // device.units)


def _own(kernel: ScheduledKernel, device: DeviceSpec) -> tuple[ScheduledKernel, Launched]:
    (lowered,) = lowered_kernels(kernel.func, device)
    return kernel, _launched(lowered)


def _launched(kernel: tirx.PrimFunc) -> Launched:
    launch = read_launch(kernel)
    if launch is None:
        raise ToolError(f"{kernel.attrs['global_symbol']} has a launch that is not known")
    return Launched(launch.blocks, launch.threads, *_work(kernel.body, 1))


def _work(stmt: tirx.Stmt, times: int) -> tuple[int, int]:
    """Multiply-adds and loaded bytes of a thread; branches count as taken."""
    parts: list[tuple[int, int]] = []
    match stmt:
        case tirx.For():
            return _work(stmt.body, times * int(stmt.extent))
        case tirx.SeqStmt():
            parts = [_work(part, times) for part in stmt.seq]
        case tirx.AttrStmt():
            return _work(stmt.body, times)
        case tirx.IfThenElse():
            parts = [_work(part, times) for part in (stmt.then_case, stmt.else_case) if part is not None]
        case _:

            def load(node: TensorLoad) -> None:
                if str(node.source.scope()) == "global":
                    parts.append((0, times * _nbytes(node)))

            def add(node: tirx.Add) -> None:
                if "float" in str(node.ty.dtype) and any(isinstance(arm, tirx.Mul) for arm in (node.a, node.b)):
                    parts.append((times * _lanes(node), 0))

            def multiply(node: Call) -> None:
                parts.append((times * matrix_macs(node), 0))

            tvm_ffi.structural_walk(stmt, [(TensorLoad, load), (tirx.Add, add), (Call, multiply)], order="pre")
    return sum(p[0] for p in parts), sum(p[1] for p in parts)


def _lanes(value: Expr) -> int:
    return int(str(value.ty.dtype).partition("x")[2] or 1)


def _nbytes(value: Expr) -> int:
    return _lanes(value) * ITEM_BYTES[str(value.ty.dtype).partition("x")[0]]


def _estimates(kernels: Sequence[tuple[ScheduledKernel, Launched]], device: DeviceSpec) -> list[Estimate]:
    """Compile our kernels, some in a file, each as it runs in a persistent kernel: one block a unit."""
    found: list[Estimate] = []
    for first in range(0, len(kernels), KERNELS_PER_FILE):
        batch = kernels[first : first + KERNELS_PER_FILE]
        compiled = compile_cuda(source_of([k for k, _ in batch], device), device.arch)
        code, needs = disassemble(compiled.cubin), parse_reports(compiled.report)
        names = [f"k{i}_kernel" for i in range(len(batch))]
        found += [_estimate(one, code[name], needs[name], device, 1, kernel)
                  for (kernel, one), name in zip(batch, names, strict=True)]  # fmt: skip
    return found


def _stock_us(func: tirx.PrimFunc, device: DeviceSpec) -> float:
    """The kernels of a function by the rules of TVM's own CUDA pipeline, with as many blocks on a unit as fit."""
    from tvm.s_tir import dlight

    target = tvm.target.Target(device.target_config())
    gpu = dlight.gpu
    rules = (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback())
    with target:
        mod = dlight.ApplyDefaultSchedule(*rules)(tvm.IRModule({"k": name_for_c(func).with_attr("global_symbol", "k")}))
    launches = [_launched(kernel) for kernel in lowered_kernels(mod["k"], device)]
    source = str(tirx.build(mod, target=target).imports[0].inspect_source("cuda"))
    compiled = compile_cuda(source, device.arch, stock=True)
    code, needs = disassemble(compiled.cubin), parse_reports(compiled.report)
    names = re.findall(r"__global__ void (?:__launch_bounds__\([\d, ]+\) )?(\w+)\(", source)
    total = 0.0
    for name, one in zip(dict.fromkeys(names), launches, strict=True):
        fit = device.resident_blocks(one.threads, needs[name].registers, needs[name].static_shared_bytes)
        resident = max(1, min(fit, -(-one.blocks // device.units)))
        total += _estimate(one, code[name], needs[name], device, resident).us
    return total


def _estimate(
    one: Launched,
    code: Kernel,
    needs: Resources,
    device: DeviceSpec,
    resident: int,
    kernel: ScheduledKernel | None = None,
) -> Estimate:
    """Once through all of the code, and the further passes of its main loop, for each wave of blocks."""
    warps = -(-one.threads // device.warp)
    span = code.main_loop()
    inner = inner_passes(code, span, step_macs(kernel.spec.name)) if span and kernel else 1
    once = simulate_once(code.whole(span, inner), warps, blocks=resident)
    cycles, in_flight, peak, guards = once.cycles, once.bytes_in_flight, 0.0, branches_between_loads(code.whole())
    if span:
        body = code.body(span, inner)
        loop = simulate(body, warps, blocks=resident)
        macs, loaded = work_of(body)
        passes = one.macs / macs if macs and one.macs else one.loaded / loaded
        cycles += max(0.0, passes - 1) * loop.cycles
        in_flight, guards = loop.bytes_in_flight, branches_between_loads(body)
        matrix = next((i for i in body if i.name == "HMMA"), None)
        gain = 1 if matrix is None else TENSOR_GAIN // 2 if matrix.is_tf32 else TENSOR_GAIN
        rate = device.flops_per_cycle * gain
        peak = 200 * macs * warps * resident * device.warp / loop.cycles / rate
    waves = -(-one.blocks // (device.units * resident))
    us = waves * cycles / (device.clock_ghz * 1e3)
    return Estimate(needs.registers, code.code_bytes, guards, in_flight, peak, us)


def _line(candidates: Candidates, one: Estimate) -> str:
    kernel = candidates.kernels[0]
    tiling = kernel.spec.name.removeprefix(f"{candidates.name}_").replace("_", " ")
    peak = f"{one.peak:.0f}" if one.peak else "-"
    return (f"| {candidates.name} | {candidates.uses} | {tiling} | {kernel.spec.num_rtasks} x {kernel.spec.threads} | "
            f"{one.registers} | {one.code_bytes / 1024:.1f} | {one.guards} | {one.in_flight / 1024:.1f} | {peak} | "
            f"{one.us:.1f} |")  # fmt: skip


def _rankings(found: Sequence[Candidates], device: DeviceSpec) -> Iterator[float]:
    """For each product with several candidates: do the predictions rank them as their SASS does?"""
    pairs = [(c, k) for c in found for k in c.kernels if k.rule in PRODUCTS and Work.of(c.func).flops]
    estimates = _estimates([_own(k, device) for _, k in pairs], device)
    for candidates in found:
        timed = [(_alone_us(k, device), e.us) for (c, k), e in zip(pairs, estimates, strict=True) if c is candidates]
        if len(timed) > 3:
            yield statistics.correlation(*(_ranks(times) for times in zip(*timed, strict=True)))


def _ranks(times: Sequence[float]) -> list[float]:
    """The place of each time among all; equal ones share theirs."""
    return [sum(other < time for other in times) + sum(other == time for other in times) / 2 for time in times]


if __name__ == "__main__":
    main()
