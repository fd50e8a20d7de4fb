"""A persistent kernel inside a Relax module, through the stock `tvm.compile`, on a machine without a GPU."""

import tvm
from tvm import relax
from tvm.relax.backend.cuda.pipeline import get_default_pipeline

from tests.emulation.programs import H200
from tests.persistent_codegen.cuda.programs import planned
from tvm_rammer.persistent_codegen.cuda.pipeline import PIPELINE
from tvm_rammer.persistent_codegen.cuda.rtask import RTASK_ATTRIBUTE


def test_a_program_is_a_call_tir_of_a_relax_module():
    (built,) = planned("two_matmuls", 3)
    cuda, buffers = built.cuda, built.program.graph.buffers
    types = [relax.TensorType(buffer.shape, buffer.dtype) for buffer in buffers]
    params = [relax.Var(f"x{i}", types[b]) for i, b in enumerate(cuda.inputs)]
    results = [*(types[b] for b in cuda.outputs), relax.TensorType((cuda.workspace_bytes,), "uint8")]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        kernel = builder.add_func(cuda.func, built.program.name)
        call = relax.call_tir(kernel, [*params, *(relax.const(a) for a in cuda.constants)], results)
        builder.emit_func_output(builder.emit(relax.TupleGetItem(builder.emit(call), 0)))
    module = builder.get()
    for var, func in cuda.helpers.items():
        module[var] = func
    target = tvm.target.Target(H200.target_config())
    with target:
        module = get_default_pipeline(target)(module)
    for var, func in module.functions.items():
        if func.attrs is not None and RTASK_ATTRIBUTE in func.attrs:
            module.update_func(var, func.without_attr("global_symbol"))
    nothing = tvm.transform.Sequential([])
    executable = tvm.compile(module, target=target, relax_pipeline=nothing, tir_pipeline=PIPELINE)
    text = executable.mod.imports[0].imports[0].inspect_source("cuda")
    assert text.count(f"__launch_bounds__({cuda.threads}, 1) {built.program.name}_kernel(") == 2  # declared, defined
    assert all(f'extern "C" __device__ void {k.name}(' in text for k in built.program.kernels)
    assert "rammer_wait(" in text[text.index('extern "C"') :]
