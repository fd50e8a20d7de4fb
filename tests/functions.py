"""Fused functions of single operators, as the passes make them, for the tests of kernels."""

from collections.abc import Callable, Sequence

import numpy as np
import tvm
from tvm import relax, tirx

from tvm_rammer.device import DeviceSpec, host_cpu
from tvm_rammer.keep_indices import keep_indices
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.relay_passes.passes.legalization import exact_legalization
from tvm_rammer.rkernel_gen.construct import choose
from tvm_rammer.rkernel_gen.tiling import Function, Tiling

TARGET = tvm.target.Target(host_cpu().target_config())
UNOPTIMISED = tvm.target.Target(host_cpu().target_config() | {"opt-level": 0})
"""What LLVM makes for it takes half the time: for the many tilings that differ in their TIR, not in what LLVM does."""


def relax_module(
    shapes: Sequence[tuple[int, ...]],
    build: Callable[..., relax.Expr],
    names: str = "x{}",
    dtype: str | Sequence[str] = "float32",
) -> tvm.IRModule:
    """A module whose `main` takes tensors of these shapes, named by their numbers; of one type, or each of its own."""
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else dtype
    types = [relax.TensorType(*given) for given in zip(shapes, dtypes, strict=True)]
    params = [relax.Var(names.format(i), given) for i, given in enumerate(types)]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(build(*params))
        builder.emit_func_output(out)
    return builder.get()


def fused(
    shapes: Sequence[tuple[int, ...]],
    build: Callable[..., relax.Expr],
    target: tvm.target.Target = TARGET,
    names: str = "x{}",
    dtype: str | Sequence[str] = "float32",
) -> tirx.PrimFunc:
    """The one function that the graph of `relax_module` fuses to.

    All weights are parameters, and taken for finite constants, as those of a model are.
    """
    legalizations = {name: f for name, f in exact_legalization(target).items() if not name.endswith("d_transpose")}
    passes = [
        relax.transform.LegalizeOps(legalizations),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.DeadCodeElimination(),
    ]
    with target:
        module = tvm.transform.Sequential(passes)(relax_module(shapes, build, names, dtype))
    (func,) = [f for f in module.functions.values() if isinstance(f, tirx.PrimFunc)]
    return func


def random_arrays(func: tirx.PrimFunc, seed: int = 0) -> list[np.ndarray]:
    """Seeded values for each parameter of a function."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal([int(s) for s in p.shape]).astype(str(p.dtype)) for p in func.params]


def run(func: tirx.PrimFunc, arrays: Sequence[np.ndarray], target: tvm.target.Target = TARGET) -> np.ndarray:
    """Call a function of TVM's and return its last parameter."""
    (result,) = run_each([func], [arrays], target)
    return result


def run_each(
    functions: Sequence[tirx.PrimFunc], arrays: Sequence[Sequence[np.ndarray]], target: tvm.target.Target = TARGET
) -> list[np.ndarray]:
    """Call several functions, each with its arrays, and return the last parameter of each.

    Small ones take LLVM half the time if they are one module. The other half are checks of the arguments, which are
    made here instead.
    """
    for func, given in zip(functions, arrays, strict=True):
        wanted = [([int(s) for s in p.shape], str(p.dtype)) for p in func.params]
        assert [([*a.shape], str(a.dtype)) for a in given] == wanted
    named = {f"main{i}": keep_indices(func).with_attr("global_symbol", f"main{i}") for i, func in enumerate(functions)}
    with tvm.transform.PassContext(config={"tirx.disable_assert": True}):
        built = tvm.compile(tvm.IRModule(named), target=target)
    results = []
    for name, given in zip(named, arrays, strict=True):
        tensors = [tvm.runtime.tensor(a) for a in given]
        built[name](*tensors)
        results.append(tensors[-1].numpy())
    return results


def run_kernels(
    kernels: Sequence[ScheduledKernel], arrays: Sequence[np.ndarray], target: tvm.target.Target = TARGET
) -> list[np.ndarray]:
    """What kernels of one function compute, each of its packed weights."""
    packed = [[k.packs[i].apply(a) if i in k.packs else a for i, a in enumerate(arrays)] for k in kernels]
    return run_each([k.func for k in kernels], packed, target)


def chosen(
    name: str,
    func: tirx.PrimFunc,
    device: DeviceSpec,
    constants: frozenset[int] = frozenset(),
    *,
    repeated: bool = False,
) -> tuple[ScheduledKernel, ...]:
    """The kernels that a compilation would build of a function."""
    return choose(Function(name, func, device, constants, repeated))


def best_of_each_size(tilings: Sequence[Tiling]) -> list[Tiling]:
    """For each power of two of rTasks the tiling of a rule that is predicted to be best."""
    found: dict[int, Tiling] = {}
    for tiling in sorted(tilings, key=lambda t: t.rtask_us * t.num_rtasks):
        found.setdefault(tiling.num_rtasks.bit_length(), tiling)
    return [found[size] for size in sorted(found)]
