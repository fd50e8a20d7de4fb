"""TVM's lowering for a CPU, without the passes that have nothing to do in rTask functions.

Those are lowered to loops over flat arrays when they are made (`rtask`), have no threads of a GPU, and allocate
nothing. TVM's own pipeline would simplify and flatten them once more, and look for what loops share, as LLVM does
after it.
"""

import tvm
from tvm import s_tir, tirx
from tvm.tirx.compilation_pipeline import register_tir_pipeline

PIPELINE = "rammer_cpu"
"""Name for `tvm.compile(..., tir_pipeline=PIPELINE)`."""

RTASK = "rammer.rtask_function"
"""Attribute of a function that `rtask` made."""

SMALL_ARRAYS = "rammer.small_arrays"
"""Attribute of a function without TVM's interface that has arrays of its own. TVM puts them on the stack of the device
that it finds named around them, and moves them to where only its interface would name one."""

_CPU = 1
"""As DLPack numbers devices."""


def _finish_rtasks() -> tvm.transform.Pass:
    return tvm.transform.Sequential(
        [
            tirx.transform.BF16ComputeLegalize(),
            tirx.transform.VectorizeLoop(),
            tirx.transform.UnrollLoop(),
            s_tir.transform.HoistIfThenElse(),  # and it simplifies
            s_tir.transform.RewriteUnsafeSelect(),
            tirx.transform.FP8ComputeLegalize(),
            tirx.transform.FP8StorageLegalize(),
            tirx.transform.BF16StorageLegalize(),
        ]
    )


def _name_device(mod: tvm.IRModule) -> tvm.IRModule:
    made = mod.clone()
    for var, func in mod.functions.items():
        if SMALL_ARRAYS in (func.attrs or {}):
            body = func.body
            for key, value in (("device_type", _CPU), ("device_id", 0)):
                body = tirx.AttrStmt(tirx.IntImm("int32", 0), key, tirx.IntImm("int32", value), body)
            made.update_func(var, func.with_body(body))
    return made


def _pipeline() -> tuple[tvm.transform.Pass, object, object]:
    lower, finish_host, finish_device = tirx.get_tir_pipeline("s_tir")

    @tvm.transform.module_pass(opt_level=0, name="LowerAroundRTasks")  # type: ignore[untyped-decorator]  # TVM's are
    def run(mod: tvm.IRModule, context: tvm.transform.PassContext) -> tvm.IRModule:
        if any(str(name).startswith("tirx.") for name in context.config):
            return _name_device(lower(mod))  # somebody has set how TVM lowers
        rtasks = {var: func for var, func in mod.functions.items() if RTASK in (func.attrs or {})}
        others = {var: func for var, func in mod.functions.items() if var not in rtasks}
        lowered = _name_device(lower(tvm.IRModule(others, attrs=mod.attrs)))
        finished = _finish_rtasks()(tvm.IRModule(rtasks))
        return tvm.IRModule({**dict(lowered.functions), **dict(finished.functions)}, attrs=lowered.attrs)

    return run, finish_host, finish_device


register_tir_pipeline(PIPELINE, _pipeline)
