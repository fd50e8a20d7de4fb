"""The kernels of a lowered module: their CUDA text, and how TVM's host code launches them."""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx
from tvm.tirx.buffer import BufferType

from ..errors import CodegenError
from ..ir import ITEM_BYTES
from ..persistent_codegen.cuda.pipeline import PIPELINE

_AXES = ("x", "y", "z")
_TAGS = "tirx.kernel_launch_params"
_DYNAMIC_SHARED, _COOPERATIVE = "tirx.use_dyn_shared_memory", "tirx.use_cooperative_launch"


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One launch in the host code of a function.

    Parameters
    ----------
    kernel : str
    arguments : tuple of str
        Names of the function's parameters, or of its own memory (`HostFunction.memory`).
    grid, block : tuple of int
    shared_bytes : int
    cooperative : bool
    """

    kernel: str
    arguments: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    cooperative: bool


@dataclass(frozen=True, slots=True)
class HostFunction:
    """What a function of the module does on the GPU.

    Parameters
    ----------
    parameters : tuple of str
    nbytes : tuple of int
        Size of each parameter.
    memory : dict of str to int
        Bytes that it allocates on the GPU for itself, by name.
    calls : tuple of KernelCall
    written : frozenset of str
        The parameters that may be written.
    """

    parameters: tuple[str, ...]
    nbytes: tuple[int, ...]
    memory: dict[str, int]
    calls: tuple[KernelCall, ...]
    written: frozenset[str]


def lower_kernels(mod: tvm.IRModule, target: tvm.target.Target) -> tuple[str, dict[str, HostFunction]]:
    """Lower the PrimFuncs of a module as `tvm.compile` does.

    Parameters
    ----------
    mod : tvm.IRModule
        What the Relax virtual machine's code generator gets: everything scheduled.
    target : tvm.target.Target
        CUDA.

    Returns
    -------
    str
        CUDA text of all kernels.
    dict of str to HostFunction
        By the name of the PrimFunc.

    Raises
    ------
    CodegenError
        A kernel takes something else than pointers, or its launch depends on data.
    """
    functions = {
        gv: _with_unique_names(_at_offset_0(f)) for gv, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)
    }
    build = importlib.import_module("tvm.tirx.build")  # `tvm.tirx.build` itself is the function
    pipeline, _, finalize_device = tirx.get_tir_pipeline(PIPELINE)
    lowered = pipeline(tirx.transform.BindTarget(target)(tvm.IRModule(functions)))
    host, devices = build.split_host_device_mods(lowered)
    device = tvm.IRModule({gv: f for module in devices.values() for gv, f in module.functions.items()})
    text = build.codegen_build(finalize_device()(device), target).inspect_source("cuda")
    kernels = {gv.name_hint: f for gv, f in device.functions.items()}
    found = {
        gv.name_hint: _host_function(gv.name_hint, functions[gv], host[gv.name_hint], kernels)
        for gv in functions
        if gv.name_hint in {v.name_hint for v in host.functions}
    }
    return str(text), found


def _at_offset_0(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Let every tensor begin at its pointer: functions that TVM wrote by hand, as its ScatterND, take offsets, too."""
    offset = {p: p.ty.elem_offset for p in func.params if isinstance(p.ty, BufferType)}
    moved = {
        p: tirx.decl_buffer(p.ty.shape, str(p.ty.dtype), p.name, layout=None)
        for p, at in offset.items() if isinstance(at, tirx.Var)
    }  # fmt: skip
    if not moved:
        return func
    values = {**moved, **{offset[p]: tirx.const(0, str(offset[p].ty.dtype)) for p in moved}}
    body = tvm_ffi.structural_map(func.body, (tirx.Var, lambda v: values.get(v, v)), order="post")
    return tirx.PrimFunc([moved.get(p, p) for p in func.params], body, func.ret_type, func.attrs)


def _with_unique_names(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Rename the parameters where two have one name: kernels' parameters are found by name."""
    names = [p.name for p in func.params]
    if len(set(names)) == len(names):
        return func
    renamed = {p: tirx.Var(f"p{i}_{p.name}", p.ty) for i, p in enumerate(func.params)}
    body = tvm_ffi.structural_map(func.body, (tirx.Var, lambda v: renamed.get(v, v)), order="post")
    return tirx.PrimFunc(list(renamed.values()), body, func.ret_type, func.attrs)


def _host_function(
    name: str, func: tirx.PrimFunc, host: tirx.PrimFunc, kernels: dict[str, tirx.PrimFunc]
) -> HostFunction:
    memory: dict[str, int] = {}
    calls: list[KernelCall] = []

    def allocation(node: tirx.AllocBuffer) -> None:
        memory[node.buffer.name] = nbytes_of(node.buffer.shape, str(node.buffer.dtype))

    def call(node: tvm.ir.Call) -> None:
        if getattr(node.op, "name", "") == "tirx.call_ffi_kernel":
            calls.append(_kernel_call(name, node, kernels))

    def loop(node: tirx.For | tirx.While | tirx.IfThenElse) -> None:
        inner: list[tvm.ir.Call] = []
        tvm_ffi.structural_walk(node, [(tvm.ir.Call, inner.append)], order="pre")
        if any(getattr(made.op, "name", "") == "tirx.call_ffi_kernel" for made in inner):
            raise CodegenError(f"{name} launches kernels in a loop or a branch of its host code; only TVM can run it")

    repeated = [(kind, loop) for kind in (tirx.For, tirx.While, tirx.IfThenElse)]
    tvm_ffi.structural_walk(host.body, [*repeated, (tirx.AllocBuffer, allocation), (tvm.ir.Call, call)], order="pre")
    own = tuple(p.name for p in func.params)
    numbers = [p.name for p in func.params if not isinstance(p.ty, BufferType)]
    if numbers:
        raise CodegenError(f"{name} takes {', '.join(numbers)} beside tensors, as the data say; only TVM can run it")
    sizes = tuple(nbytes_of(p.shape, str(p.dtype)) for p in func.params)
    known = {*own, *memory}
    for made in calls:
        unknown = sorted(set(made.arguments) - known)
        if unknown:
            raise CodegenError(
                f"kernel {made.kernel} of {name} takes {unknown} beside {sorted(known)}; give it pointers"
            )
    return HostFunction(own, sizes, memory, tuple(calls), _written(func))


def _written(func: tirx.PrimFunc) -> frozenset[str]:
    """The parameters of a function that are stored to, or whose address goes somewhere else."""
    names = {param: param.name for param in func.params}
    found: set[str | None] = set()

    def store(node: tirx.BufferStore) -> None:
        found.add(names.get(node.buffer))

    def everything_in(node: tirx.Stmt | tvm.ir.Expr) -> None:
        tvm_ffi.structural_walk(node, [(tirx.Var, lambda var: found.add(names.get(var)))], order="pre")

    def alias(node: tirx.DeclBuffer) -> None:
        everything_in(node.data)

    def call(node: tvm.ir.Call) -> None:
        if getattr(node.op, "name", "") in ("tirx.address_of", "tirx.tvm_access_ptr", "tirx.call_extern"):
            everything_in(node)

    walked = [(tirx.BufferStore, store), (tirx.DeclBuffer, alias), (tvm.ir.Call, call)]
    tvm_ffi.structural_walk(func.body, walked, order="pre")
    return frozenset(name for name in found if name)


def nbytes_of(shape: Sequence[tvm.ir.Expr], dtype: str) -> int:
    """Bytes of a tensor of static shape.

    Raises
    ------
    CodegenError
        The shape is not static.
    """
    if not all(isinstance(n, int | tirx.IntImm) for n in shape):
        raise CodegenError(f"a buffer has the shape {list(shape)}; give the model static shapes")
    return math.prod(int(n) for n in shape) * ITEM_BYTES[dtype]


def _kernel_call(name: str, node: tvm.ir.Call, kernels: dict[str, tirx.PrimFunc]) -> KernelCall:
    kernel = str(node.args[0].value)
    arguments = tuple(p.name.removesuffix("_ptr") for p in kernels[kernel].params)
    tags = [str(tag) for tag in node.attrs.launch_params]
    values = list(node.args)[1 + len(arguments) :]
    extents = [tag for tag in tags if tag != _COOPERATIVE]
    if len(values) != len(extents) or not all(isinstance(v, tirx.IntImm) for v in values):
        raise CodegenError(f"the launch of {kernel} in {name} is not static: {tags} = {values}")
    given = {tag: int(v) for tag, v in zip(extents, values, strict=True)}
    return KernelCall(
        kernel=kernel,
        arguments=arguments,
        grid=_extents(given, "blockIdx."),
        block=_extents(given, "threadIdx."),
        shared_bytes=given.get(_DYNAMIC_SHARED, 0),
        cooperative=_COOPERATIVE in [str(tag) for tag in kernels[kernel].attrs[_TAGS]],
    )


def _extents(given: dict[str, int], prefix: str) -> tuple[int, int, int]:
    x, y, z = (given.get(prefix + axis, 1) for axis in _AXES)
    return x, y, z
