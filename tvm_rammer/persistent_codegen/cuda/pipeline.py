"""TVM's own lowering, and what comes only after its split of host and device: two things about persistent kernels, and
arithmetic that is defined for every value in the kernels that are stock TVM's. And how TVM then compiles the text.

A grid that is too large to be resident must fail to start, or it would deadlock: blocks would wait for blocks that
never start. TVM's CUDA runtime knows the launch tag for that, but none of TVM's passes sets it (the function
attribute of the same name is dropped by SplitHostDevice).

The kernel's pointers must not be `__restrict__`, as SplitHostDevice makes them: other blocks write the workspace
meanwhile, and the compiler might keep what it has read over a barrier. The rTask functions keep theirs.

TVM asks ptxas to take registers as freely as it can. Of the many functions of a persistent kernel it then keeps values
over the whole loop, and spills; at its default level it does not. TVM has a variable of the environment for the level.
"""

import os
from collections.abc import Callable

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.support import nvcc
from tvm.tirx.compilation_pipeline import register_tir_pipeline

from ...define_arithmetic import DefineArithmetic
from ...loads import overlapping
from ...nvcc.compile import REGISTER_USAGE

PIPELINE = "rammer_cuda"
"""Name for `tvm.compile(..., tir_pipeline=PIPELINE)`."""

_TAGS = "tirx.kernel_launch_params"
_COOPERATIVE = "tirx.use_cooperative_launch"
_LAST_CALL = "rammer_finish"
"""How the name begins of the function with which every persistent kernel, and no other one, ends."""

LEVEL = "TVM_CUDA_PTXAS_REG_LEVEL"
"""TVM's variable for the level of register usage; where somebody has set it, it stays as it is."""

_compile: Callable[[str], bytes] = nvcc.tvm_callback_cuda_compile


@tvm.transform.module_pass(opt_level=0, name="MakeKernelsPersistent")  # type: ignore[untyped-decorator]  # TVM's are
def make_kernels_persistent(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    """Tag the launch of every kernel that counts its blocks with `rammer_finish`, and let its pointers alias."""
    mod = tvm.IRModule(dict(mod.functions), attrs=mod.attrs)
    for var, func in mod.functions.items():
        if isinstance(func, tirx.PrimFunc) and _TAGS in func.attrs and _is_persistent(func):
            tags = [str(tag) for tag in func.attrs[_TAGS]]
            # Those for the extents come first, the one for the size of shared memory last: they take arguments.
            axes = [tag for tag in tags if not tag.startswith("tirx.")]
            flags = [tag for tag in tags if tag not in axes and tag != _COOPERATIVE]
            func = func.without_attr("tirx.noalias")
            mod.update_func(var, func.with_attr(_TAGS, [*axes, _COOPERATIVE, *flags]))
    return mod


def _is_persistent(func: tirx.PrimFunc) -> bool:
    found = False

    def visit(call: Call) -> None:
        nonlocal found
        name = call.args[0] if getattr(call.op, "name", "") == "tirx.cuda.func_call" else None
        found = found or str(getattr(name, "value", "")).startswith(_LAST_CALL)

    tvm_ffi.structural_walk(func.body, [(Call, visit)], order="pre")
    return found


@tvm_ffi.register_global_func("tvm_callback_cuda_compile", override=True)  # type: ignore[untyped-decorator]  # TVM's are
def compile_text(code: str) -> bytes:
    """Compile CUDA text, as TVM does; one with a persistent kernel at ptxas's default level of register usage.

    Parameters
    ----------
    code : str

    Returns
    -------
    bytes
        A cubin or a fatbin, as `TVM_CUDA_COMPILE_MODE` says.
    """
    if f"{_LAST_CALL}(" not in code or LEVEL in os.environ:
        return _compile(code)
    os.environ[LEVEL] = str(REGISTER_USAGE)
    try:
        return _compile(code)
    finally:
        os.environ.pop(LEVEL, None)


def _pipeline() -> tuple[tvm.transform.Pass, object, object]:
    lower, finish_host, finish_device = tirx.get_tir_pipeline("s_tir")
    passes = [lower, make_kernels_persistent, DefineArithmetic("cuda")]
    return tvm.transform.Sequential(passes), finish_host, overlapping(finish_device)


register_tir_pipeline(PIPELINE, _pipeline)
