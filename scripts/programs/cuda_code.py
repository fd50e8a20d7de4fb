"""Print a table of models: the code of their kernels for a GPU, and the time in which nvcc compiles it."""

import argparse
import re
import resource
from dataclasses import replace

from tvm_rammer.compilation.compiler import load_request, lower_loaded
from tvm_rammer.compilation.request import Request
from tvm_rammer.compilation.target import tvm_target
from tvm_rammer.compilation.unrolling import with_loops
from tvm_rammer.device import preset
from tvm_rammer.gpu_bundle.kernels import lower_kernels
from tvm_rammer.nvcc import code_bytes, compile_cuda
from tvm_rammer.zoo.models import MODELS, model_names

HEAD = """\
| model | kernels | rKernels | rTask functions | code KB | registers | spilled bytes | nvcc, s of a processor | again |
|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Read the command line, plan, compile, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=model_names, help=f"of {', '.join(MODELS)}")
    parser.add_argument("--target", default="cuda:h200", help="a GPU by name (cuda:h200)")
    options = parser.parse_args()
    print(HEAD)
    for model in options.models:
        request = Request((MODELS[model](),), (None,), preset(options.target))
        print(_row(model, request), flush=True)


def _row(model: str, request: Request) -> str:
    return with_loops(lambda loops: _cells(model, replace(request, loops=loops)), request.keeps_loops)


def _cells(model: str, request: Request) -> str:
    """The model is lowered, its text compiled by itself, and the model lowered again."""
    mod, record = lower_loaded(request, load_request(request))
    text, functions = lower_kernels(mod, tvm_target(request.device))
    began = _children_s()
    cubin = compile_cuda(text, request.device.arch).cubin
    first = _children_s() - began
    lower_loaded(request, load_request(request))
    again = _children_s() - began - first
    kernels = sum(len(function.calls) for function in functions.values())
    used = {kernel.name for program in record.programs for kernel in program.kernels}
    made = set(re.findall(r"__device__ void (\w+)\(", text[text.index('extern "C"') :]))
    code = sum(code_bytes(cubin).values()) / 1024
    registers = max(int(need["registers"]) for need in record.resources.values())
    spilled = sum(int(need["spill_bytes"]) for need in record.resources.values())
    return (f"| {model} | {kernels} | {len(used)} | {len(made)} | {code:.0f} | {registers} | {spilled} | {first:.0f} | "
            f"{again:.0f} |")  # fmt: skip


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
