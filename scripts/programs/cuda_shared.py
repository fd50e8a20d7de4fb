"""Print a table of products that share an rTask function on a GPU: what that costs their main loops.

They are 1x1 convolutions of DenseNet-121 with the tiles that a plan for an H200 gives them. Of each group the first is
compiled twice: alone in a persistent kernel, then with the others, and so with arguments where it had constants. The
cycles of a step of K are those of the issue model, as in scripts/cuda_loops: ratios mean something.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import relax, tirx

from tvm_rammer import relay_passes
from tvm_rammer.compilation.target import tvm_target
from tvm_rammer.device import DeviceSpec, preset
from tvm_rammer.errors import ToolError
from tvm_rammer.ir import Buffer, RGraph, ROperator, RProgram, Run
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.nvcc import compile_cuda
from tvm_rammer.nvcc.issue import simulate
from tvm_rammer.nvcc.ptxas import parse_reports
from tvm_rammer.nvcc.sass import disassemble, inner_passes, step_macs, work_of
from tvm_rammer.persistent_codegen import cuda_source
from tvm_rammer.persistent_codegen.cuda.program import assemble_cuda
from tvm_rammer.persistent_codegen.cuda.rtask import extract_cuda
from tvm_rammer.rkernel_gen.cuda.product.gemm import GEMM_RULE
from tvm_rammer.rkernel_gen.tiling import Function

FILTERS = 128

GROUPS = (
    (56, (32, 128, 32, 4, 8, 1), (96, 160, 224)),
    (28, (16, 64, 64, 4, 8, 4), (160, 288, 416)),
    (14, (8, 32, 128, 4, 8, 16), (288, 352, 544, 608)),
    (14, (16, 16, 256, 4, 8, 32), (672, 736, 800, 864, 928, 992)),
    (7, (8, 8, 256, 4, 4, 32), (544, 608, 672, 736, 800, 864, 928, 992)),
)
"""Rows of pixels, the tile (i, j, k, mi, mj, slices), and the channels of each convolution."""

HEAD = """| pixels | tile | channels | registers, alone | code KB, alone | cycles a step, alone | % |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a persistent kernel: registers of a thread, bytes of code, and cycles of a step of its product."""

    registers: int
    code_bytes: int
    cycles: float


def main() -> None:
    """Read the command line, build, compile, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cuda:h200", help="a GPU by name (cuda:h200)")
    device = preset(parser.parse_args().target)
    print(HEAD)
    for pixels, tile, channels in GROUPS:
        kernels = [_kernel(pixels, tile, c, device) for c in channels]
        alone, shared = (_figures(some, device) for some in (kernels[:1], kernels))
        change = 100 * (shared.cycles / alone.cycles - 1)
        name = GEMM_RULE.name + "".join(f" {key}{n}" for key, n in _choices(tile).items())
        pairs = [
            [f"{figure:{form}}" for figure in pair]
            for pair, form in (
                ((shared.registers, alone.registers), "d"),
                ((shared.code_bytes / 1024, alone.code_bytes / 1024), ".1f"),
                ((shared.cycles, alone.cycles), ".0f"),
            )
        ]
        columns = [f"{pixels} x {pixels}", name, ", ".join(map(str, channels)), *map(", ".join, pairs)]
        print(f"| {' | '.join(columns)} | {change:+.1f} |", flush=True)


def _choices(tile: Sequence[int]) -> dict[str, int]:
    return dict(zip(("i", "j", "k", "mi", "mj", "slices"), tile, strict=True))


def _kernel(pixels: int, tile: Sequence[int], channels: int, device: DeviceSpec) -> ScheduledKernel:
    """A convolution with what follows it in a dense layer: bias, batch norm, activation."""
    per_filter = (1, FILTERS, 1, 1)
    shapes = [(1, channels, pixels, pixels), (FILTERS, channels, 1, 1), per_filter, per_filter, per_filter]
    x, w, bias, scale, shift = (relax.Var(f"x{i}", relax.TensorType(s, "float32")) for i, s in enumerate(shapes))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w, bias, scale, shift]):
        with builder.dataflow():
            sums = relax.op.add(relax.op.nn.conv2d(x, w), bias)
            out = relax.op.nn.relu(relax.op.add(relax.op.multiply(sums, scale), shift))
            result = builder.emit_output(out)
        builder.emit_func_output(result)
    module = relay_passes.prepare(tvm_target(device))(builder.get())
    (func,) = [f for f in module.functions.values() if isinstance(f, tirx.PrimFunc)]
    kernel = GEMM_RULE.build(Function(f"conv{channels}", func, device, frozenset({1})), _choices(tile))
    if kernel is None:
        raise ToolError(f"the tile {tile} does not fit a convolution of {channels} channels: see GROUPS")
    return kernel


def _figures(kernels: Sequence[ScheduledKernel], device: DeviceSpec) -> Figures:
    """What nvcc makes of a persistent kernel that runs an rTask of each kernel, and the issue model of its loop."""
    functions = [extract_cuda(kernel, device) for kernel in kernels]
    built = assemble_cuda(_program(kernels), {}, [{} for _ in kernels], functions, device)
    compiled = compile_cuda(cuda_source(built, device), device.arch)
    ((name, code),) = disassemble(compiled.cubin).items()
    span, macs = code.main_loop(), step_macs(kernels[0].spec.name)
    if len(built.helpers) > 1 or span is None:
        raise ToolError(f"{kernels[0].spec.name} has {len(built.helpers)} functions, and the main loop {span}")
    body = code.body(span, inner_passes(code, span, macs))
    cycles = simulate(body, kernels[0].spec.threads // device.warp).cycles * macs / work_of(body)[0]
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
    graph = RGraph("products", tuple(buffers), tuple(operators))
    lane = tuple(Run(o, 0, 1) for o in range(len(kernels)))
    return RProgram("products", graph, tuple(k.spec for k in kernels), (lane,), 0, {}, 0)


if __name__ == "__main__":
    main()
