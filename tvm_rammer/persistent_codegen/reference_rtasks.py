"""The rTasks of CPU kernels for the reference interpreter: compiled by plain TVM, one call for one rTask."""

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import tirx

from ..device import DeviceSpec
from ..errors import CodegenError
from ..kernel import ScheduledKernel
from .reference import RTaskCall


def compile_rtasks(kernels: Sequence[ScheduledKernel], device: DeviceSpec) -> list[RTaskCall]:
    """Compile what `interpret` calls.

    Parameters
    ----------
    kernels : sequence of ScheduledKernel
        For each operator, made for a CPU; equal ones are compiled once.
    device : DeviceSpec
        A CPU.

    Returns
    -------
    list of callable
        For each kernel.

    Raises
    ------
    CodegenError
        A kernel is for another device, or has no loop over its rTasks.
    """
    if device.kind != "cpu":
        raise CodegenError(f"the reference interpreter runs rTasks on a CPU, not on {device.name!r}")
    functions = {k.spec.name: one_rtask(k) for k in kernels}
    # The interpreter itself takes far longer than rTasks that LLVM did not optimise.
    built = tvm.compile(tvm.IRModule(functions), tvm.target.Target(device.target_config() | {"opt-level": 0}))
    found = {name: built[name] for name in functions}
    return [found[k.spec.name] for k in kernels]


def one_rtask(kernel: ScheduledKernel) -> tirx.PrimFunc:
    """Make of the parallel loop over all rTasks a function that runs one, given as one more parameter.

    Raises
    ------
    CodegenError
        There are several rTasks but no parallel loop of so many iterations.
    """
    rtask = tirx.Var("rtask", "int32")
    loops: list[tirx.For] = []
    tvm_ffi.structural_walk(kernel.func.body, (tirx.For, loops.append), order="pre")
    parallel = [loop for loop in loops if loop.kind == tirx.ForKind.PARALLEL]
    outer = parallel[0].loop_var if parallel else None
    if kernel.spec.num_rtasks > 1 and (not parallel or int(parallel[0].extent) != kernel.spec.num_rtasks):
        raise CodegenError(f"kernel {kernel.spec.name} has no parallel loop over its {kernel.spec.num_rtasks} rTasks")

    def rewrite(loop: tirx.For) -> tirx.For:
        if loop.kind != tirx.ForKind.PARALLEL:
            return loop
        if not loop.loop_var.same_as(outer):
            return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, loop.body)
        first = rtask.astype(str(loop.loop_var.ty.dtype))
        return tirx.For(loop.loop_var, first, 1, tirx.ForKind.SERIAL, loop.body)

    body = tvm_ffi.structural_map(kernel.func.body, (tirx.For, rewrite), order="post")
    func = tirx.PrimFunc([*kernel.func.params, rtask], body, kernel.func.ret_type, kernel.func.attrs)
    return func.with_attr("global_symbol", kernel.spec.name)
