"""Where the time of another shape's compilation goes, and how much of its code is that of the first shape.

Processor seconds of the stages. Then LLVM alone, on one kernel at a time: on kernels that are equal to one of the first
shape, on those that differ in nothing but numbers, and on others; with how many there are.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import tvm
from shapes import MODELS
from tvm import tirx

from tvm_rammer.compilation.compiler import load_request
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.regions import plan_regions
from tvm_rammer.compilation.request import Request
from tvm_rammer.compilation.stages import find_kernels, lower
from tvm_rammer.compilation.target import resolve_device, tvm_target, with_threads
from tvm_rammer.persistent_codegen import CPU_PIPELINE
from tvm_rammer.zoo.models import names_of

Result = TypeVar("Result")
STAGES = ("import", "kernels", "plan", "lower", "LLVM")


class Stopwatch:
    """Adds up processor seconds by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, name: str, work: Callable[[], Result]) -> Result:
        """Do some work."""
        begun = time.process_time()
        result = work()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - begun
        return result


def kernels_of(mod: tvm.IRModule, record: Compilation) -> dict[str, tirx.PrimFunc]:
    """The rTask functions of a lowered module."""
    names = {kernel.name for program in record.programs for kernel in program.kernels}
    return {var.name_hint: func for var, func in mod.functions.items() if var.name_hint in names}


def compiled(request: Request, watch: Stopwatch) -> dict[str, tirx.PrimFunc]:
    """Compile a model stage by stage; its rTask functions."""
    target, record = tvm_target(request.device), Compilation(request.device)
    loaded = watch.time("import", lambda: load_request(request))
    module = watch.time("kernels", lambda: find_kernels(loaded.mod, record))
    module = watch.time("plan", lambda: plan_regions(module, record))
    lowered = watch.time("lower", lambda: lower(module, record))
    relaxed = tvm.transform.Sequential([])
    watch.time("LLVM", lambda: tvm.compile(lowered, target, relax_pipeline=relaxed, tir_pipeline=CPU_PIPELINE))
    return kernels_of(lowered, record)


def code(func: tirx.PrimFunc) -> str:
    """The text of a function without its name."""
    return re.sub(r"def \w+\(", "def kernel(", str(func.without_attr("global_symbol").script()))


def form(text: str) -> str:
    """A text without its numbers."""
    return re.sub(r"(?<![\w.])\d+(?![\w.])", "#", text)


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=names_of("models", MODELS), default=",".join(MODELS), metavar="MODEL,MODEL")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    args = parser.parse_args()
    device = with_threads(resolve_device("cpu"), args.threads)
    print(f"| model | sizes | {' | '.join(STAGES)} | LLVM: equal | numbers differ | others |\n|---|---|{'---|' * 8}")
    for name in args.only:
        make, every = MODELS[name]
        model, first = make(), set[str]()
        for sizes in every:
            watch, watches = Stopwatch(), Stopwatch()
            kernels = compiled(Request((model,), (sizes,), device), watch)
            texts, found = {n: code(func) for n, func in kernels.items()}, dict.fromkeys(("equal", "alike", "other"), 0)
            for n, func in kernels.items():
                alike = form(texts[n]) in set(map(form, first))
                kind = "equal" if texts[n] in first else "alike" if alike else "other"
                found[kind] += 1
                mod = tvm.IRModule({n: func})
                watches.time(kind, lambda: tirx.build(mod, target=tvm_target(device), pipeline=CPU_PIPELINE))  # noqa: B023
            first = first or set(texts.values())
            stages = " | ".join(f"{watch.seconds[stage]:.2f}" for stage in STAGES)
            told = " | ".join(f"{watches.seconds.get(kind, 0.0):.2f} ({n})" for kind, n in found.items())
            print(f"| {name} | {', '.join(map(str, sizes.values()))} | {stages} | {told} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
