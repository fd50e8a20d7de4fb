"""Print what a row costs in the persistent kernels of models, by their SASS; or what a step of a loop costs."""

import argparse
import statistics

import tvm_rammer
from tvm_rammer.compilation.compiler import compile_loaded, load_request
from tvm_rammer.compilation.request import Request
from tvm_rammer.device import DeviceSpec, preset
from tvm_rammer.ir import RProgram, Run
from tvm_rammer.nvcc import compile_cuda
from tvm_rammer.nvcc.ptxas import parse_reports
from tvm_rammer.nvcc.rows import row_costs, rtask_costs
from tvm_rammer.nvcc.sass import Kernel, disassemble
from tvm_rammer.wavefront import CostModel, critical_path
from tvm_rammer.zoo.models import MODELS, model_names
from tvm_rammer.zoo.onnx_lstm import onnx_lstm

HEAD = """\
| model | decoding: median, most | a wait, beside a trip of {trip} | run: median, most | signal | registers | spills |
|---|---|---|---|---|---|---|"""

STEP_HEAD = """\
| layers x steps x units | vEUs | KiB of a vEU on chip | of all KiB on chip | registers | spills | predicted us | \
wait | begin | loads | products | sums | cells | signal | all parts |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Read the command line, compile, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("models", nargs="?", type=model_names, help=f"of {', '.join(MODELS)}")
    what.add_argument("--loops", nargs="+", type=_sizes, metavar="LAYERSxSTEPSxUNITS", help="LSTMs as loops")
    parser.add_argument("--target", default="cuda:h200", help="a GPU by name (cuda:h200)")
    options = parser.parse_args()
    if options.loops:
        print(STEP_HEAD)
        for sizes in options.loops:
            print(_step_line(sizes, preset(options.target)), flush=True)
        return
    for n, model in enumerate(options.models):
        module = tvm_rammer.compile(MODELS[model](), target=options.target)
        compiled = compile_cuda(module.cuda_source(), module.compilation.device.arch)
        needs = parse_reports(compiled.report)
        for name, kernel in disassemble(compiled.cubin).items():
            if name.removesuffix("_kernel") not in module.compilation.resources:
                continue
            costs = row_costs(kernel)
            if n == 0:
                print(HEAD.format(trip=f"{costs.trip:.0f}"))
            rows, loads = (f"{statistics.median(some):.0f}, {max(some):.0f}" for some in (costs.rows, costs.loads))
            print(f"| {model} | {rows} | {costs.wait:.0f} | {loads} | {costs.signal:.0f} | "
                  f"{needs[name].registers} | {needs[name].spill_bytes} |")  # fmt: skip


def _sizes(text: str) -> tuple[int, int, int]:
    layers, steps, units = map(int, text.split("x"))
    return layers, steps, units


def _step_line(sizes: tuple[int, int, int], device: DeviceSpec) -> str:
    """An LSTM whose layers are loops: the figures of all, then the parts of a step of the first in microseconds."""
    request = Request((onnx_lstm(*sizes),), (None,), device)
    plan = compile_loaded(request, load_request(request)).best
    programs = [p for p in plan.compilation.programs if p.steps > 1]
    compiled = compile_cuda(plan.cuda_source(), device.arch)
    code, needs = disassemble(compiled.cubin), parse_reports(compiled.report)
    first, names = programs[0], [f"{program.name}_kernel" for program in programs]
    warps = max(kernel.threads for kernel in first.kernels) // device.warp
    figures = [(first.makespan_us - device.launch_us) / first.steps]
    if first.kept_bytes:
        parts = _step_parts(first, code[names[0]], warps, device)
        figures += [*parts, sum(parts)]
    kept, weights = sum(map(_bytes_kept, programs)), sum(map(_bytes_of_weights, programs))
    columns = [" x ".join(map(str, sizes)), max(len(p.lanes) for p in programs)]
    columns += [f"{max(p.kept_bytes for p in programs) / 1024:.0f}", f"{kept / 1024:.0f} of {weights / 1024:.0f}"]
    columns += [max(needs[name].registers for name in names), max(needs[name].spill_bytes for name in names)]
    columns += [f"{figure:.2f}" for figure in figures]
    return f"| {' | '.join(map(str, columns))} |"


def _bytes_kept(program: RProgram) -> int:
    """On all vEUs together."""
    runs = [run for _, _, run in program.instructions() if isinstance(run, Run) and run.kept is not None]
    slices = [program.kernels[run.operator].slices for run in runs]
    return sum(run.count * of.nbytes for run, of in zip(runs, slices, strict=True) if of)


def _bytes_of_weights(program: RProgram) -> int:
    """All constants that a step reads."""
    read = {b for op in program.graph.operators for b in op.inputs}
    return sum(program.graph.buffers[b].nbytes for b in read if program.graph.buffers[b].kind == "constant")


def _step_parts(program: RProgram, kernel: Kernel, warps: int, device: DeviceSpec) -> tuple[float, ...]:
    """What the chain of a step consists of, in microseconds: the columns of the table from `wait` to `signal`.

    How often it waits and what it runs is the critical path's of the simulated plan; a wait is the device's figure for
    a signal that another vEU sees, all else is of the SASS.
    """
    path = critical_path(program, CostModel.of(device))
    signals, runs = (sum(step.kind == kind for step in path) / program.steps for kind in ("signal", "run"))
    products = sum(step.kind == "run" and program.kernels[step.operator % len(program.kernels)].slices is not None
                   for step in path) / program.steps  # fmt: skip
    row, rtasks = row_costs(kernel), rtask_costs(kernel, warps)
    product = max((one for one in rtasks if one.products), key=lambda one: one.loads + one.products + one.rest)
    cell = max(one.loads + one.rest for one in rtasks if not one.products)
    cycles = (
        signals * row.wait + (runs - signals) * statistics.median(row.rows),
        products * product.loads,
        products * product.products,
        products * product.rest,
        (runs - products) * cell,
        signals * row.signal,
    )
    return signals * device.signal_us, *(n / (device.clock_ghz * 1e3) for n in cycles)


if __name__ == "__main__":
    main()
