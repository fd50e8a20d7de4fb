"""Print a table of single operators: their CUDA rKernels with registers, shared memory and spills."""

import argparse
import pathlib
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from tvm import tirx

from tvm_rammer import relay_passes
from tvm_rammer.benchmark.operators import OPERATORS, Operator
from tvm_rammer.compilation.target import tvm_target
from tvm_rammer.device import PRESETS, DeviceSpec
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.nvcc.ptxas import Resources
from tvm_rammer.rkernel_gen.construct import choose
from tvm_rammer.rkernel_gen.cuda.resources import resources
from tvm_rammer.rkernel_gen.cuda.tensor_intrinsics import import_tensor_intrinsics
from tvm_rammer.rkernel_gen.tiling import Function
from tvm_rammer.zoo.models import names_of

DEVICES = {arch: next(d for d in PRESETS.values() if d.arch == arch) for arch in ("sm_80", "sm_90")}
"""What the variants are made for, by the name of the code."""

PRODUCTS = ("Conv", "MatMul", "Gemm")
"""Operators that are listed in half precision too: those that tensor cores can compute."""

HEAD = """| operator | arch | variants: rule, rTasks x threads, registers, shared memory, time of an rTask / of all |
|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Row:
    """The variants of one function on one device; `seconds` to choose and build them."""

    operator: str
    device: DeviceSpec
    kernels: tuple[ScheduledKernel, ...]
    seconds: float


def main() -> None:
    """Read the command line, build, compile, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", type=names_of("architectures", DEVICES), default="sm_80,sm_90", metavar="LIST")
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="operators whose names contain this")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FILE", help="write the table there")
    options = parser.parse_args()
    import_tensor_intrinsics()  # once a process, some seconds: not a cost of a function
    devices = [DEVICES[arch] for arch in options.arch]
    rows = list(_rows(options.only, devices))
    if not rows:
        parser.error(f"no operator's name contains {options.only!r}")
    begin = time.perf_counter()
    needs = {device.name: iter(resources(_kernels_on(device, rows), device)) for device in devices}
    compiled_s = time.perf_counter() - begin
    lines = [_line(row, [next(needs[row.device.name]) for _ in row.kernels]) for row in rows]
    text = "\n".join([HEAD, *lines]) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    print(text)
    times = [row.seconds for row in rows]
    count = sum(len(row.kernels) for row in rows)
    print(f"{len(rows)} functions, {count} kernels; space and building: median {statistics.median(times):.2f} s, "
          f"at most {max(times):.2f} s a function; ptxas: {compiled_s:.0f} s for all that it had not seen")  # fmt: skip


def _rows(only: str, devices: Sequence[DeviceSpec]) -> Iterator[Row]:
    for name, operator in OPERATORS.items():
        if only not in name:
            continue
        print(name, file=sys.stderr)
        models = [(name, operator.model())]
        if operator.kind in PRODUCTS:
            models.append((f"{name}, fp16", _half(operator)))
        for label, model in models:
            for device in devices:
                yield from _variants(label, model, device)


def _variants(label: str, model: onnx.ModelProto, device: DeviceSpec) -> Iterator[Row]:
    """One row for each function that the operator becomes."""
    target = tvm_target(device)
    module = relay_passes.prepare(target)(relay_passes.load_model(model))
    functions = {v.name_hint: f for v, f in module.functions.items() if isinstance(f, tirx.PrimFunc)}
    for name, func in functions.items():
        begin = time.perf_counter()
        kernels = choose(Function(name, func, device))
        operator = label if len(functions) == 1 else f"{label}: {name}"
        yield Row(operator, device, kernels, time.perf_counter() - begin)


def _half(operator: Operator) -> onnx.ModelProto:
    """The operator's model with all its tensors in half precision."""
    model = operator.model()
    graph = model.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    for weight in graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).astype(np.float16), weight.name))
    return model


def _kernels_on(device: DeviceSpec, rows: Sequence[Row]) -> list[ScheduledKernel]:
    return [kernel for row in rows if row.device == device for kernel in row.kernels]


def _line(row: Row, needs: Sequence[Resources | None]) -> str:
    variants = (_variant(kernel, row.device, need) for kernel, need in zip(row.kernels, needs, strict=True))
    return f"| {row.operator} | {row.device.arch} | {'; '.join(variants)} |"


def _variant(kernel: ScheduledKernel, device: DeviceSpec, need: Resources | None) -> str:
    spec = kernel.spec
    registers = "?" if need is None else f"{need.registers}r"
    spills = f" **{need.spill_bytes} B spilled**" if need and need.spill_bytes else ""
    shared = f" {spec.shared_bytes / 1024:.1f}K" if spec.shared_bytes else ""
    alone = spec.rtask_us * -(-spec.num_rtasks // device.units)
    rule = f"{kernel.rule} {spec.num_rtasks}x{spec.threads}"
    return f"{rule} {registers}{shared}{spills} {spec.rtask_us:.1f}/{alone:.1f} us"


if __name__ == "__main__":
    main()
