"""Print what a row of the plan costs in the persistent kernels of models, as the SASS of each says."""

import argparse
import statistics

import tvm_rammer
from tvm_rammer.nvcc import compile_cuda
from tvm_rammer.nvcc.ptxas import parse_reports
from tvm_rammer.nvcc.rows import row_costs
from tvm_rammer.nvcc.sass import disassemble
from tvm_rammer.zoo.models import MODELS, model_names

HEAD = """| model | no wait | a wait, and a trip of {trip} | run: median, most | signal | registers | spills |
|---|---|---|---|---|---|---|"""


def main() -> None:
    """Read the command line, compile, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=model_names, help=f"of {', '.join(MODELS)}")
    parser.add_argument("--target", default="cuda:h200", help="a GPU by name (cuda:h200)")
    options = parser.parse_args()
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
            loads = f"{statistics.median(costs.loads):.0f}, {max(costs.loads):.0f}"
            print(f"| {model} | {costs.row:.0f} | {costs.wait - costs.row:.0f} | {loads} | {costs.signal:.0f} | "
                  f"{needs[name].registers} | {needs[name].spill_bytes} |")  # fmt: skip


if __name__ == "__main__":
    main()
