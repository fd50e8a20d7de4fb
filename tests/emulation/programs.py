"""From a small Relax module to its rPrograms on a GPU, their CUDA text, and an emulated run."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import tvm
from tvm import relax, tirx

from tests.emulation.emulate import run_emulated
from tests.functions import chosen
from tvm_rammer import relay_passes
from tvm_rammer.compilation.splitting import split_long_sums
from tvm_rammer.device import DeviceSpec, preset
from tvm_rammer.ir import Copies, RKernel, RProgram
from tvm_rammer.kernel import RTaskFunction, ScheduledKernel
from tvm_rammer.persistent_codegen import AssembledProgram, cuda_source
from tvm_rammer.persistent_codegen.cuda.memory import CONSTANT_NAMES
from tvm_rammer.persistent_codegen.cuda.program import assemble_cuda
from tvm_rammer.persistent_codegen.cuda.rtask import extract_cuda
from tvm_rammer.persistent_codegen.share_code import share_code
from tvm_rammer.rkernel_gen import find_copies
from tvm_rammer.rkernel_gen.make_kernels import constant_parameters, repeated_functions
from tvm_rammer.wavefront import schedule, schedule_loop

H200 = preset("cuda:h200")


@dataclass
class Built:
    """A program with its kernels, their functions in its text, its constants, its text, and the arrays of a run."""

    program: RProgram
    kernels: Sequence[ScheduledKernel]
    functions: Sequence[RTaskFunction]
    values: Mapping[int, np.ndarray]
    cuda: AssembledProgram
    source: str
    state: np.ndarray

    def run(
        self, inputs: Mapping[str, np.ndarray], seed: int = 0, source: str | None = None, mutants: Collection[int] = ()
    ) -> dict[str, np.ndarray]:
        """Run it emulated; inputs and outputs are by the names of the graph's buffers."""
        buffers = self.program.graph.buffers
        args = dict(zip(CONSTANT_NAMES, self.cuda.constants, strict=True)) | {"state": self.state}
        args["workspace"] = np.full(self.cuda.workspace_bytes, 0xFF, np.uint8)
        outputs, written = {}, set()
        for i, b in enumerate(self.cuda.inputs):
            args[f"segment{i}"] = np.ascontiguousarray(inputs[buffers[b].name])
        for i, b in enumerate(self.cuda.outputs, len(self.cuda.inputs)):
            buffer = buffers[b]
            outputs[buffer.name] = args[f"segment{i}"] = np.full(buffer.shape, 0x7F, buffer.dtype)
            written.add(f"segment{i}")
        grid, block = (len(self.program.lanes),), (self.cuda.threads,)
        name = f"{self.program.name}_kernel"
        read_only = args.keys() - {"state", "workspace"} - written
        run_emulated(source or self.source, name, grid, block, self.cuda.shared_bytes, args, seed, read_only, mutants)
        return outputs


def build(
    program: RProgram, kernels: Sequence[ScheduledKernel], values: Mapping[int, np.ndarray], device: DeviceSpec = H200
) -> Built:
    """Generate the text of a program."""
    extracted = {k.spec.name: extract_cuda(k, device) for k in kernels}
    functions = [extracted[k.spec.name] for k in kernels]
    cuda = assemble_cuda(program, values, [k.packs for k in kernels], functions, device)
    shared = share_code(functions, program.name)
    return Built(program, kernels, shared, values, cuda, cuda_source(cuda, device), cuda.constants[-1].copy())


def plan(
    module: tvm.IRModule,
    veus: int,
    device: DeviceSpec = H200,
    choose: Callable[[Sequence[ScheduledKernel]], Sequence[ScheduledKernel]] = tuple,
    sync: str = "auto",
) -> list[Built]:
    """All programs of a module, planned for `veus` vEUs.

    Parameters
    ----------
    choose : callable
        Which of a function's kernels the scheduler may take.
    """
    regions, made, copies = _regions_and_kernels(module, device)
    built = []
    for region in regions:
        used = {op.function for op in region.graph.operators}
        kernels = {name: tuple(choose(made[name])) for name in sorted(used)}
        specs: dict[str, tuple[RKernel, ...]] = {name: tuple(k.spec for k in ks) for name, ks in kernels.items()}
        by_name = {k.spec.name: k for ks in kernels.values() for k in ks}
        exprs = {b.name: e for b, e in zip(region.graph.buffers, region.buffer_exprs, strict=True)}
        units = replace(device, units=veus)
        if region.body:
            programs = schedule_loop(region.graph, specs, units, veus=veus, copies=copies)
        else:
            programs = schedule(region.graph, specs, units, veus=veus, sync=sync, copies=copies)
        for program in programs:
            buffers = enumerate(program.graph.buffers)
            values = {i: exprs[b.name].value.numpy() for i, b in buffers if b.kind == "constant"}
            built.append(build(program, [by_name[k.name] for k in program.kernels], values, device))
    return built


@functools.lru_cache(maxsize=8)
def _regions_and_kernels(
    module: tvm.IRModule, device: DeviceSpec
) -> tuple[tuple[relay_passes.Region, ...], dict[str, tuple[ScheduledKernel, ...]], Copies]:
    """What all plans of a module begin with."""
    module = split_long_sums(relay_passes.prepare(tvm.target.Target(device.target_config()))(module), device)
    functions = {gv.name_hint: f for gv, f in module.functions.items() if isinstance(f, tirx.PrimFunc)}
    regions = relay_passes.partition(module).regions
    graphs = [region.graph for region in regions]
    repeated = repeated_functions(graphs)
    made = {
        name: chosen(name, functions[name], device, constants, repeated=name in repeated)
        for name, constants in constant_parameters(graphs).items()
    }
    return regions, made, find_copies(graphs, functions)


def reference(module: tvm.IRModule, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What stock TVM computes on the CPU."""
    result = _stock(module)["main"](*[tvm.runtime.tensor(a) for a in inputs])
    return [r.numpy() for r in result] if not hasattr(result, "numpy") else [result.numpy()]


@functools.lru_cache(maxsize=8)
def _stock(module: tvm.IRModule) -> relax.VirtualMachine:
    return relax.VirtualMachine(tvm.compile(module, tvm.target.Target({"kind": "llvm", "opt-level": 0})), tvm.cpu())


def run_all(built: Sequence[Built], inputs: Mapping[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
    """Run programs one after another; return every array that was written."""
    known = dict(inputs)
    for one in built:
        known |= one.run(known, seed)
    return known
