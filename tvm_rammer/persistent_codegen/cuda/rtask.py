"""A scheduled CUDA kernel becomes the device function of its rTasks, at the level of the IR.

TVM lowers the kernel as for a launch of its own. Then the block and thread indices become parameters,
shared arrays become pointers into the vEU's arena, and the block barrier becomes one of the rTask's threads.
"""

import importlib
import math

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, Op
from tvm.tirx import Var

from ...device import DeviceSpec
from ...errors import CodegenError
from ...keep_indices import keep_indices
from ...kernel import RTaskFunction, ScheduledKernel
from ...loads import with_barriers_between_stages, without_added_barriers
from ..arrays import array_bytes, pointer_variable
from . import sync

RTASK_ATTRIBUTE = "rammer.rtask"
"""Marks the functions whose `global_symbol` the last Relax pass takes away: they are called within the device only."""

RTASK_BARRIER = 1
"""Hardware barrier of the rTask's own threads; 0 is the block's."""

_HIDDEN = "rammer_access_ptr"

_DEVICE_KERNEL_LAUNCH = 2  # tvm::CallingConv


def extract_cuda(kernel: ScheduledKernel, device: DeviceSpec) -> RTaskFunction:
    """Turn a scheduled function of one kernel into an rTask function.

    Parameters
    ----------
    kernel : ScheduledKernel
        Its blocks are the rTasks; their threads are a multiple of the warp.
    device : DeviceSpec
        A GPU.

    Returns
    -------
    RTaskFunction
        Parameters: the buffers' pointers in the operator's order, the shared arrays' pointers, `rtask`, `tid`.
        The `threads` threads of `tid` 0, 1, ... must call it together. It ends without a barrier.

    Raises
    ------
    CodegenError
        The function is not one kernel, or does what an rTask cannot do.
    """
    name = kernel.spec.name
    lowered = lower_kernel(name, kernel.func, device)
    axes = _launch_axes(lowered.body)
    blocks, threads = _count(axes, "blockIdx."), _count(axes, "threadIdx.")
    if blocks != kernel.spec.num_rtasks or threads != kernel.spec.threads:
        raise CodegenError(
            f"{name} is described as {kernel.spec.num_rtasks} rTasks of {kernel.spec.threads} threads, "
            f"but lowers to {blocks} of {threads}: correct the RKernel"
        )
    if threads % device.warp or threads > device.threads_per_block:
        raise CodegenError(
            f"{name} has {threads} threads an rTask; give it a multiple of {device.warp}, "
            f"at most {device.threads_per_block}"
        )
    pointers = _pointers(name, kernel.func, lowered)
    rtask, tid = Var("rtask", "int32"), Var("tid", "int32")
    indices = _split_index(axes, "blockIdx.", rtask) | _split_index(axes, "threadIdx.", tid)
    body, scratch = _rewrite(name, lowered.body, indices, threads)
    # Loops that the schedule leaves for nvcc to unroll stay loops when TVM lowers the function once more.
    body = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_unroll_explicit", tirx.IntImm("bool", 0), body)
    func = tirx.PrimFunc([*pointers, *(v for v, _ in scratch), rtask, tid], body, lowered.ret_type)
    for key in ("tirx.noalias", "tirx.is_scheduled", "s_tir", RTASK_ATTRIBUTE):
        func = func.with_attr(key, True)
    dtypes = tuple(str(p.dtype) for p in kernel.func.params)
    return RTaskFunction(name, func, dtypes, tuple(size for _, size in scratch), threads)


def lower_kernel(name: str, func: tirx.PrimFunc, device: DeviceSpec) -> tirx.PrimFunc:
    """Lower a scheduled function with TVM's own pipeline and return its only device function.

    Raises
    ------
    CodegenError
        It has no device function, or several.
    """
    target = tvm.target.Target(device.target_config())
    mod = tvm.IRModule({name: keep_indices(func).with_attr("global_symbol", name)})
    pipeline, _, _ = tirx.get_tir_pipeline("s_tir")
    lowering = importlib.import_module("tvm.tirx.build")  # `tvm.tirx.build` itself is the function
    _, devices = lowering.split_host_device_mods(pipeline(tirx.transform.BindTarget(target)(mod)))
    kernels = [f for m in devices.values() for f in m.functions.values()]
    if len(kernels) != 1 or int(kernels[0].attrs["calling_conv"]) != _DEVICE_KERNEL_LAUNCH:
        raise CodegenError(f"{name} lowers to {len(kernels)} kernels; an rOperator is one: schedule it otherwise")
    return _lower_quotients(kernels[0])


def _lower_quotients(kernel: tirx.PrimFunc) -> tirx.PrimFunc:
    """Lower rounded quotients while the extents of blocks and threads are known: those of a parameter are not.

    TVM makes slow code of a quotient that may be negative, and none where its divisor is large. Pointers to fragments
    stay as they are: lowered, they look as if nobody wrote through them, and RemoveNoOp removes the loads.
    """
    pointer = Op.get("tirx.tvm_access_ptr")

    def hide(call: Call) -> Expr:
        return tirx.call_extern("handle", _HIDDEN, *call.args) if call.op.same_as(pointer) else call

    def show(call: Call) -> Expr:
        hidden = getattr(call.op, "name", "") == "tirx.call_extern" and call.args[0].value == _HIDDEN
        return Call(pointer, call.args[1:], ret_ty=call.ty) if hidden else call

    body = tvm_ffi.structural_map(kernel.body, (Call, hide), order="post")
    module = tirx.transform.LowerIntrin()(tvm.IRModule({"kernel": kernel.with_body(body)}))
    lowered = module["kernel"]
    return lowered.with_body(tvm_ffi.structural_map(lowered.body, (Call, show), order="post"))


def _launch_axes(body: tirx.Stmt) -> dict[str, list[tuple[Var, int]]]:
    """Launch tag -> the variables that stand for it, each with the extent."""
    axes: dict[str, list[tuple[Var, int]]] = {}

    def visit(attr: tirx.AttrStmt) -> None:
        if attr.attr_key == "thread_extent":
            axes.setdefault(attr.node.thread_tag, []).append((attr.node.var, int(attr.value)))

    tvm_ffi.structural_walk(body, [(tirx.AttrStmt, visit)], order="pre")
    return axes


def _count(axes: dict[str, list[tuple[Var, int]]], prefix: str) -> int:
    return math.prod(found[0][1] for tag, found in axes.items() if tag.startswith(prefix))


def _split_index(axes: dict[str, list[tuple[Var, int]]], prefix: str, linear: Var) -> dict[Var, Expr]:
    """Write x, y and z through a linear index of which x is the fastest part, as the hardware numbers threads."""
    values: dict[Var, Expr] = {}
    rest: Expr = linear
    tags = [prefix + axis for axis in "xyz" if prefix + axis in axes]
    for tag in tags:
        extent = axes[tag][0][1]
        part = rest if tag == tags[-1] else tirx.truncmod(rest, extent)
        values |= {var: part.astype(str(var.ty)) for var, _ in axes[tag]}
        rest = tirx.truncdiv(rest, extent)
    return values


def _pointers(name: str, func: tirx.PrimFunc, lowered: tirx.PrimFunc) -> list[Var]:
    """Pointer parameters in the operator's order: TVM orders a kernel's by name, and drops those it does not use."""
    names = [p.name for p in func.params]
    if len(set(names)) != len(names):
        raise CodegenError(f"{name} has parameters of the same name, {names}; rename them apart")
    found = {p.name.removesuffix("_ptr"): p for p in lowered.params}
    unknown = sorted(set(found) - set(names))
    if unknown:
        raise CodegenError(f"the kernel of {name} takes {unknown} beside its buffers {names}; give it static shapes")
    unused = {p.name: pointer_variable(p.name, str(p.dtype)) for p in func.params}
    return [(unused | found)[n] for n in names]


def _rewrite(
    name: str, body: tirx.Stmt, indices: dict[Var, Expr], threads: int
) -> tuple[tirx.Stmt, list[tuple[Var, tuple[int, str]]]]:
    """Rewrite a kernel's body; return it, and for each shared array its pointer, bytes and element type."""
    scratch: list[tuple[Var, tuple[int, str]]] = []

    def allocation(node: tirx.AllocBuffer) -> tirx.Stmt:
        buffer = node.buffer
        if not str(buffer.scope()).startswith("shared"):
            return node
        if not all(isinstance(extent, tirx.IntImm) for extent in buffer.shape):
            raise CodegenError(f"{name} has a shared array of shape {list(buffer.shape)}; make it static")
        dtype = str(buffer.dtype)
        pointer = pointer_variable(buffer.name, dtype, "shared")
        scratch.append((pointer, (array_bytes(buffer), dtype)))
        return tirx.DeclBuffer(buffer, data=pointer)

    def attribute(node: tirx.AttrStmt) -> tirx.Stmt:
        # A reduction's attribute has done its work; a second lowering must not see it.
        return node.body if node.attr_key in ("thread_extent", "reduce_scope") else node

    def call(node: Call) -> Expr:
        operation = getattr(node.op, "name", "")
        if operation == "tirx.tvm_storage_sync" and node.args[0].value.startswith("shared"):
            return sync.rtask_barrier(RTASK_BARRIER, threads)
        if operation == "tirx.tvm_warp_activemask":
            # Warps are full, but after a branch of the interpreter their threads need not be together.
            return tirx.IntImm("uint32", 0xFFFFFFFF)
        if operation == "tirx.cuda.grid_sync":
            raise CodegenError(f"{name} has a barrier over its whole grid; rTasks of an operator are independent")
        return node

    rewrites = [(tirx.AllocBuffer, allocation), (tirx.AttrStmt, attribute), (Call, call)]
    body = without_added_barriers(with_barriers_between_stages(body))
    body = tvm_ffi.structural_map(body, rewrites, order="post")
    return tvm_ffi.structural_map(body, (Var, lambda v: indices.get(v, v)), order="post"), scratch
