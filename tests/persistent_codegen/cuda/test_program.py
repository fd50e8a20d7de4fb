"""The structure of the generated CUDA text, and what nvcc says of it."""

import re

import pytest

from tests.emulation.programs import H200
from tests.functions import chosen
from tests.golden import check_golden
from tests.marks import needs_nvcc
from tests.persistent_codegen.cuda.programs import GRAPHS, SHARED, module, planned, tiny
from tvm_rammer import relay_passes
from tvm_rammer.errors import CodegenError
from tvm_rammer.nvcc import measure_resources
from tvm_rammer.persistent_codegen.cuda.pipeline import PIPELINE
from tvm_rammer.persistent_codegen.cuda.rtask import extract_cuda
from tvm_rammer.persistent_codegen.cuda.sync import source as sync_text


def test_the_text_of_a_tiny_program_is_as_it_was():
    check_golden("tiny.cu", tiny().source)  # TVM's header and sync.cuh are not ours to repeat


@pytest.mark.parametrize("name", GRAPHS)
def test_one_kernel_and_the_functions_of_its_rkernels(name):
    for built in planned(name, 3):
        body = built.source[built.source.index('extern "C"') :]
        kernels = set(re.findall(r"__global__ void (?:__launch_bounds__\([\d, ]+\) )?(\w+)\(", body))
        functions = set(re.findall(r'extern "C" __device__ void (\w+)\(', body))
        assert kernels == {f"{built.program.name}_kernel"}
        assert functions == {f.name for f in built.functions}
        assert built.source.count("#define RAMMER_SYNC") == built.source.count(sync_text())
        assert not re.search(r"(?<!extern )__shared__", body)
        assert "__syncthreads" not in body  # all barriers go through sync.cuh


@pytest.mark.parametrize("name", GRAPHS)
def test_rtask_barriers_name_the_threads_that_reach_them(name):
    for built in planned(name, 3):
        for function in built.functions:
            text = re.search(rf"__device__ void {function.name}\([^)]*\) {{\n(.*?)\n}}\n", built.source, re.DOTALL)[1]
            assert set(re.findall(r"rammer_rtask_barrier\(1, (\d+)\)", text)) <= {str(function.threads)}


def test_the_grid_is_the_lanes():
    built = tiny()
    assert built.cuda.threads == built.program.kernels[0].threads


@pytest.mark.parametrize("name", ["tiny", "two_matmuls"])
def test_the_launch_is_cooperative(name):
    import tvm

    (built,) = (tiny(),) if name == "tiny" else planned(name, 3)
    target = tvm.target.Target(H200.target_config())
    mod = tvm.tirx.transform.BindTarget(target)(tvm.IRModule(built.cuda.functions()))
    lowered = tvm.tirx.get_tir_pipeline(PIPELINE)[0](mod)
    (kernel,) = [f for gv, f in lowered.functions.items() if gv.name_hint.endswith("_kernel")]
    shared = ["tirx.use_dyn_shared_memory"] if built.cuda.shared_bytes else []
    tags = [str(tag) for tag in kernel.attrs["tirx.kernel_launch_params"]]
    assert tags == ["blockIdx.x", "threadIdx.x", "tirx.use_cooperative_launch", *shared]


def test_equal_programs_differ_in_the_tag_of_their_state():
    first, second = (planned("two_matmuls", veus)[0].cuda.constants[-1] for veus in (3, 8))
    assert first[0] != second[0]


@needs_nvcc
@pytest.mark.parametrize(("arch", "spills"), [("sm_80", 16), ("sm_90", 0)])
def test_nvcc_compiles_with_hardly_a_spill(arch, spills):
    # On sm_80 ptxas aims at 32 registers, and keeps a few values of the outer loop on the stack.
    resources = measure_resources(tiny().source, arch)
    assert resources.static_shared_bytes == 0
    assert resources.spill_bytes <= spills
    assert 0 < resources.registers <= 64


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_nvcc_compiles_every_graph(name):
    for built in planned(name, 8):
        assert measure_resources(built.source, "sm_90a").registers <= 255


def test_operators_that_differ_in_their_inputs_share_a_branch():
    (built,) = planned("steps", 4)
    (product,) = {k.name for k in built.program.kernels if "matmul" in k.name}
    calls = re.findall(rf"(?<!void ){product}\((.*)\);", built.source)
    assert len(calls) == 1 and calls[0].count("rammer_select(") == 2


def test_operators_that_differ_in_a_number_share_a_function():
    (built,) = planned("alike", 3, SHARED)
    first, second, product = built.functions
    assert first.name == second.name and (first.numbers, second.numbers) == ((75,), (45,))
    assert product.name == built.program.kernels[2].name and not product.numbers
    assert "int number0)" in built.source and "int number1" not in built.source
    rows = built.cuda.constants[2].tolist()
    assert 75 in rows and 45 in rows


def kernels_of(name):
    import tvm

    mod = relay_passes.prepare(tvm.target.Target(H200.target_config()))(module(name))
    return [
        k for gv, f in mod.functions.items() if isinstance(f, tvm.tirx.PrimFunc) for k in chosen(gv.name_hint, f, H200)
    ]


def test_parameters_keep_the_operators_order():
    for kernel in kernels_of("two_matmuls"):
        function = extract_cuda(kernel, H200)
        names = [p.name for p in function.func.params]
        count = len(kernel.func.params)
        assert names[:count] == [f"{p.name}_ptr" for p in kernel.func.params]
        assert names[-2:] == ["rtask", "tid"]
        assert len(names) == count + len(function.scratch) + 2


def test_a_kernel_that_is_not_as_described_is_refused():
    from dataclasses import replace

    kernel = kernels_of("softmax")[0]
    with pytest.raises(CodegenError, match="lowers to"):
        extract_cuda(replace(kernel, spec=replace(kernel.spec, num_rtasks=kernel.spec.num_rtasks + 1)), H200)


def test_several_kernels_are_refused():
    from dataclasses import replace

    import tvm
    from tvm.s_tir import dlight

    mod = tvm.relax.transform.LegalizeOps()(module("softmax"))
    with tvm.target.Target(H200.target_config()):
        mod = dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(mod)
    (func,) = [f for gv, f in mod.functions.items() if "softmax" in gv.name_hint]
    with pytest.raises(CodegenError, match="kernels"):
        extract_cuda(replace(kernels_of("softmax")[0], func=func), H200)
