"""Schedules made for CUDA as code for AMD GPUs: LLVM takes it, and its metadata are those of the rTasks."""

import re
from dataclasses import replace

import pytest
import tvm
from tvm import tirx

from tests.emulation.programs import H200
from tests.functions import chosen
from tests.marks import slow_but
from tests.persistent_codegen.cuda.programs import GRAPHS, module
from tvm_rammer.errors import CodegenError, TargetError
from tvm_rammer.persistent_codegen.rocm import rocm_code
from tvm_rammer.relay_passes import prepare

WAVES = {"gfx90a": 64, "gfx1100": 32}


def kernels_of(name):
    mod = prepare(tvm.target.Target(H200.target_config()))(module(name))
    functions = [(gv.name_hint, f) for gv, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)]
    return [k for function, f in functions for k in chosen(function, f, H200)]


@pytest.mark.parametrize("arch", WAVES)
@pytest.mark.parametrize("name", slow_but(["softmax"], GRAPHS))
def test_every_tiling_becomes_code_for_amd(name, arch):
    for kernel in kernels_of(name):
        code = rocm_code(kernel, arch)
        assert f"define dllexport amdgpu_kernel void @{kernel.spec.name}_kernel(" in code.ir
        assert re.search(rf"^{kernel.spec.name}_kernel:", code.assembly, re.MULTILINE)
        assert "s_endpgm" in code.assembly
        assert code.wave == WAVES[arch]
        assert code.spilled == 0 and 0 < code.registers <= 256
        assert abs(code.shared_bytes - kernel.spec.shared_bytes) <= 1024  # sums of several threads take other bytes
        assert ("s_barrier" in code.assembly) == ("llvm.amdgcn.s.barrier" in code.ir)


def test_tvms_own_callbacks_are_there_again():
    names = ("tvm_callback_rocm_bitcode_path", "tvm_callback_rocm_link")
    rocm_code(kernels_of("softmax")[0], "gfx90a")
    with pytest.raises(Exception, match=r"ROCm|lld"):
        tvm.get_global_func(names[1])(bytearray(b"no object"))


def test_what_cannot_be_is_refused():
    kernel = kernels_of("softmax")[0]
    with pytest.raises(CodegenError, match="does not compile for gfx90a"):
        rocm_code(replace(kernel, func=kernel.func.with_body(wrong_body(kernel))), "gfx90a")
    with pytest.raises(CodegenError, match=r"TVM has no tirx\.tvm_warp_shuffle_xor for AMD"):
        shuffle = tirx.call_intrin("int32", "tirx.tvm_warp_shuffle_xor", 0xFFFFFFFF, 1, 1, 32, 32)
        body = tirx.SeqStmt([kernel.func.body, tirx.Evaluate(shuffle)])
        rocm_code(replace(kernel, func=kernel.func.with_body(body)), "gfx90a")
    wide = replace(kernel, spec=replace(kernel.spec, threads=512))
    with pytest.raises(CodegenError, match="512 threads an rTask, and TVM makes blocks of 256"):
        rocm_code(wide, "gfx90a")


def wrong_body(kernel):
    """A kernel with a call that only NVIDIA's code generator knows."""
    call = tirx.Evaluate(tirx.call_intrin("handle", "tirx.cuda.grid_sync"))
    return tirx.SeqStmt([kernel.func.body, call])


def test_compile_says_that_there_is_no_rocm():
    import tvm_rammer

    with pytest.raises(TargetError, match="target kind 'rocm' has no vDevice; use llvm or cuda"):
        tvm_rammer.compile("model.onnx", target=tvm.target.Target({"kind": "rocm", "mcpu": "gfx90a"}))
