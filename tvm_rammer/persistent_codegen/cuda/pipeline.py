"""TVM's own lowering, and what comes only after its split of host and device: two things about persistent kernels, and
arithmetic that is defined for every value in the kernels that are stock TVM's.

A grid that is too large to be resident must fail to start, or it would deadlock: blocks would wait for blocks that
never start. TVM's CUDA runtime knows the launch tag for that, but none of TVM's passes sets it (the function
attribute of the same name is dropped by SplitHostDevice).

The kernel's pointers must not be `__restrict__`, as SplitHostDevice makes them: other blocks write the workspace
meanwhile, and the compiler might keep what it has read over a barrier. The rTask functions keep theirs.
"""

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.tirx.compilation_pipeline import register_tir_pipeline

from ...define_arithmetic import DefineArithmetic
from ...loads import overlapping

PIPELINE = "rammer_cuda"
"""Name for `tvm.compile(..., tir_pipeline=PIPELINE)`."""

_TAGS = "tirx.kernel_launch_params"
_COOPERATIVE = "tirx.use_cooperative_launch"


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
        found = found or getattr(name, "value", None) == "rammer_finish"

    tvm_ffi.structural_walk(func.body, [(Call, visit)], order="pre")
    return found


def _pipeline() -> tuple[tvm.transform.Pass, object, object]:
    lower, finish_host, finish_device = tirx.get_tir_pipeline("s_tir")
    passes = [lower, make_kernels_persistent, DefineArithmetic("cuda")]
    return tvm.transform.Sequential(passes), finish_host, overlapping(finish_device)


register_tir_pipeline(PIPELINE, _pipeline)
